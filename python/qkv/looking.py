"""One text through a model, and everything that happens inside: what qkv look shows."""

from __future__ import annotations

import os
from typing import Any, Iterator, Union

from . import _core as native
from .arrays import read_only
from .errors import InputError
from .reading import no_such
from .reports import Reported
from .stored import StoredLook, state_of_look
from .tables import Table


class Looked(Reported):
    """A mapping of names and arrays: those of qkv look --npz, as views that cannot be written to.

    In a notebook it shows the report page: guesses of every layer, the wall of heads, one token's path.

    >>> import qkv
    >>> model = qkv.Model("world", threads=1)
    >>> seen = model.look("Mia has a cat.")
    >>> seen["L0.probs"].shape == (len(seen.ids), model.info.heads, len(seen.ids))
    True
    >>> seen["L0.probs"].flags.writeable
    False
    >>> "".join(seen.tokens).endswith("Mia has a cat.")
    True
    """

    _core: Union[native.Looked, StoredLook]
    _command = "qkv look"

    def __init__(self, core: Union[native.Looked, StoredLook]) -> None:
        self._core = core
        self._names = core.names()

    @property
    def tokens(self) -> list[str]:
        """As they read; empty where an earlier one shows the whole character."""
        return self._core.tokens()

    @property
    def ids(self) -> list[int]:
        return self._core.ids()

    def __getitem__(self, name: str) -> Any:
        if name not in self._names:
            raise no_such(f"there is no array {name}", name, self._names)
        return read_only(self._core.view(name), "change a copy, array.copy(); Model.read(edit=...) changes what a model computes")

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def ladder(self) -> Table:
        """The prediction at every level, for every token, if the model ended there.

        >>> import qkv
        >>> model = qkv.Model("world", threads=1)
        >>> seen = model.look("Emma gave a pink kite to Tom. What did Emma give to Tom? Emma gave a")
        >>> after = [row["guess"] for row in seen.ladder() if row["token"] == len(seen.ids) - 1]
        >>> len(after) == 1 + model.info.layers, after[-1]  # the embedding and every layer; the last is the output
        (True, ' pink')
        """
        rows = []
        for level in range(self._core.levels()):
            for token, (guesses, entropy, kl, rank) in enumerate(self._core.ladder(level)):
                top = guesses[0] if guesses else (-1, 0.0, "")
                rows.append(
                    {
                        "level": level,
                        "token": token,
                        "guess": top[2],
                        "guess_id": top[0],
                        "p": top[1],
                        "rank": rank,
                        "entropy": entropy,
                        "kl": kl,
                    }
                )
        return Table(rows)

    def guesses(self, level: int, token: int) -> Table:
        """The most likely next tokens at one level (-1: the output) after one token."""
        levels = self._core.levels()
        rungs = self._core.ladder(level + levels if level < 0 else level)
        if not -len(rungs) <= token < len(rungs):
            raise InputError(f"no token {token}: there are {len(rungs)}", "tokens are counted from 0; -1 is the last")
        return Table({"id": i, "p": p, "text": text} for i, p, text in rungs[token][0])

    def save_npz(self, path: Union[str, "os.PathLike[str]"]) -> None:
        self._core.save_npz(os.fspath(path))

    def __reduce__(self) -> Any:
        return _stored, (state_of_look(self._core),)

    def __repr__(self) -> str:
        return f"<qkv.Looked at {len(self.ids)} tokens: {len(self)} arrays>"


def _stored(state: dict[str, Any]) -> Looked:
    return Looked(StoredLook(state))
