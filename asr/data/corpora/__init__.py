"""Preparation of corpora: one module each, its name the corpus' name.

A module offers ``prepare(source, out, **options) -> list[Path]``, which returns the manifests it
wrote.
"""

from __future__ import annotations

#: Every corpus and what it is.
CORPORA = {
    "digits": "the embedded corpus of synthetic digit strings",
    "fsdd": "Free Spoken Digit Dataset: isolated digits, and strings made of them",
}
#: Those whose ``prepare`` takes ``leave_out``.
LEAVING_OUT = ("fsdd",)
