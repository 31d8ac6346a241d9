"""A listen-attend-spell speech recogniser whose attention can be seen, heard and measured.

Importing this package is cheap: nothing here imports torch until a name is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["AttentionRecord", "Transcriber", "Transcript", "Waveform", "Word", "__version__"]

if TYPE_CHECKING:
    from asr.inference.transcriber import Transcriber
    from asr.types import AttentionRecord, Transcript, Waveform, Word

_HOMES = {
    "Transcriber": "asr.inference.transcriber",
    "AttentionRecord": "asr.types",
    "Transcript": "asr.types",
    "Waveform": "asr.types",
    "Word": "asr.types",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'asr' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
