"""Text to ids and back, exactly as Hugging Face's library does it."""

from __future__ import annotations

import os
from typing import Optional, Sequence, Union

from . import _core as native
from .errors import InputError
from .texts import Ids, checked


class Tokenizer:
    """A tokenizer: of a model folder, of a built-in model by its name, or tokenizer.json.

    >>> import qkv
    >>> tokenizer = qkv.Tokenizer("world")
    >>> ids = tokenizer.encode("Mia has a cat.")
    >>> tokenizer.decode(ids, skip_specials=True)
    'Mia has a cat.'
    >>> tokenizer.decode(tokenizer.encode("小明有一只猫。"), skip_specials=True)
    '小明有一只猫。'
    """

    def __init__(self, path: Union[str, "os.PathLike[str]", native.Tokenizer]) -> None:
        self._core = path if isinstance(path, native.Tokenizer) else native.Tokenizer(os.fspath(path))

    def encode(self, text: str, plain: bool = False) -> list[int]:
        """The ids of a text, with the special tokens its model expects around it unless `plain`.

        >>> import qkv
        >>> tokenizer = qkv.Tokenizer("world")
        >>> len(tokenizer.encode("a cat", plain=True)) <= len(tokenizer.encode("a cat"))
        True
        """
        return self._core.encode(checked("text", text, str), plain)

    def decode(self, ids: Ids, skip_specials: bool = False) -> str:
        """The text of ids. What ends within a character ends with a replacement sign."""
        return self._core.decode(ids, skip_specials)

    def token(self, id: int) -> str:
        """A token as its vocabulary writes it."""
        return self._core.token(_id(id))

    def bytes(self, id: int) -> bytes:
        """What a token decodes to; possibly a part of a character."""
        return self._core.bytes(_id(id))

    def id(self, token: str) -> Optional[int]:
        """The id of a token as the vocabulary writes it, or None."""
        return self._core.id(checked("token", token, str))

    def is_special(self, id: int) -> bool:
        return self._core.is_special(_id(id))

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """One str for each id; several tokens that show one character together have it at the first of them.

        >>> import qkv
        >>> tokenizer = qkv.Tokenizer("world")
        >>> "".join(tokenizer.pieces(tokenizer.encode("一只猫", plain=True)))
        '一只猫'
        """
        out = [""] * len(ids)
        for text, first, _ in self._core.spans(ids):
            out[first] = text
        return out

    def __contains__(self, id: object) -> bool:
        return isinstance(id, int) and 0 <= id < 2**31 and self._core.has(id)

    def __len__(self) -> int:
        """The greatest id + 1."""
        return self._core.size()

    def __repr__(self) -> str:
        return f"<qkv.Tokenizer of {len(self)} tokens>"


def _id(id: int) -> int:
    id = checked("id", id, int)
    if not -(2**31) <= id < 2**31:
        raise InputError(f"no token has the id {id}", "ids are below 2147483648")
    return id
