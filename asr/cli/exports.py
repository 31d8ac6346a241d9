"""The files of `asr inspect --export`, one or more for every input. Imports no torch by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from asr.cli import writers
from asr.cli.outputs import Outputs
from asr.errors import InputError
from asr.inspection.contents import piece_name

if TYPE_CHECKING:
    from asr.types import Transcript, Waveform

#: Attention: a file for every piece that long sound was listened to in.
BY_PIECE = ("npz", "png", "svg")
#: Words and their times: one file for the whole, as `asr transcribe` writes it.
WHOLE = ("textgrid", "ctm")
FORMS = BY_PIECE + WHOLE


@dataclass(frozen=True)
class Exports:
    """Which ``forms`` are asked for, and where they go."""

    folder: Path
    forms: tuple[str, ...]
    outputs: Outputs

    def wanted(self, name: str, pieces: int = 1) -> Iterator[tuple[Path, str]]:
        """The files of an input, and what each is; as far as ``pieces`` are known."""
        for form in self.forms:
            for piece in range(1, (1 if form in WHOLE else pieces) + 1):
                path = writers.target(self.folder, piece_name(name, piece), form)
                yield path, f"the {form} of {name}" + (f", piece {piece}" if piece > 1 else "")

    def write(
        self,
        name: str,
        transcript: Transcript,
        wave: Waveform,
        *,
        fail: Callable[[InputError], None],
        warn: Callable[[str], None],
    ) -> None:
        """Write the files of an input; ``fail`` is told of each form that cannot be written.

        A form is written whole or not at all where one of its files is taken. Its first file is
        written last: where that is there, so were the others.
        """
        from asr.inspection.records import by_piece

        pieces = by_piece(transcript)
        heard = pieces[0].record is not None
        if not heard and (silent := [form for form in self.forms if form in BY_PIECE]):
            warn(f"nothing was heard, so there is no attention to write as {', '.join(silent)}")
        for form in self.forms:
            if form in BY_PIECE and not heard:
                continue
            one = Exports(self.folder, (form,), self.outputs)
            shown = [transcript] if form in WHOLE else pieces
            try:
                places = list(one.wanted(name, len(pieces)))
                free = [self.outputs.open_to(path, what) for path, what in places]
                for (path, _), piece, write in reversed(
                    list(zip(places, shown, free, strict=True))
                ):
                    if write:
                        _write(path, form, piece, wave)
            except InputError as error:
                fail(error)


def _write(path: Path, form: str, piece: Transcript, wave: Waveform) -> None:
    if form in WHOLE:
        return writers.write(path, piece, form)
    from asr.data.manifest import write_bytes
    from asr.inspection import figures, records
    from asr.inspection.diagnostics import measure
    from asr.inspection.spectrogram import spectrogram_of

    assert piece.record is not None
    file = BytesIO()
    if form == "npz":
        records.save(piece.record, file)
    else:
        figure = figures.draw(
            piece.record,
            spectrogram_of(records.sound_of(piece.record, wave)),
            words=piece.words,
            measures=piece.attention or measure(piece.record),
        )
        figures.save(figure, file, form)
    write_bytes(path, file.getvalue())
