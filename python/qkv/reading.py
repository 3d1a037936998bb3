"""Arrays that a pass left, by the names of their taps."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any, Callable, Iterable, Iterator, Optional, Union

import numpy as np

from .arrays import read_only
from .errors import InputError
from .tables import Table

Array = "np.ndarray[Any, np.dtype[np.float32]]"
Hook = Callable[[str, Any], Any]
Hooks = Union[dict[str, Hook], Iterable[tuple[str, Hook]]]


_MOST_NAMED = 40


class Reading(Mapping):
    """What Model.read() kept: a mapping of names and arrays, which are yours, without a copy.

    A name of TransformerLens finds its array too, in our shape: [token, head, key].

    >>> import qkv
    >>> model = qkv.Model("world", threads=1)
    >>> seen = model.read("Mia has a cat.", keep="attn.probs,final")
    >>> seen["0.attn.probs"].shape == (len(seen.ids), model.info.heads, len(seen.ids))
    True
    >>> seen["0.attn.probs"] is seen["blocks.0.attn.hook_pattern"]
    True
    """

    def __init__(self, made: dict[str, Any], aliases: dict[str, str]) -> None:
        self.ids: list[int] = made["ids"]
        self.source: list[int] = made["source"]  # of a model that translates
        self.losses: Optional[Any] = made["losses"]  # -log p of ids[1], ids[2], ... in nats, if asked for
        self._arrays: dict[str, Any] = made["arrays"]
        self._aliases = aliases

    def __getitem__(self, name: str) -> Any:
        found = self._arrays.get(name)
        if found is None:
            found = self._arrays.get(self._aliases.get(name, ""))
        if found is None:
            if not self._arrays:
                raise KeyError(f"no array {name} was kept: nothing was; name taps in keep")
            known = [*self._arrays, *(theirs for theirs, ours in self._aliases.items() if ours in self._arrays)]
            raise no_such(f"no array {name} was kept", name, known)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def __repr__(self) -> str:
        shapes = ", ".join(f"{name} {list(array.shape)}" for name, array in list(self._arrays.items())[:4])
        more = ", ..." if len(self) > 4 else ""
        return f"<qkv.Reading of {len(self.ids)} tokens: {shapes}{more}>"


def no_such(what: str, name: Any, known: Iterable[str]) -> KeyError:
    """That there is nothing of this name, the nearest that there is, and the others."""
    names = list(known)
    near = difflib.get_close_matches(str(name), names, 1, 0.5)
    meant = f", did you mean {near[0]}?" if near else ";"
    rest = ", ..." if len(names) > _MOST_NAMED else ""
    return KeyError(f"{what}{meant} there are: {', '.join(names[:_MOST_NAMED])}{rest}")


def seen_only(hooks: list[tuple[str, Hook]]) -> list[tuple[str, Hook]]:
    """Functions of `see`: what they are shown says so where they try to change it."""

    def shown(function: Hook) -> Hook:
        return lambda name, array: function(name, read_only(array, f"give the function to edit instead: edit={{{name!r}: ...}}"))

    return [(taps, shown(function)) for taps, function in hooks]


def pairs(hooks: Optional[Hooks], what: str) -> list[tuple[str, Hook]]:
    """Hooks as a list of pairs (taps, function)."""
    if hooks is None:
        return []
    listed = list(hooks.items()) if isinstance(hooks, Mapping) else hooks
    if isinstance(listed, str) or not isinstance(listed, Iterable):
        raise TypeError(f"{what} is {hooks!r:.60}; give a dict or a list of pairs: taps and a function")
    made = []
    for pair in listed:
        if not isinstance(pair, (tuple, list)) or len(pair) != 2 or not isinstance(pair[0], str) or not callable(pair[1]):
            raise TypeError(f"{what} has {pair!r:.60}; give pairs of taps and a function, as ('0.attn.z', f)")
        made.append((pair[0], pair[1]))
    return made


def taps_text(keep: Union[None, str, Iterable[str]]) -> str:
    """Names of taps as the library reads them: one str, with commas."""
    if keep is None:
        return ""
    if isinstance(keep, str):
        return keep
    names = list(keep)
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"keep has {name!r:.60}; give names of taps, as '0.attn.q'")
    return ",".join(names)


def taps_table(taps: list[tuple[Any, ...]]) -> Table:
    names = ("name", "axes", "sizes", "meaning", "transformer_lens", "editable")
    rows = []
    for tap in taps:
        row = dict(zip(names, tap))
        row["transformer_lens"] = full_name(row["name"], row["transformer_lens"])
        rows.append(row)
    return Table(rows)


def full_name(name: str, site: str) -> str:
    """blocks.3.attn.hook_q of 3.attn.q and attn.hook_q."""
    if not site:
        return ""
    parts = name.split(".")
    stack = parts[0] if parts[0] in ("enc", "dec", "cross") else ""
    layer = parts[1 if stack else 0]
    if not layer.isdigit():
        if site.startswith("ln_final") and stack in ("enc", "dec"):
            return f"{'encoder' if stack == 'enc' else 'decoder'}_final_ln.hook_normalized"
        return site if stack in ("", "dec") else ""
    if stack == "cross":
        if site == "hook_attn_out":
            return f"decoder.{layer}.hook_cross_attn_out"
        if site == "hook_resid_pre":
            return f"decoder.{layer}.hook_resid_mid"
        return f"decoder.{layer}.cross_{site}"
    if stack == "dec" and site == "hook_resid_mid":
        site = "hook_resid_mid_cross"
    return f"{ {'': 'blocks', 'enc': 'encoder', 'dec': 'decoder'}[stack] }.{layer}.{site}".replace(" ", "")


def check_shape(name: str, given: Any, wanted: tuple[int, ...]) -> Any:
    """An array of this shape, or an InputError with both shapes."""
    array = np.asarray(given, dtype=np.float32)
    if array.shape != wanted:
        raise InputError(
            f"the function of {name} returned an array of {list(array.shape)} for one of {list(wanted)}",
            "return one of the same shape, or change the one it is given",
        )
    return array
