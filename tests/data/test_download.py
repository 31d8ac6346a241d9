"""Downloads from a server of our own: cut, resumed, refused."""

from __future__ import annotations

import hashlib
import io
import shutil
import sys
import tarfile
from collections import namedtuple
from collections.abc import Iterator
from pathlib import Path

import pytest

from asr.data import download
from asr.data.download import Archive, fetch, published, unpack
from asr.errors import InputError

from .libri import Server, serving

CONTENT = bytes(range(256)) * 2000


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "_PATIENCE", 0.0)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    (tmp_path / "served").mkdir()
    (tmp_path / "served" / "a.tar.gz").write_bytes(CONTENT)
    with serving(tmp_path / "served") as server:
        yield server


def archive(server: Server, name: str = "a.tar.gz", content: bytes = CONTENT) -> Archive:
    return Archive(f"{server.url}/{name}", f"md5:{hashlib.md5(content).hexdigest()}")


def test_what_is_there_is_not_transferred_again(server: Server, tmp_path: Path) -> None:
    path = fetch(archive(server), tmp_path / "to")
    assert path.read_bytes() == CONTENT and [p.name for p in path.parent.iterdir()] == ["a.tar.gz"]
    assert fetch(archive(server), tmp_path / "to") == path and len(server.asked) == 1
    sha = Archive(f"{server.url}/a.tar.gz", f"sha256:{hashlib.sha256(CONTENT).hexdigest()}")
    assert fetch(sha, tmp_path / "to") == path


def test_a_cut_connection_is_gone_on_from(server: Server, tmp_path: Path) -> None:
    server.cuts = 3
    assert fetch(archive(server), tmp_path).read_bytes() == CONTENT
    assert [asked for _, asked in server.asked] == [
        "", *(f"bytes={len(CONTENT) * n // 8}-" for n in (4, 6, 7)),
    ]  # fmt: skip
    assert server.sent == len(CONTENT)


def test_a_later_call_goes_on(server: Server, tmp_path: Path) -> None:
    (tmp_path / "a.tar.gz.part").write_bytes(CONTENT[:1000])
    fetch(archive(server), tmp_path)
    assert server.asked == [("/a.tar.gz", "bytes=1000-")]
    (tmp_path / "a.tar.gz").rename(tmp_path / "a.tar.gz.part")  # interrupted before the renaming
    assert fetch(archive(server), tmp_path).read_bytes() == CONTENT


def test_a_server_without_ranges(server: Server, tmp_path: Path) -> None:
    server.ranges, server.cuts = False, 1
    assert fetch(archive(server), tmp_path).read_bytes() == CONTENT


def test_a_server_that_sends_no_more(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "_ATTEMPTS", 2)
    server.cuts = 100
    with pytest.raises(InputError, match=r"a\.tar\.gz: the connection was cut, with [0-9,]+ bytes"):
        fetch(archive(server), tmp_path)
    assert (tmp_path / "a.tar.gz.part").stat().st_size > len(CONTENT) // 2
    server.cuts = 0
    assert fetch(archive(server), tmp_path).read_bytes() == CONTENT


def test_a_wrong_checksum(server: Server, tmp_path: Path) -> None:
    wrong = archive(server, content=b"else")
    with pytest.raises(
        InputError, match=r"its md5 is [0-9a-f]{32}, but [0-9a-f]{32} was published"
    ):
        fetch(wrong, tmp_path)
    assert not list(tmp_path.glob("a.tar*"))


def test_what_is_not_there(server: Server, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"/b\.tar\.gz: the server says 404"):
        fetch(archive(server, "b.tar.gz"), tmp_path)
    with pytest.raises(InputError, match="not an address"):
        fetch(Archive("nonsense/b.tar.gz", "md5:0"), tmp_path)


def test_nobody_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "_ATTEMPTS", 1)
    with pytest.raises(InputError, match="refused"):
        fetch(Archive("http://127.0.0.1:9/a.tar.gz", "md5:0"), tmp_path)


def test_a_full_disk(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = namedtuple("usage", "total used free")
    free = len(CONTENT) + download._MARGIN + 10
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(0, 0, free))
    with pytest.raises(InputError, match=r"0\.1 GB are needed, 0\.1 GB are free on its disk"):
        fetch(archive(server), tmp_path, unpacked=1.0)
    assert server.sent == len(CONTENT) or not list(tmp_path.glob("a.tar*"))
    assert fetch(archive(server), tmp_path).is_file()


def test_the_checksum_that_a_server_gives(server: Server, tmp_path: Path) -> None:
    unknown = Archive(f"{server.url}/a.tar.gz", "md5:0")
    assert published(unknown) == unknown
    lines = f"{'0' * 32}  b.tar.gz\n{hashlib.md5(CONTENT).hexdigest().upper()} *./a.tar.gz\n"
    (tmp_path / "served" / "md5sum.txt").write_text(lines)
    assert published(unknown) == archive(server)


def test_damaged_and_unsafe_archives(tmp_path: Path) -> None:
    (tmp_path / "a.tar.gz").write_bytes(CONTENT)
    with pytest.raises(InputError, match=r"a\.tar\.gz: cannot be unpacked"):
        unpack(tmp_path / "a.tar.gz", tmp_path / "to")
    with tarfile.open(tmp_path / "b.tar", "w") as file:
        file.addfile(tarfile.TarInfo("../outside.txt"), io.BytesIO())
    with pytest.raises(InputError, match=r"b\.tar: cannot be unpacked"):
        unpack(tmp_path / "b.tar", tmp_path / "to")
    assert not (tmp_path / "outside.txt").exists()


def test_a_bar_only_on_a_terminal(
    server: Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    fetch(archive(server), tmp_path / "1")
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    fetch(archive(server), tmp_path / "2", quiet=True)
    assert capsys.readouterr().err == ""
    fetch(archive(server), tmp_path / "3")
    assert "a.tar.gz" in capsys.readouterr().err
