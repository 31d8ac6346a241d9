"""Pieces of words, by the sentencepiece library (Kudo & Richardson 2018)."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from sentencepiece import SentencePieceProcessor, SentencePieceTrainer

from asr.errors import InputError
from asr.text.tokenizer import BLANK, EOS, FILE, SPECIALS, UNK, Tokenizer, by_count

MODEL = "tokenizer.model"
_SPACE = "▁"


class SentencePieceTokenizer(Tokenizer):
    """The pieces of a serialised SentencePiece ``model`` whose first ids are our specials.

    Make one with :meth:`train`. InputError for bytes that are no such model, and for a model that
    numbers its specials in another way.
    """

    kind = "sentencepiece"

    def __init__(self, model: bytes) -> None:
        self._model = model
        self._processor = SentencePieceProcessor()
        try:
            loaded = bool(model) and self._processor.LoadFromSerializedProto(model)
        except RuntimeError:
            loaded = False
        if not loaded:
            raise InputError(f"{MODEL}: not a SentencePiece model")
        p = self._processor
        ids = (p.pad_id(), p.eos_id(), p.unk_id(), p.bos_id())
        if ids != (BLANK, EOS, UNK, -1):
            raise InputError(
                f"{MODEL}: ids of pad, eos, unk, bos are {ids}; "
                f"must be {BLANK}, {EOS}, {UNK} and no bos"
            )
        odd = range(len(SPECIALS), p.get_piece_size())
        if any(p.is_byte(id) or p.is_control(id) for id in odd):
            raise InputError(
                f"{MODEL}: has byte or further control pieces, which are not supported"
            )

    @classmethod
    def train(
        cls,
        texts: Iterable[str],
        vocabulary_size: int,
        *,
        model_type: Literal["unigram", "bpe"] = "unigram",
    ) -> SentencePieceTokenizer:
        """Learn pieces from texts as given (no Unicode or case folding); every character is kept.

        ``vocabulary_size`` V counts the three specials. InputError when the texts cannot fill it.
        """
        written = io.BytesIO()
        try:
            SentencePieceTrainer.train(
                sentence_iterator=iter(texts),
                model_writer=written,
                vocab_size=vocabulary_size,
                model_type=model_type,
                normalization_rule_name="identity",
                character_coverage=1.0,
                max_sentence_length=2**20,  # bytes; longer lines are dropped without a word
                num_threads=1,
                minloglevel=2,
                pad_id=BLANK,
                eos_id=EOS,
                unk_id=UNK,
                bos_id=-1,
                pad_piece=SPECIALS[BLANK],
                eos_piece=SPECIALS[EOS],
                unk_piece=SPECIALS[UNK],
            )
        except RuntimeError as error:
            reason = str(error).rsplit("] ", 1)[-1].strip() or "the texts are empty"
            raise InputError(f"vocabulary_size {vocabulary_size}: {reason}") from None
        return cls(written.getvalue())

    @property
    def vocabulary_size(self) -> int:
        return self._processor.get_piece_size()

    def encode(self, text: str) -> list[int]:
        return self._processor.encode(text)

    def decode(self, ids: Iterable[int]) -> str:
        return super().decode(ids).removeprefix(" ")

    def token(self, id: int) -> str:
        if not 0 <= id < self.vocabulary_size:
            raise ValueError(f"id must be in 0..{self.vocabulary_size - 1}, not {id}")
        return self._processor.id_to_piece(id)

    def missing(self, texts: Iterable[str]) -> dict[str, int]:
        id_of = self._processor.piece_to_id
        pieces = (piece for text in texts for piece in self._processor.encode(text, out_type=str))
        return by_count(c for piece in pieces if id_of(piece) == UNK for c in piece)

    def files(self) -> dict[str, bytes]:
        return {FILE: self._describe(model=MODEL), MODEL: self._model}

    @classmethod
    def _restore(
        cls, description: Mapping[str, Any], files: Mapping[str, bytes]
    ) -> SentencePieceTokenizer:
        if description["model"] != MODEL:
            raise InputError(f"{FILE}: model must be {MODEL!r}")
        if MODEL not in files:
            raise InputError(f"{MODEL} is missing")
        return cls(files[MODEL])

    def _surface(self, id: int) -> str:
        return "" if 0 <= id < len(SPECIALS) else self.token(id).replace(_SPACE, " ")
