"""Memory and time of the listener's self-attention, forward and backward, beside other toolkits'.

    python recipes/benchmark/self_attention.py [--lengths 500 1000 2000 4000] [--repeats 5]

JSON lines. `peak_memory` is what one forward and backward pass takes at most beyond what the
process held before, each in a fresh process; `memory_growth_exponent` the slope of its logarithm
over that of the length. `time` is the median of passes in turn at `--timed` frames, `speedup` the
median over rounds of a peer's time over ours. SpeechBrain's RelPosMHAXL and ESPnet's
RelPositionMultiHeadedAttention (both Dai et al. 2019) are measured where they are installed, at
the same width, heads and batch. `relative_full` has as many position features as they have.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

sys.path.insert(0, str(Path(__file__).parents[2]))  # it runs as a script, and as a module

from asr.nn.encoders.selfattention import Banded, Full, Mask, Position, SelfAttention
from recipes.benchmark import measuring
from recipes.benchmark.measuring import MIB, installed, show

Pass = Callable[[], None]
OURS = ("rotary", "relative", "relative_full", "absolute", "relative_shaw", "relative_banded")
PEERS = ("speechbrain", "espnet")
#: memory of these must not grow faster than length
LINEAR = ("rotary", "relative")


def build(name: str, batch: int, length: int, dim: int, heads: int) -> Pass:
    """One forward and backward pass of the named self-attention over (batch, length, dim)."""
    states = torch.randn(batch, length, dim, requires_grad=True)
    attend = theirs(name, states, heads) if name in PEERS else own(name, states, heads)

    def both() -> None:
        attend(states).sum().backward()
        states.grad = None

    return both


def own(name: str, states: Tensor, heads: int) -> Callable[[Tensor], Tensor]:
    """Ours."""
    batch, length, dim = states.shape
    kind = name.removesuffix("_full").removesuffix("_banded")
    options = {"frequencies": dim // 2} if name.endswith("_full") else {}
    mask: Mask = Banded() if name.endswith("_banded") else Full()
    position = Position.resolve(kind)(dim, heads, **options)
    attention = SelfAttention(dim, heads, position=position, mask=mask)
    lengths = torch.full((batch,), length)
    return lambda states: attention(states, lengths)[0]


def theirs(name: str, states: Tensor, heads: int) -> Callable[[Tensor], Tensor]:
    """A peer's, called as its own conformer does."""
    batch, length, dim = states.shape
    if name == "speechbrain":
        from speechbrain.nnet.attention import RelPosEncXL, RelPosMHAXL

        attention, encode = RelPosMHAXL(dim, heads), RelPosEncXL(dim)
        return lambda x: attention(x, x, x, encode(x), return_attn_weights=False)
    from espnet.nets.pytorch_backend.transformer.attention import RelPositionMultiHeadedAttention
    from espnet.nets.pytorch_backend.transformer.embedding import RelPositionalEncoding

    layer, positions = (
        RelPositionMultiHeadedAttention(heads, dim, 0.0),
        RelPositionalEncoding(dim, 0.0),
    )
    mask = torch.ones(batch, 1, length, dtype=torch.bool)
    return lambda x: layer(x, x, x, positions(x)[1], mask)


def measure_memory(args: argparse.Namespace, name: str, length: int) -> float:
    """Peak bytes of one pass, in a process of its own."""
    command = [sys.executable, str(Path(__file__)), "--only", name, "--lengths", str(length)]
    for key in ("batch", "dim", "heads", "threads"):
        command += [f"--{key}", str(getattr(args, key))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{name} at {length} frames: {done.stderr.strip()[-500:]}")
    return float(done.stdout.split()[-1])


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--lengths", type=int, nargs="+", default=[500, 1000, 2000, 4000])
    parser.add_argument("--timed", type=int, default=2000, metavar="FRAMES")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--dim", type=int, default=256)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument(
        "--names", nargs="+", choices=OURS, default=list(OURS), metavar="NAME",
        help=f"which of {', '.join(OURS)} (default: all)",
    )  # fmt: skip
    parser.add_argument("--only", metavar="NAME", help="print this one's peak memory in bytes")
    args = parser.parse_args(argv)
    torch.manual_seed(0)
    torch.set_num_threads(args.threads)
    shape = (args.dim, args.heads)
    if args.only:
        big = build(args.only, args.batch, args.lengths[0], *shape)
        small = build(args.only, args.batch, 16, *shape)
        print(measuring.peak_memory(big, small))
        return
    peers = [name for name in PEERS if installed(name)]
    setting = {"batch": args.batch, "dim": args.dim, "heads": args.heads, "threads": args.threads}
    peaks: dict[tuple[str, int], float] = {}
    for name in (*args.names, *peers):
        lengths = {args.timed, *args.lengths} if name in OURS else {args.timed}
        for length in sorted(lengths):
            peaks[name, length] = measure_memory(args, name, length)
            show(name, "peak_memory", peaks[name, length] / MIB, "MiB", frames=length, **setting)
    for name in args.names if len(args.lengths) > 1 else ():
        values = [peaks[name, length] for length in args.lengths]
        slope = measuring.growth(args.lengths, values)
        bound = {"at_most": 1.2} if name in LINEAR else {}
        show(name, "memory_growth_exponent", slope, "", frames=args.lengths, **bound)
    for peer in peers:
        for name in args.names:
            share = peaks[name, args.timed] / peaks[peer, args.timed]
            show(f"{name}/{peer}", "memory_share", share, "ratio", frames=args.timed, **setting)
    calls = {name: build(name, args.batch, args.timed, *shape) for name in (*args.names, *peers)}
    times = measuring.interleaved(calls, args.repeats)
    measuring.report_times(times, peers, "time", frames=args.timed, **setting)


if __name__ == "__main__":
    measuring.quiet()
    main()
