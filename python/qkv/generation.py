"""Texts that a model writes."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any, Iterator, Optional

from . import _core as native
from .texts import of_this_process


@dataclass(frozen=True)
class Token:
    """One written token. logprob is 0 and most_likely empty unless logprobs were asked for."""

    id: int
    logprob: float = 0.0
    most_likely: tuple[tuple[int, float], ...] = ()


def tokens_of(parts: tuple[list[int], list[float], list[Any]]) -> list[Token]:
    return [Token(i, p, tuple(most)) for i, p, most in zip(*parts)]


@dataclass(frozen=True)
class Generated:
    """What a model wrote after its prompt."""

    text: str
    tokens: list[Token] = field(repr=False)
    ended: str  # stopped, length, context or cancelled
    stop: str = field(repr=False)  # the stop string that ended it, if one did
    prompt_tokens: int = field(repr=False)
    cached_tokens: int = field(repr=False)  # of the prompt: known from an earlier text, not read again
    read_seconds: float = field(repr=False)  # of the prompt
    write_seconds: float = field(repr=False)  # from the first token to the last

    @property
    def ids(self) -> list[int]:
        return [token.id for token in self.tokens]

    def __str__(self) -> str:
        return self.text


def generated(made: dict[str, Any]) -> Generated:
    return Generated(
        made["text"],
        tokens_of(made["tokens"]),
        made["ended"],
        made["stop"],
        made["prompt_tokens"],
        made["cached_tokens"],
        made["read_seconds"],
        made["write_seconds"],
    )


@dataclass(frozen=True)
class Piece:
    """What became known since the last one: whole characters, and the tokens that show them. Either may be empty."""

    text: str
    tokens: list[Token] = field(repr=False)

    def __str__(self) -> str:
        return self.text


class Generation:
    """A text that is being written, made by Model.start(): an iterator of pieces.

    Texts of one model that are written at the same time share passes; their tokens do not depend on it. One thread
    iterates; cancel() is for any thread at any time. What is dropped before its end is cancelled.

    >>> import qkv
    >>> model = qkv.Model("world", threads=1)
    >>> writing = model.start("Mia has", max_new=5)
    >>> pieces = [piece.text for piece in writing]
    >>> "".join(pieces) == model.generate("Mia has", max_new=5).text
    True
    >>> writing.result().ended
    'length'
    """

    def __init__(self, core: native.Generation) -> None:
        self._generation = core
        self._process = os.getpid()

    @property
    def _core(self) -> native.Generation:
        return of_this_process(self._generation, self._process, "text")

    def __iter__(self) -> Iterator[Piece]:
        return self

    def __next__(self) -> Piece:
        piece = self._core.next()
        if piece is None:
            raise StopIteration
        return Piece(piece[0], tokens_of(piece[1]))

    def wait(self) -> Generated:
        """Writes to the end."""
        for _ in self:
            pass
        return self.result()

    def result(self) -> Generated:
        """What is written so far."""
        return generated(self._core.result())

    @property
    def ended(self) -> bool:
        return self._core.ended()

    def cancel(self) -> None:
        """Ends the text after the pass that runs. From any thread."""
        self._core.cancel()


@dataclass(frozen=True)
class Translation:
    text: str
    score: float  # with the length penalty
    ids: list[int] = field(repr=False)  # with the start and the end token

    def __str__(self) -> str:
        return self.text


def stops(stop: Optional[Any]) -> Optional[list[str]]:
    """Stop strings: one or several."""
    return [stop] if isinstance(stop, str) else stop
