"""What of a piece is given to the model: long silence taken out, a margin around what sounds.

Models hear words well only with some silence around them, as they had it in training, and near
long silence they write words that nobody said. So of each piece the model is given what sounds and
``margin`` seconds around it: what is further from any sound is left out, and what a tightly cut
recording lacks is made of noise a little below its own background. All of it is counted in encoder
frames of the piece, so that attention and times are known for the piece as it is in its file.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn import functional

from asr.glimpses.timing import cells
from asr.inference.pieces import Piece
from asr.types import Hypothesis, Listened, Seconds

#: Sound whose root mean square stays below this (-80 dB of full scale) holds nothing to hear.
SILENCE = 1e-4
_CELL: Seconds = 0.01  # sound is told from silence in steps of this,
_BLUR = 5  # by the mean of so many of them,
_PAUSE = 25  # and a group of sounds, with more than so many of them between it and the next,
_CLICK = 10  # is no speech where fewer than so many sound,
_FAINT_DB = 30.0  # or none of them comes so near the loudest of the recording
_RANGE_DB, _ABOVE_DB, _CLEAR_DB = 50.0, 6.0, 20.0
_UNDER_DB = 6.0


@dataclass(frozen=True)
class Level:
    """Of a whole recording: mean squares that a thousandth of it exceeds, a twentieth stays below.

    The first is the loudest 50 ms where it is not long, and never the one slamming door.
    """

    loud: float
    background: float

    @property
    def threshold(self) -> float:
        """The mean square that silence stays below.

        50 dB below the loudest moment, or 6 dB above the background where that is more; yet at
        least 20 dB below the loudest, so that nothing is taken out of a noisy recording.
        """
        above = min(self.background * _ratio(_ABOVE_DB), self.loud / _ratio(_CLEAR_DB))
        return max(SILENCE**2, self.loud / _ratio(_RANGE_DB), above)


def energies(samples: Tensor, cell: int) -> Tensor:
    """(L,) -> (ceil(L / cell),) mean squares; a last cell that is not full counts as if it were."""
    padded = functional.pad(samples, (0, -len(samples) % cell))
    return padded.view(-1, cell).square().mean(-1)


def level(energies: Tensor) -> Level:
    """Of the mean squares (n,) of every :data:`asr.audio.METER` of a recording."""
    size = len(energies)
    if not size:
        return Level(0.0, 0.0)
    ordered = energies.double().sort().values
    return Level(float(ordered[-1 - size // 1000]), float(ordered[size // 20]))


@dataclass(frozen=True)
class Given:
    """What the model is given of a ``piece``: samples, and where each encoder frame of them lies.

    ``sounding`` (S,) is True on the frames of the piece in which something sounds.
    """

    piece: Piece
    listened: Listened
    sounding: Tensor

    @property
    def size(self) -> int:
        """S, the encoder frames of the piece."""
        return len(self.sounding)

    @property
    def samples(self) -> Tensor:
        return self.listened.samples

    @property
    def kept(self) -> Tensor:
        """(K,) the frames of the piece that are among those of the samples, in order."""
        return self.listened.frames[self.listened.frames >= 0]

    @property
    def margin(self) -> int:
        """How many frames come before them that the piece does not have."""
        return int((self.listened.frames < 0).int().argmin())

    @property
    def duration(self) -> Seconds:
        return len(self.samples) / self.piece.sample_rate

    def placed(self, hypothesis: Hypothesis) -> Hypothesis:
        """The hypothesis with weights (U,A,S) over the frames of the piece, on the CPU.

        What was attended in a margin counts for the frame next to it, so rows keep their sums;
        frames that were left out have exactly 0.
        """
        if hypothesis.weights is None:
            return hypothesis
        weights = hypothesis.weights.detach().to("cpu", torch.float32)
        return replace(hypothesis, weights=self._placed(weights))

    def matrix(self, listener: Tensor) -> Tensor:
        """A listener's matrix (A,S',S') over the frames of the piece: (A,S,S), on the CPU.

        Rows of frames that were left out are 0.
        """
        listener = self._placed(listener.detach().to("cpu", torch.float32))
        placed = listener.new_zeros(len(listener), self.size, self.size)
        placed[:, self.kept] = listener[:, self.margin : self.margin + len(self.kept)]
        return placed

    def when(self, moment: Seconds, frame_shift: Seconds, *, ends: bool = False) -> Seconds:
        """A moment of what the model was given as one of the piece, never outside it.

        At a seam, where silence was left out, what ``ends`` is before it and all else behind it.
        """
        place = moment / frame_shift - self.margin
        whole = math.ceil(place - 1e-6) - 1 if ends else math.floor(place + 1e-6)
        index = min(max(whole, 0), len(self.kept) - 1)
        within = min(max(place - index, 0.0), 1.0)
        return min((int(self.kept[index]) + within) * frame_shift, self.piece.duration)

    def _placed(self, weights: Tensor) -> Tensor:
        """(...,S') -> (...,S)"""
        frames = torch.arange(weights.shape[-1]) - self.margin
        frames = self.kept[frames.clamp(0, len(self.kept) - 1)]
        placed = weights.new_zeros(*weights.shape[:-1], self.size)
        return placed.index_add_(-1, frames, weights)


def given(piece: Piece, level: Level, frame: int, margin: Seconds) -> Given | None:
    """What of a piece is worth listening to, None where nothing is.

    Args:
        level: of the whole recording: what is silent beside the rest of it, is silent.
        frame: samples of one encoder frame.
        margin: to keep, or make, around what sounds; 0 takes the piece as it is.
    """
    samples = piece.samples
    heard = _sounding(samples, piece.sample_rate, level, frame)
    if not heard.any():
        return None
    size = len(heard)
    if not margin:
        return Given(piece, Listened(samples, torch.arange(size)), heard)
    reach = math.ceil(margin * piece.sample_rate / frame)
    near = functional.max_pool1d(heard.float()[None], 2 * reach + 1, 1, reach)[0] > 0
    kept = near.nonzero()[:, 0]
    sounds = heard.nonzero()[:, 0]
    before = max(0, reach - int(sounds[0]))
    after = max(0, reach - (size - 1 - int(sounds[-1])))
    short = -len(samples) % frame  # what the last frame lacks
    whole = functional.pad(samples, (0, short)).view(size, frame)[kept].flatten()
    if short and kept[-1] == size - 1:
        whole = whole[:-short]
    noise = _noise(samples, piece.sample_rate, (before + after) * frame)
    edge = before * frame
    frames = functional.pad(kept, (before, after), value=-1)
    return Given(piece, Listened(torch.cat([noise[:edge], whole, noise[edge:]]), frames), heard)


def _sounding(samples: Tensor, sample_rate: int, level: Level, frame: int) -> Tensor:
    """(S,) True on the encoder frames in which something sounds."""
    cell = max(1, round(_CELL * sample_rate))
    blurred = functional.avg_pool1d(
        energies(samples, cell)[None], _BLUR, 1, _BLUR // 2, count_include_pad=False
    )[0]
    loud = (blurred > level.threshold).nonzero()[:, 0]
    frames = torch.zeros(cells(len(samples), frame), dtype=torch.bool)
    if not len(loud):
        return frames
    group = (loud.diff(prepend=loud[:1]) > _PAUSE).cumsum(0)
    speech = group.bincount() >= _CLICK
    # What the edge of the piece cuts off may have been longer.
    speech[0] |= loud[0] == 0
    speech[-1] |= loud[-1] == len(blurred) - 1
    loudest = torch.zeros(len(speech)).scatter_reduce_(0, group, blurred[loud], "amax")
    speech &= loudest >= level.loud / _ratio(_FAINT_DB)
    loud = loud[speech[group]]
    frames[loud * cell // frame] = True
    frames[((loud + 1) * cell - 1).clamp_max(len(samples) - 1) // frame] = True
    return frames


def _noise(samples: Tensor, sample_rate: int, size: int) -> Tensor:
    """(size,) white noise, always the same, 6 dB under the quietest 30 ms of a piece.

    Where words were cut out of a noisy recording, digital silence around them would be a step that
    is heard as a sound; where the background is digital silence, so is this.
    """
    cell = min(max(1, round(_CELL * sample_rate)), len(samples))
    quiet = energies(samples[: len(samples) // cell * cell], cell)
    quietest = float(quiet.unfold(0, min(3, len(quiet)), 1).mean(-1).min())
    noise = torch.randn(size, generator=torch.Generator().manual_seed(0))
    return noise * math.sqrt(quietest / _ratio(_UNDER_DB))


def _ratio(decibels: float) -> float:
    return 10 ** (decibels / 10)
