"""Files from strangers: each wrong one is refused on one line that names it, and nothing runs."""

from __future__ import annotations

import io
import json
import os
import pickle
import shutil
import stat
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import safetensors.torch
import torch

from asr.errors import InputError
from asr.inference import bundle


class Payload:
    """Unpickled, it makes a folder: the mark of code that ran."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self):
        return os.mkdir, (str(self.mark),)


def refused(path: Path, reason: str, load: Callable[[Path], object] = bundle.load) -> str:
    with pytest.raises(InputError, match=reason) as error:
        load(path)
    message = str(error.value)
    assert "\n" not in message
    assert len(message) < 600
    assert str(path) in message
    return message


def edit(folder: Path, *keys: str, value: object) -> None:
    """Set one (nested) key of config.json."""
    config = json.loads((folder / "config.json").read_text())
    inner = config
    for key in keys[:-1]:
        inner = inner[key]
    inner[keys[-1]] = value
    (folder / "config.json").write_text(json.dumps(config))


def test_nothing_there(tmp_path):
    refused(tmp_path / "none", "no such bundle")


@pytest.mark.parametrize(
    "name", ["config.json", "model.safetensors", "card.json", "tokenizer.json"]
)
def test_a_missing_file_is_named(copy, name):
    (copy / name).unlink()
    refused(copy, f"{name} is missing")


@pytest.mark.parametrize("name", ["config.json", "card.json", "tokenizer.json"])
@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[: len(data) // 2],
        lambda data: b"",
        lambda data: b"[1, 2]",
        lambda data: b"\xff\xfe" + data,
        lambda data: b"[" * 200_000,
    ],
    ids=["half", "empty", "list", "not-utf8", "deep"],
)
def test_damaged_json_is_named(copy, name, damage):
    (copy / name).write_bytes(damage((copy / name).read_bytes()))
    refused(copy, name)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_numbers_must_be_finite(copy, number):
    text = (copy / "config.json").read_text()
    (copy / "config.json").write_text(
        text.replace('"onset_shift": 0.0', f'"onset_shift": {number}')
    )
    refused(copy, "config.json.*finite")


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[: len(data) // 2],
        lambda data: data[:-1],
        lambda data: data[:5],
        lambda data: b"",
        lambda data: b"\xff" * 8 + data[8:],
        lambda data: data[:8] + b"x" * 50 + data[58:],
        lambda data: data + b"more",
    ],
    ids=["half", "one-byte-short", "header", "empty", "header-size", "header-text", "trailing"],
)
def test_damaged_weights_are_named(copy, damage):
    file = copy / "model.safetensors"
    file.write_bytes(damage(file.read_bytes()))
    refused(copy, "model.safetensors")


def rewrite(copy: Path, change: Callable[[dict[str, torch.Tensor]], None]) -> None:
    file = copy / "model.safetensors"
    tensors = safetensors.torch.load(file.read_bytes())
    change(tensors)
    file.write_bytes(safetensors.torch.save(tensors))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda t: t.pop("ctc.bias"), r"lacks 1 tensors \(ctc\.bias\)"),
        (lambda t: t.update(extra=torch.ones(1)), r"unknown 1 tensors \(extra\)"),
        (lambda t: t.update({"\x1b[2J\n": torch.ones(1)}), r"unknown 1 tensors \(\?\[2J"),
        (lambda t: t.update({"ctc.bias": torch.ones(7)}), r"ctc\.bias is \[7\].*\[13\]"),
        (lambda t: t.update({"ctc.bias": torch.ones(13, dtype=torch.long)}), r"ctc\.bias.*int64"),
        (lambda t: t["ctc.bias"].fill_(float("inf")), r"ctc\.bias.*not finite"),
    ],
    ids=["missing", "extra", "escape", "shape", "type", "infinite"],
)
def test_tensors_that_do_not_fit_are_named(copy, change, reason):
    rewrite(copy, change)
    refused(copy, reason)


@pytest.mark.parametrize("part", ["frontend", "encoder", "attention", "speller"])
@pytest.mark.parametrize("name", ["os.system", "torch.nn.Linear", "builtins.eval", "", None, ["x"]])
def test_only_registered_names_are_built(copy, part, name):
    edit(copy, "model", part, "name", value=name)
    message = refused(copy, "config.json: model")
    assert "valid: " in message


@pytest.mark.parametrize(
    ("keys", "value"),
    [
        (("format",), 0),
        (("format",), "1"),
        (("format",), True),
        (("model",), None),
        (("model", "encoder"), 7),
        (("model", "encoder", "dim"), "wide"),
        (("model", "encoder", "dim"), -16),
        (("model", "encoder", "dim"), 0),
        (("model", "encoder", "surprise"), 1),
        (("model", "surprise"), 1),
        (("model", "sample_rate"), 0),
        (("model", "vocabulary_size"), 12),
        (("model", "ctc"), False),
        (("tokenizer",), 3),
        (("search",), []),
        (("search", "beam_size"), 0),
        (("search", "beams"), 3),
        (("normalisation",), "rot13"),
        (("name",), "a\x1b[2Jb"),
        (("max_piece_seconds",), -1),
        (("max_piece_second",), 3),
        (("versions",), "new"),
    ],
)
@pytest.mark.filterwarnings("ignore:Initializing zero-element")
def test_wrong_values_are_named(copy, keys, value):
    edit(copy, *keys, value=value)
    refused(copy, "config.json|model.safetensors")


def test_a_newer_format_asks_for_an_upgrade(copy):
    edit(copy, "format", value=2)
    refused(copy, "format 2 is newer.*upgrade asr")


def test_a_tokenizer_of_another_model_is_refused(copy):
    content = json.loads((copy / "tokenizer.json").read_text())
    content["characters"] = content["characters"][::-1]
    (copy / "tokenizer.json").write_text(json.dumps(content))
    refused(copy, "tokenizer is not the one")


@pytest.mark.parametrize(
    ("keys", "value"),
    [
        (("encoder", "dim"), 10**9),
        (("encoder", "dim"), 900_000),
        (("encoder", "blocks"), 10**9),
        (("encoder", "blocks"), 1_000_000),
        (("encoder", "feed_forward"), 1e30),
        (("vocabulary_size",), 10**12),
        (("frontend", "bins"), 999_999),
        (("frontend", "window"), 9e5),
        (("speller", "layers"), 999_999),
        (("speller", "embedding"), 999_999),
        (("attention", "kernel"), 999_999),
        (("sample_rate",), 10**15),
        (("sample_rate",), 10**300),
    ],
)
def test_absurd_sizes_are_refused_before_memory_is_asked_for(copy, keys, value, monkeypatch):
    edit(copy, "model", *keys, value=value)
    monkeypatch.setattr("safetensors.torch.load_file", lambda *_: pytest.fail("it was read"))
    refused(copy, "config.json|model.safetensors")


def test_a_model_folder_of_another_library_is_recognised(tmp_path):
    folder = tmp_path / "whisper-tiny"
    folder.mkdir()
    (folder / "config.json").write_text('{"architectures": ["W"], "model_type": "whisper"}')
    (folder / "model.safetensors").write_bytes(safetensors.torch.save({"a": torch.ones(1)}))
    refused(folder, "another library")


@pytest.mark.parametrize("name", ["last.ckpt", "model.zip", "model.bin"])
@pytest.mark.parametrize("legacy", [False, True])
def test_a_checkpoint_in_place_of_a_bundle_says_what_to_do_and_runs_nothing(tmp_path, name, legacy):
    torch.save(
        {"state_dict": Payload(tmp_path / "mark")},
        tmp_path / name,
        _use_new_zipfile_serialization=not legacy,
    )
    refused(tmp_path / name, "asr bundle .* -o DIR")
    assert not (tmp_path / "mark").exists()


def test_a_training_run_points_to_its_bundle_or_checkpoint(saved, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "last.ckpt").touch()
    refused(tmp_path / "run", r"asr bundle .*last\.ckpt -o DIR")
    shutil.copytree(saved, tmp_path / "run" / "bundle")
    refused(tmp_path / "run", "did you mean .*bundle")


@pytest.mark.parametrize(
    "name", ["model.safetensors", "config.json", "card.json", "tokenizer.json"]
)
def test_a_pickle_in_a_bundle_is_refused_and_not_run(copy, tmp_path, name):
    (copy / name).write_bytes(pickle.dumps(Payload(tmp_path / "mark")))
    refused(copy, name)
    assert not (tmp_path / "mark").exists()


def test_a_pickle_beside_a_bundle_is_not_even_read(copy, tmp_path):
    (copy / "pytorch_model.bin").write_bytes(pickle.dumps(Payload(tmp_path / "mark")))
    assert bundle.load(copy).name == "noise"
    assert not (tmp_path / "mark").exists()


# -- zips ------------------------------------------------------------------------------------------


def zipped(folder: Path, *extra: tuple[zipfile.ZipInfo | str, bytes], top: str = "") -> Path:
    path = folder.parent / "bundle.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for file in folder.iterdir():
            archive.write(file, top + file.name)
        for name, data in extra:
            archive.writestr(name, data, zipfile.ZIP_DEFLATED)
    return path


@pytest.mark.parametrize("top", ["", "noise/"])
def test_a_zip_that_people_make_is_read(copy, top):
    assert bundle.load(zipped(copy, top=top)).name == "noise"


@pytest.mark.parametrize("name", ["../evil", "a/../../evil", "/tmp/evil", "..\\evil", "C:\\evil"])
def test_a_zip_that_climbs_out_is_refused(copy, tmp_path, name):
    refused(zipped(copy, (name, b"evil")), "points outside")
    assert not list(tmp_path.rglob("*evil*"))


def test_a_zip_with_a_link_is_refused(copy):
    (copy / "card.json").unlink()
    link = zipfile.ZipInfo("card.json")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    refused(zipped(copy, (link, b"/etc/hostname")), "is a link")


def test_a_zip_bomb_is_refused(copy):
    (copy / "model.safetensors").unlink()
    refused(zipped(copy, ("model.safetensors", bytes(30 * 2**20))), "would unpack to")


def test_a_zip_of_many_members_is_refused(copy):
    refused(zipped(copy, *((f"{i}.txt", b"") for i in range(2000))), "members")


def test_a_zip_that_says_a_thing_twice_is_refused(copy):
    with pytest.warns(UserWarning, match="Duplicate"):
        path = zipped(copy, ("config.json", b"{}"))
    refused(path, "same name")


def test_members_of_no_concern_stay_in_the_zip(copy, tmp_path):
    path = zipped(copy, ("__MACOSX/._config.json", b"x"), ("notes.txt", b"x"))
    assert bundle.load(path).name == "noise"


@pytest.mark.parametrize("keep", [0.5, 0.99])
def test_a_damaged_zip_is_refused(copy, keep):
    path = zipped(copy)
    data = path.read_bytes()
    path.write_bytes(data[: int(keep * len(data))])
    refused(path, "complete .zip|unpacked")


def test_a_zip_with_a_flipped_bit_is_refused(copy):
    path = zipped(copy)
    data = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        data[archive.getinfo("model.safetensors").header_offset + 5000] ^= 1
    path.write_bytes(data)
    refused(path, "unpacked")


def test_a_zip_of_something_else_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "photos.zip", "w") as archive:
        archive.writestr("beach.jpg", b"sun")
    refused(tmp_path / "photos.zip", "config.json is missing")


def test_a_file_of_something_else_is_refused(tmp_path):
    (tmp_path / "song.wav").write_bytes(b"RIFF")
    refused(tmp_path / "song.wav", "neither")


# -- checkpoints -----------------------------------------------------------------------------------


@pytest.mark.parametrize("legacy", [False, True])
def test_a_checkpoint_with_a_payload_is_refused_and_not_run(tmp_path, legacy):
    path = tmp_path / "last.ckpt"
    content = {"state_dict": {}, "asr": Payload(tmp_path / "mark")}
    torch.save(content, path, _use_new_zipfile_serialization=not legacy)
    refused(path, "tensors and plain values", bundle.from_checkpoint)
    assert not (tmp_path / "mark").exists()


def saved_as(content: object) -> bytes:
    file = io.BytesIO()
    torch.save(content, file)
    return file.getvalue()


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "checkpoint"),
        (b"text", "checkpoint"),
        (saved_as({"a": torch.ones(9)})[:300], "checkpoint"),
        (saved_as([1]), "something else"),
        (saved_as({"state_dict": {}}), "something else"),
        (saved_as({"state_dict": {}, "asr": {}}), "format is None"),
        (saved_as({"state_dict": {}, "asr": {"format": 3}}), "newer"),
    ],
)
def test_a_file_that_is_no_checkpoint_of_ours_is_refused(tmp_path, data, reason):
    (tmp_path / "last.ckpt").write_bytes(data)
    refused(tmp_path / "last.ckpt", reason, bundle.from_checkpoint)


def test_a_checkpoint_that_is_not_there_is_refused(tmp_path):
    refused(tmp_path / "last.ckpt", "no such checkpoint", bundle.from_checkpoint)


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("tokenizer_files", {}, "tokenizer.json"),
        ("tokenizer_files", {"tokenizer.json": 3}, "asr"),
        ("tokenizer_files", None, "asr"),
        ("model", {}, "keys missing"),
        ("card", None, "incomplete"),
    ],
)
def test_a_checkpoint_with_wrong_values_is_refused(model, tokenizer, tmp_path, key, value, reason):
    state = bundle.describe_for_checkpoint(model, tokenizer, card={})
    weights = {f"model.{name}": tensor for name, tensor in model.state_dict().items()}
    torch.save({"state_dict": weights, "asr": {**state, key: value}}, tmp_path / "last.ckpt")
    refused(tmp_path / "last.ckpt", reason, bundle.from_checkpoint)
