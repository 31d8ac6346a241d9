"""The files of `asr inspect --export`, one or more for every input. Imports no torch by itself."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from asr.cli import writers
from asr.cli.outputs import Outputs
from asr.errors import InputError
from asr.inspection.contents import piece_name

if TYPE_CHECKING:
    from asr.types import Transcript, Waveform

#: Attention: a file for every piece that long sound was listened to in.
PICTURES = ("png", "svg")
BY_PIECE = ("npz", *PICTURES)
#: Words and their times: one file for the whole, as `asr transcribe` writes it.
WHOLE = ("textgrid", "ctm")
FORMS = BY_PIECE + WHOLE
#: What the names of a second model's files end in.
COMPARED = ".compare"


class _File(NamedTuple):
    path: Path
    what: str
    piece: int  # from 1
    form: str
    kind: str = ""  # of a further picture: "listener", "saliency"


@dataclass(frozen=True)
class Exports:
    """Which ``forms`` are asked for, and where they go.

    ``further``: kinds of pictures besides the speller's attention: ``listener`` for the listener's
    matrices, as ``NAME.listener.png``, and ``saliency`` for implicit attention.
    """

    folder: Path
    forms: tuple[str, ...]
    outputs: Outputs
    further: tuple[str, ...] = ()

    @classmethod
    def of(cls, args: argparse.Namespace, outputs: Outputs) -> Exports:
        """As the flags say."""
        asked = (("listener", args.layers), ("saliency", args.saliency))
        further = tuple(kind for kind, told in asked if told)
        return cls(args.output.parent, args.export, outputs, further)

    def wanted(self, name: str, pieces: int = 1) -> Iterator[tuple[Path, str]]:
        """The files of an input, and what each is; as far as ``pieces`` are known."""
        for form in self.forms:
            for file in self._files(name, form, pieces):
                yield file.path, file.what

    def _files(self, name: str, form: str, pieces: int) -> Iterator[_File]:
        for piece in range(1, (1 if form in WHOLE else pieces) + 1):
            number = f", piece {piece}" if piece > 1 else ""
            path = writers.target(self.folder, piece_name(name, piece), form)
            yield _File(path, f"the {form} of {name}{number}", piece, form)
            for kind in self.further if form in PICTURES else ():
                path = writers.target(self.folder, piece_name(f"{name}.{kind}", piece), form)
                what = f"the {form} of the {kind} of {name}{number}"
                yield _File(path, what, piece, form, kind)

    def write(
        self,
        name: str,
        transcript: Transcript,
        wave: Waveform,
        heads: Sequence[int] = (),
        *,
        fail: Callable[[InputError], None],
        warn: Callable[[str], None],
    ) -> None:
        """Write the files of an input; ``fail`` is told of each form that cannot be written.

        A form is written whole or not at all where one of its files is taken. Its first file is
        written last: where that is there, so were the others. ``heads`` are the numbers of those
        of the listener that the records kept.
        """
        from asr.inspection.records import by_piece

        pieces = by_piece(transcript)
        heard = pieces[0].record is not None
        if not heard and (silent := [form for form in self.forms if form in BY_PIECE]):
            warn(f"nothing was heard, so there is no attention to write as {', '.join(silent)}")
        for form in self.forms:
            if form in BY_PIECE and not heard:
                continue
            try:
                files = list(self._files(name, form, len(pieces)))
                free = [self.outputs.open_to(file.path, file.what) for file in files]
                for file, write in reversed(list(zip(files, free, strict=True))):
                    if write:
                        part = transcript if form in WHOLE else pieces[file.piece - 1]
                        _write(file, part, wave, heads)
            except InputError as error:
                fail(error)


def _write(file: _File, part: Transcript, wave: Waveform, heads: Sequence[int]) -> None:
    if file.form in WHOLE:
        return writers.write(file.path, part, file.form)
    from asr.data.manifest import write_bytes
    from asr.inspection import figures, implicit_figure, listener, records
    from asr.inspection.diagnostics import measure
    from asr.inspection.spectrogram import spectrogram_of

    assert part.record is not None
    content = BytesIO()
    if file.form == "npz":
        records.save(part.record, content, heads=heads)
    elif file.kind == "listener":
        figures.save(listener.draw(part.record, heads), content, file.form)
    else:
        sound = spectrogram_of(records.sound_of(part.record, wave))
        if file.kind == "saliency":
            figure = implicit_figure.draw(part.record, sound, words=part.words)
        else:
            measures = part.attention or measure(part.record)
            figure = figures.draw(part.record, sound, words=part.words, measures=measures)
        figures.save(figure, content, file.form)
    write_bytes(file.path, content.getvalue())
