"""What every tokenizer is to the rest of the project: text to ids and back, words to spans.

Ids 0, 1 and 2 mean the same everywhere, so that losses and searches never ask which tokenizer
they serve. Nothing here imports torch.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from asr.errors import InputError

#: CTC's blank; never written by the speller.
BLANK = 0
#: Ends a text; also what the speller is fed first (``<sos>``).
EOS = 1
#: Stands for every character the tokenizer lacks.
UNK = 2
SPECIALS = ("<blank>", "<eos>", "<unk>")

FILE = "tokenizer.json"
_FORMAT = 1
_SIZE_LIMIT = 64 * 2**20  # bytes; real ones stay below 2 MB


class Tokenizer(ABC):
    """Ids of texts. A subclass sets ``kind``, which is how a saved one is found again."""

    kind: ClassVar[str] = ""
    kinds: ClassVar[dict[str, type[Tokenizer]]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        Tokenizer.kinds[cls.kind] = cls

    @property
    @abstractmethod
    def vocabulary_size(self) -> int:
        """V, the three specials included."""

    @abstractmethod
    def encode(self, text: str) -> list[int]:
        """Ids of a text as given (no normalisation); what the vocabulary lacks becomes ``UNK``."""

    @abstractmethod
    def token(self, id: int) -> str:
        """How a token is shown to people: a space is visible, specials as ``<eos>``."""

    @abstractmethod
    def missing(self, texts: Iterable[str]) -> dict[str, int]:
        """Characters that only ``UNK`` can stand for, and how often; frequent first."""

    @abstractmethod
    def files(self) -> dict[str, bytes]:
        """All it takes to make it again: file name to content, ``tokenizer.json`` among them."""

    @classmethod
    @abstractmethod
    def _restore(cls, description: Mapping[str, Any], files: Mapping[str, bytes]) -> Tokenizer:
        """Undo :meth:`files`; raises InputError, or KeyError for what is not there."""

    @abstractmethod
    def _surface(self, id: int) -> str:
        """What a token adds to the text, spaces as spaces; empty for specials."""

    def decode(self, ids: Iterable[int]) -> str:
        """The text of ids; specials never show in it."""
        return "".join(self._surface(id) for id in ids)

    def words(self, ids: Sequence[int]) -> list[tuple[str, int, int]]:
        """``(word, first, end)`` of each word: ``ids[first:end]`` are the tokens that spell it."""
        found: list[tuple[str, int, int]] = []
        word, first, end = "", 0, 0
        for index, id in enumerate(ids):
            for character in self._surface(id):
                if not character.isspace():
                    if not word:
                        first = index
                    word, end = word + character, index + 1
                elif word:
                    found.append((word, first, end))
                    word = ""
        if word:
            found.append((word, first, end))
        return found

    @property
    def fingerprint(self) -> str:
        """SHA-256 over the files: equal for tokenizers that give the same ids."""
        digest = hashlib.sha256()
        for name, content in sorted(self.files().items()):
            digest.update(f"{name}\0{len(content)}\0".encode())
            digest.update(content)
        return digest.hexdigest()

    def save(self, folder: str | Path) -> None:
        """Write :meth:`files` into a folder, which is made if need be."""
        Path(folder).mkdir(parents=True, exist_ok=True)
        for name, content in self.files().items():
            (Path(folder) / name).write_bytes(content)

    @staticmethod
    def load(folder: str | Path) -> Tokenizer:
        """The tokenizer that was saved there; InputError names what is wrong with a file."""
        folder = Path(folder)
        if not (folder / FILE).is_file():
            raise InputError(f"{folder / FILE}: no such file; a saved tokenizer has one")
        files = {}
        for path in (folder / FILE, *sorted(folder.glob("*.model"))):
            if path.stat().st_size > _SIZE_LIMIT:
                raise InputError(f"{path}: over {_SIZE_LIMIT >> 20} MiB, which no tokenizer needs")
            files[path.name] = path.read_bytes()
        return Tokenizer.from_files(files, where=str(folder))

    @staticmethod
    def from_files(files: Mapping[str, bytes], *, where: str = "tokenizer") -> Tokenizer:
        """Undo :meth:`files`; ``where`` is named in an InputError."""
        try:
            description = json.loads(files[FILE].decode())
            if description["format"] != _FORMAT:
                raise InputError(
                    f"{FILE}: format {description['format']!r}; this version reads {_FORMAT}"
                )
            if description["kind"] not in Tokenizer.kinds:
                valid = ", ".join(sorted(Tokenizer.kinds))
                raise InputError(f"{FILE}: unknown kind {description['kind']!r}; valid: {valid}")
            return Tokenizer.kinds[description["kind"]]._restore(description, files)
        except KeyError as error:
            raise InputError(f"{where}: {FILE}: {error.args[0]!r} is missing") from None
        except InputError as error:
            raise InputError(f"{where}: {error}") from None
        except (ValueError, TypeError, RecursionError) as error:
            reason = " ".join(str(error).split())
            raise InputError(f"{where}: {FILE} is not a saved tokenizer ({reason})") from None

    def _describe(self, **fields: Any) -> bytes:
        content = {"format": _FORMAT, "kind": self.kind, **fields}
        return (json.dumps(content, ensure_ascii=False, indent=2) + "\n").encode()


def by_count(characters: Iterable[str]) -> dict[str, int]:
    """Count, most frequent first and by code point among equals."""
    return dict(sorted(Counter(characters).items(), key=lambda item: (-item[1], item[0])))
