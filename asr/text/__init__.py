"""Texts and tokens: normalisation, and the tokenizers that turn text into ids and back."""

from asr.text.characters import CharacterTokenizer
from asr.text.normalise import normalise
from asr.text.subwords import SentencePieceTokenizer
from asr.text.tokenizer import BLANK, EOS, UNK, Tokenizer

__all__ = [
    "BLANK",
    "EOS",
    "UNK",
    "CharacterTokenizer",
    "SentencePieceTokenizer",
    "Tokenizer",
    "normalise",
]
