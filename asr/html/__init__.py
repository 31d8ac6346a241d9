"""What every HTML page of this product shares: one look, and safety whatever the text.

A page is one file. Its content security policy names its style and its scripts by their hash and
forbids all else, so that nothing is loaded, nothing is sent, and no text that came from a file or
a model can become markup or code: jinja2 escapes it in the markup and in embedded JSON alike.
Imports neither torch nor any other room.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import jinja2
from markupsafe import Markup

# They spell words in Persian and Indic scripts, and join emoji.
_JOINERS = "\u200c\u200d"


def render(
    package: str, template: str, *, styles: Sequence[str], scripts: Sequence[str], **values: object
) -> str:
    """A template of ``package`` (its folder ``templates``, then this one's) as a whole page.

    The named styles and scripts are joined to one each. The template gets them as ``style`` and
    ``script``, and as ``style_hash`` and ``script_hash`` what its policy has to name.
    """
    style, script = (
        "\n".join(asset(package, name) for name in names) for names in (styles, scripts)
    )
    return (
        environment(package)
        .get_template(template)
        .render(
            **values,
            style=Markup(style),
            script=Markup(script),
            style_hash=digest(style),
            script_hash=digest(script),
        )
    )


@lru_cache(maxsize=4)
def environment(package: str) -> jinja2.Environment:
    """Templates of ``package``, with the shared ones behind them; every value is escaped."""
    made = jinja2.Environment(
        loader=jinja2.ChoiceLoader(
            [jinja2.PackageLoader(package), jinja2.PackageLoader("asr.html")]
        ),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    made.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
    made.filters["visible"] = visible
    return made


@lru_cache(maxsize=16)
def asset(package: str, name: str) -> str:
    """A style or script as it stands in its file."""
    loader = environment(package).loader
    assert loader is not None
    return loader.get_source(environment(package), name)[0]


def digest(text: str) -> str:
    """How a content security policy names an inline style or script."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def write(path: Path, text: str) -> None:
    """Write a page in one step, so that a reader never sees half of one. Raises OSError.

    Links and devices are written through, never replaced.
    """
    if path.is_symlink() or (path.exists() and not path.is_file()):
        path.write_text(text, encoding="utf-8", errors="backslashreplace")
        return
    partial = path.with_name(f".{path.name}.partial")
    try:
        # A file name's bytes that are not text are shown as escapes.
        partial.write_text(text, encoding="utf-8", errors="backslashreplace")
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def visible(text: str) -> str:
    """``text`` with what cannot be seen - controls, direction marks, halves of characters, zero
    widths - written out as ``⟨U+202E⟩``, so that it neither hides nor turns what stands around."""
    if text.isprintable() and text.isascii():
        return text
    return re.sub(r"[^\x20-\x7e]", lambda found: _shown(found[0]), text)


def _shown(character: str) -> str:
    unseen = unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp")
    if unseen and character not in _JOINERS:
        return f"⟨U+{ord(character):04X}⟩"
    return character
