"""One token a character."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from asr.text.tokenizer import FILE, SPECIALS, UNK, Tokenizer, by_count


class CharacterTokenizer(Tokenizer):
    """Ids 3, 4, ... are the ``characters`` in the order given; a space is one like any other.

    Case and form are the caller's: a text is encoded as given, code point by code point.
    ValueError for characters that are none or repeat.
    """

    kind = "characters"

    def __init__(self, characters: str) -> None:
        repeated = sorted(c for c in set(characters) if characters.count(c) > 1)
        if not characters or repeated:
            raise ValueError(f"characters must be one or more, each once; repeated: {repeated}")
        self.characters = characters
        self._ids = {c: id for id, c in enumerate(characters, len(SPECIALS))}

    @classmethod
    def train(cls, texts: Iterable[str]) -> CharacterTokenizer:
        """The characters that occur in the texts, by code point."""
        return cls("".join(sorted(set().union(*texts))))

    @property
    def vocabulary_size(self) -> int:
        return len(SPECIALS) + len(self.characters)

    def encode(self, text: str) -> list[int]:
        return [self._ids.get(c, UNK) for c in text]

    def token(self, id: int) -> str:
        if 0 <= id < len(SPECIALS):
            return SPECIALS[id]
        return "␣" if self._surface(id) == " " else self._surface(id)

    def missing(self, texts: Iterable[str]) -> dict[str, int]:
        return by_count(c for text in texts for c in text if c not in self._ids)

    def files(self) -> dict[str, bytes]:
        return {FILE: self._describe(characters=self.characters)}

    @classmethod
    def _restore(
        cls, description: Mapping[str, Any], files: Mapping[str, bytes]
    ) -> CharacterTokenizer:
        if not isinstance(description["characters"], str):
            raise TypeError("characters must be a string")
        return cls(description["characters"])

    def _surface(self, id: int) -> str:
        if not 0 <= id < self.vocabulary_size:
            raise ValueError(f"id must be in 0..{self.vocabulary_size - 1}, not {id}")
        return "" if id < len(SPECIALS) else self.characters[id - len(SPECIALS)]
