"""Preparation of corpora: one module each, its name the corpus' name.

A module offers ``prepare(source, out, **options) -> list[Path]``, which returns the manifests it
wrote, and ``add_arguments(parser)`` for its options. It imports torch only when it prepares.
"""

from __future__ import annotations

CORPORA = {
    "digits": "the embedded corpus of synthetic digit strings",
    "fsdd": "Free Spoken Digit Dataset: isolated digits, and strings made of them",
}
