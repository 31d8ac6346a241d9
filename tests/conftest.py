"""What all tests share."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def log_lines_left_on() -> Iterator[None]:
    """A test that turned log lines off would fail another one, in some other order."""
    yield
    level, logger = logging.root.manager.disable, logging.getLogger("asr")
    logging.disable(logging.NOTSET)
    assert level == logging.NOTSET and logger.propagate and not logger.disabled


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
