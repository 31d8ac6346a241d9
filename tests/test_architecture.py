"""The direction of dependencies: a room imports only what lies before it."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import asr

ROOT = Path(asr.__file__).parent
BASE = {"types", "errors"}
NETWORK = BASE | {"text", "glimpses", "nn"}
#: room -> the rooms that it may import, itself besides
ALLOWED = {
    "types": set(),
    "errors": set(),
    "html": set(),
    "audio": BASE,
    "text": BASE,
    "glimpses": BASE | {"nn"},
    "nn": BASE | {"text", "glimpses"},
    "data": BASE | {"audio", "text", "glimpses"},
    "evaluation": BASE | {"text", "html"},
    "search": NETWORK,
    "inspection": NETWORK | {"audio", "search", "html"},
    "inference": NETWORK | {"audio", "search", "inspection"},
    "training": NETWORK | {"audio", "data", "evaluation", "search", "inspection", "inference"},
    "cli": NETWORK
    | {"audio", "data", "evaluation", "search", "inspection", "inference", "training"},
}
#: heavy or far-reaching libraries -> the only rooms that may know them
ONLY_IN = {
    "lightning": {"training", "cli"},
    "yaml": {"training", "cli"},
    "jsonargparse": {"training", "cli"},
}


def imports(path: Path) -> Iterator[str]:
    """Every module that a file imports, wherever in the file."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}: relative import"
            yield node.module or ""
            if node.module == "asr":
                yield from (f"asr.{alias.name}" for alias in node.names)


def files() -> list[tuple[str, Path]]:
    return [
        (path.relative_to(ROOT).parts[0].removesuffix(".py"), path)
        for path in sorted(ROOT.rglob("*.py"))
        if path != ROOT / "__init__.py"
    ]


def test_rooms_are_known_and_there() -> None:
    rooms = {room for room, _ in files()}
    assert len(files()) > 50
    assert rooms <= set(ALLOWED), f"new rooms need a place: {rooms - set(ALLOWED)}"


@pytest.mark.parametrize("room", sorted(ALLOWED))
def test_imports_only_what_lies_before_it(room: str) -> None:
    wrong = []
    for own, path in files():
        if own != room:
            continue
        for name in imports(path):
            top, _, rest = name.partition(".")
            other = rest.partition(".")[0]
            if top == "asr" and other in ALLOWED and other not in ALLOWED[room] | {room}:
                wrong.append(f"{path.relative_to(ROOT)} imports {name}")
            if top in ONLY_IN and room not in ONLY_IN[top]:
                wrong.append(f"{path.relative_to(ROOT)} imports {name}")
    assert not wrong, "\n".join(wrong)


def test_importing_the_package_is_cheap() -> None:
    code = "import sys, asr; dir(asr); sys.exit('torch' in sys.modules or 'numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_names_for_people_who_write_code_are_there() -> None:
    for name in asr.__all__:
        assert getattr(asr, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'Listener'"):
        _ = asr.Listener
