"""What `asr inspect` shows: from inputs to the entries of its page, and their exports."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from asr.cli.exports import COMPARED, Exports
from asr.cli.inputs import Input
from asr.cli.layers import Chosen, chosen
from asr.cli.options import one_line, transcriber_from
from asr.cli.outputs import Outputs
from asr.errors import InputError
from asr.inspection.contents import continues

if TYPE_CHECKING:
    from asr.inference.transcriber import Transcriber
    from asr.inspection import page
    from asr.types import Transcript, TranscriptWarning, Waveform

_log = logging.getLogger(__name__)


class Model(NamedTuple):
    """A recogniser, what of its listener is to be shown, and what it is called."""

    transcriber: Transcriber
    chosen: Chosen
    name: str


class Shown:
    """What has been asked for; ``failed`` inputs could not even be looked for."""

    def __init__(self, args: argparse.Namespace, mode: str, outputs: Outputs, failed: int) -> None:
        self.args, self.mode, self.outputs = args, mode, outputs
        self.exports = Exports.of(args, outputs)
        self._unread = failed
        self._failed: set[Input] = set()

    @property
    def failed(self) -> int:
        """How many inputs have failed so far."""
        return self._unread + len(self._failed)

    def write(self, inputs: Sequence[Input], *, paged: bool) -> None:
        """Write the exports, input by input, and the page unless that is to stay as it is.

        Prints the pages' paths.
        """
        from itertools import chain

        from asr.inspection import page

        def reserve(path: Path) -> None:
            own = self.args.on_exists == "skip" and continues(path, self.args.output)
            if not own and not self.outputs.open_to(path, "the page's continuation"):
                raise InputError(f"{path}: there already, and the page would go on there")

        entries = self.entries(inputs, self.models())
        if not paged:
            for _ in entries:
                pass
            return
        first = next(entries, None)
        if first is None:
            return  # every input has failed: a page would have nothing to show
        title = "Attention" if len(inputs) > 1 else f"Attention: {inputs[0].id}"
        shown = chain([first], entries)
        for path in page.write(shown, self.args.output, title=title, reserve=reserve):
            print(path, flush=True)

    def models(self) -> list[Model]:
        """The model, and with --compare the one that it is compared with."""
        bundles = [self.args.model]
        if self.args.compare is not None:
            bundles.append(self.args.compare)
        found = []
        for bundle in bundles:
            transcriber = transcriber_from(
                argparse.Namespace(**vars(self.args) | {"model": bundle})
            )
            found.append(Model(transcriber, chosen(self.args, transcriber), transcriber.name))
        if len({model.name for model in found}) < len(found):  # two runs of one recipe, say
            found = [
                model._replace(name=f"{model.name} {model.transcriber.fingerprint[:8]}")
                for model in found
            ]
        return found

    def entries(self, inputs: Sequence[Input], models: Sequence[Model]) -> Iterator[page.Shown]:
        """What there is to show of each input; those that fail are named on standard error."""
        for each in inputs:
            try:
                yield from self.entries_of(each, models)
            except (InputError, RuntimeError, MemoryError) as error:  # torch's are RuntimeErrors
                self.fail(each, error)

    def fail(self, each: Input, error: Exception) -> None:
        """One line on standard error."""
        message = str(error) or type(error).__name__
        line = message if message.startswith(each.shown) else f"{each.shown}: {message}"
        print("asr: error:", one_line(line), file=sys.stderr)
        self._failed.add(each)

    def entries_of(self, each: Input, models: Sequence[Model]) -> Iterator[page.Shown]:
        """Of one input; what cannot be exported is a failure, but shown all the same."""
        from asr.cli.stream import read_waves
        from asr.inspection.comparison import compare

        # One sound for both models, as fine as either wants it.
        rate = max(model.transcriber.sample_rate for model in models)
        for wave in read_waves(each, rate, self.args.channel):
            sides, figures = [], []
            for model, suffix in zip(models, ("", COMPARED), strict=False):
                transcript = self.transcript(each, wave, model)
                by = f" ({model.name})" if len(models) > 1 else ""
                shown = each.shown + wave.id.removeprefix(each.id) + by
                for warning in transcript.warnings:
                    _log.warning("%s: %s%s", shown, warning.message, _span(warning))
                name = each.name + wave.id.removeprefix(each.id) + suffix
                self.exports.write(
                    name,
                    transcript,
                    wave,
                    model.chosen.heads,
                    fail=partial(self.fail, each),
                    warn=partial(_log.warning, "%s: %s", shown),
                )
                sides.append(_entries(transcript, wave, each.text, name, model.chosen.heads))
                figures.append(transcript.attention)
            if len(models) == 1:
                yield from sides[0]
            else:
                names = (models[0].name, models[1].name)
                yield from compare(names, sides[0], sides[1], (figures[0], figures[1]))

    def transcript(self, each: Input, wave: Waveform, model: Model) -> Transcript:
        """What a model makes of a sound, or of the text that it is made to write."""
        from asr.inspection.listener import pick
        from asr.inspection.saliency import explained

        layers = model.chosen.layers
        wave = _at(wave, model.transcriber.sample_rate)
        if self.mode == "free":
            (transcript,) = model.transcriber([wave], record=True, inspect=layers)
        elif each.text.strip():
            (transcript,) = model.transcriber.force([wave], [each.text], inspect=layers)
        else:
            raise InputError(
                f"{each.shown}: there is no text to force; a manifest is to have one for it"
            )
        if layers:
            transcript = pick(transcript, model.chosen.heads)
        if self.args.saliency:
            transcript = explained(transcript, model.transcriber.model, wave)
        return transcript


def _at(wave: Waveform, rate: int) -> Waveform:
    """A sound at a model's rate."""
    if wave.sample_rate == rate:
        return wave
    import soxr
    import torch

    samples = soxr.resample(wave.samples.numpy(), wave.sample_rate, rate)
    return replace(wave, samples=torch.from_numpy(samples), sample_rate=rate)


def _entries(
    transcript: Transcript, wave: Waveform, reference: str, name: str, heads: tuple[int, ...]
) -> list[page.Entry]:
    from asr.inspection.page import Entry
    from asr.inspection.records import by_piece

    return [
        Entry(piece, wave, reference, name, 0 if piece.record is None else number, heads)
        for number, piece in enumerate(by_piece(transcript), 1)
    ]


def _span(warning: TranscriptWarning) -> str:
    if warning.start is None or warning.end is None:
        return ""
    return f" ({warning.start:.2f} to {warning.end:.2f} s)"
