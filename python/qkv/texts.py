"""What is given to a model: texts, and checks of types that say what to give."""

from __future__ import annotations

import os
from typing import Any, Sequence, Tuple, TypeVar, Union

import numpy as np

from .errors import ClosedError

Ids = Union[Sequence[int], "np.ndarray[Any, Any]"]
Text = Union[str, Ids, Tuple[str, str], Tuple[Ids, Ids]]
Data = Union[str, Sequence[Text]]

T = TypeVar("T")

_WORDS = {str: "a str", int: "a whole number", float: "a number", bool: "True or False"}


def checked(name: str, value: Any, kind: type[T]) -> T:
    """The value, or a TypeError that says what it is and what it should be."""
    fine = isinstance(value, kind) or (kind is float and isinstance(value, int)) or (kind is int and _is_whole(value))
    if not fine or (kind is int and isinstance(value, bool)):
        raise TypeError(f"{name} is {value!r:.60} ({type(value).__name__}); give {_WORDS.get(kind, kind.__name__)}")
    if kind is int and not -(2**63) <= value < 2**63:
        raise TypeError(f"{name} is {value!r:.60}; give a whole number below 2**63")
    if kind is str and not value.isascii():
        value.encode()  # a UnicodeEncodeError for half a surrogate pair
    return int(value) if kind is int else value  # type: ignore[return-value, call-overload]


def of_this_process(held: T, process: int, what: str) -> T:
    """What is held, unless it came here by a fork: the threads it computes with did not."""
    if os.getpid() != process:
        raise ClosedError(
            f"the {what} was made by another process, whose threads are not in this one",
            "make it after the fork, or start processes with multiprocessing's 'spawn'",
        )
    return held


def _is_whole(value: Any) -> bool:
    return isinstance(value, np.integer)


def is_many(texts: Any) -> bool:
    """Whether this is a list of texts rather than one text: ids are one text, lists of them and of str are many."""
    if isinstance(texts, np.ndarray):
        return texts.ndim == 2
    return isinstance(texts, list) and not (texts and isinstance(texts[0], (int, np.integer)))
