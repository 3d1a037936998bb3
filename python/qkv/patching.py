"""Activation patching: which layer, position and head carries what tells two texts apart."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Iterator, Union

import numpy as np

from . import _core as native
from .reading import no_such
from .reports import Reported
from .stored import StoredPatch, state_of_patch
from .tables import Table


@dataclass(frozen=True, eq=False)
class PatchMap:
    """One kind of place, layer by position; or single heads at all positions at once, layer by head."""

    site: str  # "resid.pre", "attn.out", "mlp.out", "attn.z"
    stack: str  # "decoder", "encoder", "cross"
    across: str  # what the columns are: "tokens", "source", "heads"
    rows: list[str] = field(repr=False)  # L0, L1, ...; of heads by position L1H2
    restored: Any = field(repr=False)  # an array [rows, columns]: 0 as corrupt, 1 as clean; NaN: no such head


class Patched(Reported):
    """What comes back of the clean answer: restored = (m(patched) - m(corrupt)) / (m(clean) - m(corrupt)), where m is the
    logit of `answer` less that of `wrong` after token `token`.

    A mapping of names and arrays: "resid.pre", "attn.out" and "mlp.out" are [layer, position], "heads" is [layer, head];
    with heads by name also "heads by position". Of a model that translates the names begin with the stack:
    "encoder.resid.pre", "cross.heads".

    In a notebook it shows the page of qkv patch --html.
    """

    _core: Union[native.Patched, StoredPatch]
    _command = "qkv patch"

    def __init__(self, core: Union[native.Patched, StoredPatch]) -> None:
        self._core = core
        self.maps = [PatchMap(*one) for one in core.maps()]
        self.clean_ids, self.corrupt_ids = core.clean_ids, core.corrupt_ids
        self.token, self.answer, self.wrong = core.token, core.answer, core.wrong
        self.clean, self.corrupt = core.clean, core.corrupt
        several = len({one.stack for one in self.maps}) > 1
        self._named = {_name(one, several): one for one in self.maps}

    def __getitem__(self, name: str) -> Any:
        if name not in self._named:
            raise no_such(f"there is no map {name}", name, list(self._named))
        return self._named[name].restored

    def __iter__(self) -> Iterator[str]:
        return iter(self._named)

    def __len__(self) -> int:
        return len(self._named)

    def table(self) -> Table:
        """Every place that was patched, one row each: site, row (its layer or head), column, and what came back."""
        return Table(
            {"map": name, "row": row, "column": column, "restored": float(value)}
            for name, one in self._named.items()
            for row, values in zip(one.rows, one.restored)
            for column, value in enumerate(values)
            if not np.isnan(value)
        )

    def __reduce__(self) -> Any:
        return _stored, (state_of_patch(self._core),)

    def __repr__(self) -> str:
        return f"<qkv.Patched: {len(self.table())} places in {len(self)} maps, after token {self.token}>"


def _name(one: PatchMap, several: bool) -> str:
    name = one.site
    if one.site == "attn.z":
        name = "heads" if one.across == "heads" else "heads by position"
    return f"{one.stack}.{name}" if several else name


def _stored(state: dict[str, Any]) -> Patched:
    return Patched(StoredPatch(state))
