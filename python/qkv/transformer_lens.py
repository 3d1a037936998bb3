"""The calls of TransformerLens, with its names and shapes: docs/from-transformerlens.md has the table.

Arrays have its batch dimension, of size 1: hook_q is [batch, position, head, width], hook_pattern [batch, head, query,
key]. They are views of ours, without a copy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Callable, Iterator, Union

import numpy as np

from .arrays import ReadOnly, read_only
from .errors import InputError
from .reading import check_shape, no_such
from .texts import Text

if TYPE_CHECKING:
    from .inside import Inside

NamesFilter = Union[None, str, Iterable[str], Callable[[str], bool]]

# cache["pattern", 3]: short names of hooks within a block.
_SHORT = {
    "q": "attn.hook_q",
    "k": "attn.hook_k",
    "v": "attn.hook_v",
    "z": "attn.hook_z",
    "pattern": "attn.hook_pattern",
    "attn_scores": "attn.hook_attn_scores",
    "attn": "attn.hook_pattern",
    "pre": "mlp.hook_pre",
    "post": "mlp.hook_post",
}
_STACKS = {"encoder": "enc", "decoder": "dec"}  # cache["pattern", 0, "encoder"]
_CROSS = ("cross", "cross_attn")
_KEYS_INSIDE = ("attn.probs", "attn.scores")  # ours are [query, head, key]


def to_theirs(name: str, array: Any) -> Any:
    """Our array as theirs: a view."""
    if name.endswith(_KEYS_INSIDE):
        array = array.transpose(1, 0, 2)
    return array[None]


_CHANGE = "change hook_q, hook_k, hook_v or hook_z instead, or cut the head: cut='L3H7'"


class HookPoint:
    """What a hook is told about where it is: hook.name and hook.layer()."""

    def __init__(self, name: str) -> None:
        self.name = name

    def layer(self) -> int:
        parts = self.name.split(".")
        if len(parts) < 2 or not parts[1].isdigit():
            raise InputError(f"{self.name} belongs to no layer", "hook.layer() is for hooks of a block; this one has a name alone")
        return int(parts[1])

    def __repr__(self) -> str:
        return f"HookPoint({self.name!r})"


class ActivationCache(Mapping):
    """Arrays of one pass by the names of TransformerLens.

    >>> import qkv
    >>> model = qkv.Model("world", threads=1)
    >>> logits, cache = model.run_with_cache("Mia has a cat.")
    >>> cache["blocks.1.attn.hook_pattern"].shape == cache["pattern", 1].shape
    True
    >>> cache["pattern", 1].sum(axis=-1).round(3).min()
    1.0
    >>> cache["resid_post", -1].shape == cache[f"blocks.{model.info.layers - 1}.hook_resid_post"].shape
    True
    """

    def __init__(self, arrays: dict[str, Any], layers: dict[str, int], has_batch_dim: bool = True) -> None:
        self._arrays = arrays
        self._layers = layers  # of every stack: {"blocks": 6}, or {"encoder": 3, "decoder": 3}
        self.has_batch_dim = has_batch_dim

    def __getitem__(self, key: Union[str, tuple[Any, ...]]) -> Any:
        name = key if isinstance(key, str) else self._name(key)
        if name not in self._arrays:
            raise no_such(f"{name} is not in the cache", name, self._arrays)
        return self._arrays[name]

    def _name(self, key: tuple[Any, ...]) -> str:
        if not isinstance(key, tuple) or len(key) not in (2, 3) or not isinstance(key[0], str):
            raise KeyError(f"{key!r} is no key; give a name, or a short name and a layer: ('pattern', 3)")
        short, layer = key[0], key[1]
        part = key[2] if len(key) == 3 and key[2] else ""
        if layer is None:
            return short if short.startswith(("hook_", "ln_")) else f"hook_{short}"
        # Without a name of a stack that of the model; of an encoder-decoder the decoder.
        stack = next((name for name in self._layers if part in (name, _STACKS.get(name))), "")
        if stack or part in _CROSS:
            part = "cross_attn" if part in _CROSS else ""
        if not stack:
            stack = "decoder" if "decoder" in self._layers else next(iter(self._layers))
        count = self._layers[stack]
        if not isinstance(layer, (int, np.integer)) or not -count <= layer < count:
            raise KeyError(f"there is no layer {layer!r}: {stack} has layers 0 to {count - 1}; -1 is the last")
        layer = int(layer) % count
        site = _SHORT.get(short, short if "hook_" in short else f"hook_{short}")
        if part == "cross_attn" and site == "hook_attn_out":
            return f"{stack}.{layer}.hook_cross_attn_out"
        if part:
            site = f"{part}.{site.split('.')[-1]}"
        return f"{stack}.{layer}.{site}"

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def remove_batch_dim(self) -> "ActivationCache":
        """The same without the first dimension, of size 1."""
        if self.has_batch_dim:
            self._arrays = {name: array[0] for name, array in self._arrays.items()}
            self.has_batch_dim = False
        return self

    def __repr__(self) -> str:
        return f"<qkv.ActivationCache of {len(self)} arrays>"


def wanted_taps(model: "Inside", names: NamesFilter) -> list[tuple[str, str, bool]]:
    """Ours, theirs and whether it may be changed, of every tap the filter wants."""
    taps = [(tap["name"], tap["transformer_lens"] or tap["name"], tap["editable"]) for tap in model.taps()]
    if names is None:
        return taps
    if callable(names):
        return [tap for tap in taps if names(tap[1])]
    if not isinstance(names, (str, Iterable)):
        raise TypeError(f"the filter of names is {names!r:.60}; give a name, a list of names, or a function of a name")
    asked = [names] if isinstance(names, str) else list(names)
    known = {alias: tap for tap in taps for alias in (tap[0], tap[1])}
    for name in asked:
        if name not in known:
            model.read([0], keep=name)  # an InputError that says what there is
            raise InputError(f"{name} means several arrays", "give the name of one: " + ", ".join(list(known)[:8]))
    return [known[name] for name in asked]


def run_with_cache(model: "Inside", text: Text, names_filter: NamesFilter) -> tuple[Any, ActivationCache]:
    taps = wanted_taps(model, names_filter)
    seen = model.read(text, keep=[ours for ours, _, _ in taps] + ["logits"])
    arrays = {theirs: to_theirs(ours, seen[ours]) for ours, theirs, _ in taps}
    layers: dict[str, int] = {}
    for ours, theirs, _ in wanted_taps(model, None):
        if ours.endswith("resid.post"):
            stack = theirs.split(".")[0]
            layers[stack] = layers.get(stack, 0) + 1
    return seen["logits"][None], ActivationCache(arrays, layers)


def hook_of(function: Callable[..., Any], ours: str, theirs: str, may_change: bool) -> Callable[[str, Any], None]:
    point = HookPoint(theirs)

    def run(_: str, array: Any) -> None:
        value = to_theirs(ours, array)
        if isinstance(value, ReadOnly):
            value = read_only(value, f"{theirs} is only seen: {_CHANGE}")
        returned = function(value, hook=point)
        if returned is None:
            return
        if not may_change:
            raise InputError(
                f"the hook of {theirs} returned an array, but {theirs} can be read and not changed",
                _CHANGE,
            )
        value[...] = check_shape(theirs, returned, value.shape)

    return run


def run_with_hooks(model: "Inside", text: Text, fwd_hooks: Iterable[tuple[NamesFilter, Callable[..., Any]]]) -> Any:
    see, edit = [], []
    for pair in fwd_hooks if isinstance(fwd_hooks, Iterable) else [fwd_hooks]:
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise TypeError(f"fwd_hooks has {pair!r:.60}; give pairs of a name and a function, as ('blocks.0.attn.hook_z', f)")
        names, function = pair
        if not callable(function):
            raise TypeError(f"the hook of {names!r:.60} is {function!r:.60}; give a function of (value, hook)")
        for ours, theirs, may_change in wanted_taps(model, names):
            (edit if may_change else see).append((ours, hook_of(function, ours, theirs, may_change)))
    return model.read(text, keep="logits", see=see, edit=edit)["logits"][None]

