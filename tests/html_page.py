"""Reading an HTML page as a browser would take it apart."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path

VOID = {"meta", "input", "br", "img", "hr", "link"}


class Parsed(HTMLParser):
    """Elements as (tag, attributes), text by tag; every tag must be closed in order."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict]] = []
        self.text: list[tuple[str, str]] = []
        self.open: list[str] = []
        self.feed(html)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if data.strip():
            self.text.append((self.open[-1], data.strip()))

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]

    def data(self):
        return [json.loads(text) for tag, text in self.text if tag == "script" and text[0] == "{"]


def shown(path: str, tag: str = "h2") -> list[str]:
    """The texts of a page's elements of that name."""
    return [text for name, text in Parsed(Path(path).read_text()).text if name == tag]
