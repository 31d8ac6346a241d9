"""A tiny LibriSpeech in its official layout, and a server that hands it out."""

from __future__ import annotations

import hashlib
import tarfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import soundfile

RATE = 16000
TEXTS = (
    "THE QUICK BROWN FOX", "JUMPS OVER A LAZY DOG", "IT'S ALL WELL THAT ENDS WELL",
    "PACK MY BOX WITH FIVE DOZEN JUGS", "HOW VEXINGLY QUICK DAFT ZEBRAS JUMP",
)  # fmt: skip


def chapter(folder: Path, speaker: int, number: int, count: int = 2) -> None:
    """``<speaker>/<chapter>/`` with tones of 0.5 s and more, and their transcripts."""
    place = folder / str(speaker) / str(number)
    place.mkdir(parents=True)
    lines = []
    for index in range(count):
        id = f"{speaker}-{number}-{index:04d}"
        times = np.arange(round((0.5 + 0.25 * index) * RATE)) / RATE
        tone = 0.3 * np.sin(2 * np.pi * (200 + speaker) * times)
        soundfile.write(place / f"{id}.flac", tone, RATE)
        lines.append(f"{id} {TEXTS[(speaker + index) % len(TEXTS)]}\n")
    (place / f"{speaker}-{number}.trans.txt").write_text("".join(lines))


def official(folder: Path, *parts: str) -> Path:
    """``LibriSpeech/<part>/...`` of two speakers each."""
    for number, part in enumerate(parts):
        for speaker in (10 * number + 1, 10 * number + 2):
            chapter(folder / "LibriSpeech" / part, speaker, 7)
    (folder / "LibriSpeech" / "README.TXT").write_text("about the corpus\n")
    return folder


def limited(folder: Path) -> Path:
    """Libri-Light's limited sets: six folds of the hour, and nine hours."""
    root = folder / "librispeech_finetuning"
    speaker = 100
    for within in (*(f"1h/{fold}" for fold in range(6)), "9h"):
        for kind in ("clean", "other"):
            speaker += 1
            chapter(root / within / kind, speaker, 3, count=1)
    return folder


def packed(folder: Path, inside: str, archive: Path) -> str:
    """``folder/inside`` as a .tar.gz (with README.TXT beside, if there is one); its checksum."""
    archive.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(archive, "w:gz") as file:
        beside = (folder / inside).parent / "README.TXT"
        if beside.is_file():
            file.add(beside, str(Path(inside).parent / "README.TXT"))
        file.add(folder / inside, inside)
    return f"sha256:{hashlib.sha256(archive.read_bytes()).hexdigest()}"


class Server(ThreadingHTTPServer):
    """Serves a folder, byte ranges included; ``cuts`` answers stop half-way, as a bad line does."""

    def __init__(self, root: Path) -> None:
        self.root, self.cuts, self.ranges = root, 0, True
        self.asked: list[tuple[str, str]] = []  # path, Range
        self.sent = 0
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        asked = self.headers.get("Range", "")
        self.server.asked.append((self.path, asked))
        path = self.server.root / self.path.lstrip("/")
        if not path.is_file():
            self.send_error(404)
            return
        content = path.read_bytes()
        start = int(asked[6:].rstrip("-")) if asked and self.server.ranges else 0
        if start >= len(content):
            self.send_error(416)
            return
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(content) - start))
        self.end_headers()
        content = content[start:]
        if self.server.cuts:
            self.server.cuts -= 1
            content = content[: len(content) // 2]
        self.server.sent += len(content)  # before the client can have it, and ask
        self.wfile.write(content)

    def log_message(self, *_: object) -> None: ...


@contextmanager
def serving(root: Path) -> Iterator[Server]:
    server = Server(root)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
