"""Preparation of corpora: one module each, its name the corpus' name.

A module offers ``prepare(source, out, **options) -> list[Path]``, which returns the manifests it
wrote.
"""

from __future__ import annotations

#: Every corpus and what it is.
CORPORA = {
    "digits": "the embedded corpus of synthetic digit strings",
    "folder": "any folder of recordings with transcripts",
    "fsdd": "Free Spoken Digit Dataset: isolated digits, and strings made of them",
    "librispeech": "LibriSpeech and Libri-Light's limited sets, downloaded if there is no source",
    "speechocean762": "English read by Mandarin speakers, half of them children",
}
#: What a corpus' ``prepare`` takes besides source and out.
OPTIONS: dict[str, tuple[str, ...]] = {
    "digits": (),
    "folder": (
        "column", "folders_are_speakers", "valid", "test", "longest", "shortest", "subwords",
        "tokenizer", "skip_broken", "quiet",
    ),
    "fsdd": ("leave_out",),
    "librispeech": ("subset", "url", "skip_broken", "quiet"),
    "speechocean762": (
        "valid", "longest", "shortest", "subwords", "tokenizer", "skip_broken", "quiet",
    ),
}  # fmt: skip
#: Those whose ``prepare`` takes no source for an answer, and downloads.
DOWNLOADED = ("librispeech",)
#: Those whose source may be a file.
TABLES = ("folder",)
