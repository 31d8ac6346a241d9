"""What a call may write: no input of its own, nothing twice, nothing that is there already."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from asr.cli.options import UsageError
from asr.cli.outputs import Outputs, probe
from asr.errors import InputError


def test_one_place_is_had_by_one_thing_only(tmp_path: Path) -> None:
    outputs = Outputs("overwrite")
    outputs.plan([(tmp_path / "a", "the page"), (tmp_path / "b", "the png of b")])
    outputs.claim(tmp_path / "a", "the page")
    with pytest.raises(UsageError, match="a: cannot be both the page and the png of a"):
        outputs.plan([(tmp_path / "sub" / ".." / "a", "the png of a")])
    with pytest.raises(InputError, match="b: cannot be both the png of b and the page"):
        outputs.open_to(tmp_path / "b", "the page")


@pytest.mark.parametrize("policy", ["error", "skip", "overwrite"])
def test_what_is_read_is_never_written(tmp_path: Path, policy: str) -> None:
    (tmp_path / "bundle").mkdir()
    for name in ("in.wav", "bundle/config.json"):
        (tmp_path / name).touch()
    (tmp_path / "link").symlink_to(tmp_path / "in.wav")
    outputs = Outputs(policy)
    outputs.reads(tmp_path / "in.wav", "an input")
    outputs.reads(tmp_path / "bundle", "the model")
    for name in ("in.wav", "link", "bundle/config.json", "bundle"):
        with pytest.raises(UsageError, match="cannot be both"):
            outputs.plan([(tmp_path / name, "the page")])


def test_what_is_there_already(tmp_path: Path) -> None:
    there, dangling, new = tmp_path / "there", tmp_path / "dangling", tmp_path / "new"
    there.touch()
    dangling.symlink_to(tmp_path / "nowhere")
    wanted = [(there, "1"), (dangling, "2"), (new, "3")]
    with pytest.raises(UsageError, match="there and 1 more: there already; --on-exists"):
        Outputs("error").plan(wanted)
    for policy, free in (("skip", [False, False, True]), ("overwrite", [True] * 3)):
        outputs = Outputs(policy)
        outputs.plan(wanted)
        assert [outputs.open_to(path, what) for path, what in wanted] == free
    with pytest.raises(InputError, match="there: there already"):
        Outputs("error").open_to(there, "1")
    (tmp_path / "folder").mkdir()
    with pytest.raises(UsageError, match="is a folder"):
        Outputs("overwrite").plan([(tmp_path / "folder", "the page")])


def test_a_place_is_tried_and_left_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "old").write_text("old")
    (tmp_path / "link").symlink_to("old")
    (tmp_path / "loose").symlink_to("none")
    before = sorted(tmp_path.iterdir())
    for name in ("new", "old", "link", "loose", os.devnull):
        probe(tmp_path / name, name)
    reader, writer = os.pipe()
    probe(Path(f"/dev/fd/{writer}"), "pipe")
    os.close(reader), os.close(writer)
    assert sorted(tmp_path.iterdir()) == before and (tmp_path / "old").read_text() == "old"


@pytest.mark.parametrize(
    ("name", "says"),
    [
        (".", "is a folder"),
        ("gone/x", "the folder .*gone does not exist"),
        ("file/x", "the folder .*file does not exist"),
        ("n" * 250, "File name too long"),
        ("nul\0", "null"),
        ("out/x", "No such file"),
    ],
)
def test_a_place_that_cannot_be_written(tmp_path: Path, name: str, says: str) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "out").symlink_to("/proc/self/fdinfo", target_is_directory=True)
    with pytest.raises(UsageError, match=f"--json: .*{says}"):
        probe(tmp_path / name, "--json")
