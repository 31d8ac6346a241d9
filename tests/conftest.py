"""What all tests share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def speech_folder() -> Path:
    """The folder of real speech; skips where ASR_TEST_DATA is unset, fails where it is wrong."""
    named = os.environ.get("ASR_TEST_DATA")
    if not named:
        pytest.skip("ASR_TEST_DATA is not set: no real speech to test on")
    folder = Path(named)
    if not (folder / "corpora").is_dir():
        pytest.fail(f"ASR_TEST_DATA={named}: there is no folder corpora/ in it")
    return folder
