"""Time of one decoding step of location-aware attention, beside SpeechBrain's.

    python recipes/benchmark/attention_step.py [--utterances 8] [--rows 8] [--frames 100 250 500]

JSON lines. Keys are computed once; a step is a query for each of `rows` hypotheses of each
utterance, from the state of the step before. `location_aware` convolves the previous vector alone,
as SpeechBrain's LocationAwareAttention does (measured where it is installed, at the same widths,
with the encoder's states repeated for every hypothesis, as its beam search has them);
`location_aware_both` is our default. `speedup` is the median over rounds of their time over ours.
`agreement` is the largest difference of the two attentions with the same weights: what is timed is
the same.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

sys.path.insert(0, str(Path(__file__).parents[2]))  # it runs as a script, and as a module

from asr.nn.attention import LocationAware
from asr.nn.attention.location_aware import LocationState
from asr.types import Encoded
from recipes.benchmark import measuring
from recipes.benchmark.measuring import installed, show

Step = Callable[[], Tensor]  # one step: its weights (N,S)


def own(states: Tensor, queries: Tensor, previous: Tensor, **options: Any) -> tuple[Step, Any]:
    """Ours, and the mechanism itself."""
    made = LocationAware(states.shape[-1], queries.shape[-1], **options).eval()
    lengths = torch.full((len(states),), states.shape[1])
    memory = made.prepare(Encoded(states, lengths))
    state = LocationState(previous, previous)
    return lambda: made.step(queries, memory, state, mode="decode")[0].weights[:, 0], made


def speechbrains(states: Tensor, queries: Tensor, previous: Tensor, like: LocationAware) -> Step:
    """SpeechBrain's with the weights of ours."""
    from speechbrain.nnet.attention import LocationAwareAttention

    width, channels = like.key.out_features, like.location.in_features
    encoder, query = states.shape[-1], queries.shape[-1]
    made = LocationAwareAttention(
        encoder, query, width, encoder, channels, like.kernel // 2, like.sharpening
    ).eval()
    made.mlp_enc.load_state_dict(like.key.state_dict())
    made.mlp_attn.load_state_dict(like.energy.state_dict())
    with torch.no_grad():
        made.mlp_dec.weight.copy_(like.query.weight)
        made.mlp_dec.bias.zero_()
        made.mlp_loc.weight.copy_(like.location.weight)
        made.mlp_loc.bias.zero_()
        made.conv_loc.weight.copy_(like.filters.T.unsqueeze(1))
    each = states.repeat_interleave(len(queries) // len(states), 0)
    lengths = torch.full((len(each),), each.shape[1])
    made(each, lengths, queries)  # computes the keys

    def step() -> Tensor:
        made.prev_attn = previous
        return made(each, lengths, queries)[1]

    return step


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--utterances", type=int, default=8)
    parser.add_argument("--rows", type=int, default=8, help="hypotheses an utterance")
    parser.add_argument("--frames", type=int, nargs="+", default=[100, 250, 500])
    parser.add_argument("--encoder-dim", type=int, default=256)
    parser.add_argument("--query-dim", type=int, default=256)
    parser.add_argument("--dim", type=int, default=128)
    parser.add_argument("--channels", type=int, default=10)
    parser.add_argument("--kernel", type=int, default=31)
    parser.add_argument("--repeats", type=int, default=31)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args(argv)
    torch.manual_seed(0)
    torch.set_num_threads(args.threads)
    options = {"dim": args.dim, "channels": args.channels, "kernel": args.kernel}
    setting = vars(args) | {"frames": None}
    for frames in args.frames:
        setting["frames"] = frames
        states = torch.randn(args.utterances, frames, args.encoder_dim)
        count = args.utterances * args.rows
        queries = torch.randn(count, args.query_dim)
        previous = torch.softmax(3 * torch.randn(count, frames), -1)
        with torch.inference_mode():
            step, made = own(states, queries, previous, convolve="previous", **options)
            both, _ = own(states, queries, previous, convolve="both", **options)
            calls: dict[str, Step] = {"location_aware": step, "location_aware_both": both}
            peers = ["speechbrain"] if installed("speechbrain") else []
            if peers:
                calls["speechbrain"] = speechbrains(states, queries, previous, made)
                difference = float((step() - calls["speechbrain"]()).abs().max())
                if difference > 1e-4:
                    raise SystemExit(f"the two do not compute the same: {difference}")
                show("location_aware/speechbrain", "agreement", difference, "", **setting)
            times = measuring.interleaved(calls, args.repeats)
        measuring.report_times(times, peers, "time", **setting)


if __name__ == "__main__":
    measuring.quiet()
    main()
