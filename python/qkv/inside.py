"""What happens inside a model: arrays, hooks, cuts, roles, guesses of layers."""

from __future__ import annotations

from typing import Any, Callable, Iterable, Optional, Union

from . import _core as native
from . import transformer_lens
from .looking import Looked
from .measures import Attribution, CutEffect, attribution, cut_effect, lens_table, roles_table
from .patching import Patched
from .reading import Hooks, Reading, pairs, seen_only, taps_table, taps_text
from .tables import Table
from .texts import Data, Text, checked


class Inside:
    """The part of Model that looks inside."""

    _core: native.Model
    _taps: Optional[list[dict[str, Any]]]

    def taps(self) -> Table:
        """The places of a pass: name, axes, sizes (0: depends on the text), meaning, the name in TransformerLens.

        >>> import qkv
        >>> qkv.Model("world", threads=1).taps()[2]["transformer_lens"]
        'blocks.0.attn.hook_q'
        """
        self._core.has_tokenizer()  # a ClosedError after close()
        return Table(dict(row) for row in self._all_taps())

    def _all_taps(self) -> list[dict[str, Any]]:
        if self._taps is None:
            self._taps = taps_table(self._core.taps())
        return self._taps

    def heads(self) -> list[str]:
        """Names of all heads: L3H7, of an encoder E3H7, of cross-attention X3H7."""
        return self._core.heads()

    def read(
        self,
        text: Text,
        *,
        keep: Union[None, str, Iterable[str]] = None,
        see: Optional[Hooks] = None,
        edit: Optional[Hooks] = None,
        cut: Union[None, str, dict[str, Any]] = None,
        losses: bool = False,
    ) -> Reading:
        """One text in one pass. `keep` names the taps whose arrays are returned: "3.attn.q,final"; without a layer,
        "attn.q" is that of every layer. Names of TransformerLens are read too.

        `see` and `edit` are dicts, or lists of pairs, of taps and functions of (name, array). A function of `edit` changes
        its array or returns another one, and the pass goes on with it. What a function raises ends the reading; the
        model stays usable. It must not ask the same model for anything: that is a BusyError.

        >>> import qkv
        >>> model = qkv.Model("world", threads=1)
        >>> plain = model.read("Mia has a cat.", keep="logits")["logits"]
        >>> def no_head(name, z):
        ...     z[:, 2] = 0
        >>> without = model.read("Mia has a cat.", keep="logits", edit={"1.attn.z": no_head})["logits"]
        >>> cut = model.read("Mia has a cat.", keep="logits", cut="L1H2")["logits"]
        >>> (without == cut).all() and (without != plain).any()
        True
        """
        how = {
            "keep": taps_text(keep),
            "see": seen_only(pairs(see, "see")),
            "edit": pairs(edit, "edit"),
            "cut": cut_of(cut),
            "losses": checked("losses", losses, bool),
        }
        taps = self._all_taps()
        return Reading(self._core.read(text, how), {tap["transformer_lens"]: tap["name"] for tap in taps})

    def look(self, text: Text, *, token: int = -1, cut: Union[None, str, dict[str, Any]] = None) -> Looked:
        """One text and everything that happens inside: what qkv look shows. token: whose path is kept in detail."""
        return Looked(self._core.look(text, checked("token", token, int), cut_of(cut)))

    def cut(
        self,
        heads: str = "",
        *,
        experts: str = "",
        replace: str = "zero",
        data: Optional[Data] = None,
        tokens: int = 8000,
        window: int = 256,
    ) -> CutEffect:
        """What cutting heads does to the loss. Heads by name, "L3H7", or a whole layer "L3"; experts "L1E3". `replace`
        says what takes the place of a head's output: "zero", "mean" or "resample"; data as in roles().

        >>> import qkv
        >>> effect = qkv.Model("world-2l", threads=1).cut("L0", tokens=1500)
        >>> effect.delta.low <= effect.delta.mean <= effect.delta.high
        True
        """
        what = {name: value for name, value in locals().items() if name != "self"}
        what["data"] = self._data(data)
        return cut_effect(heads or experts, self._core.cut(what))

    def _data(self, data: Optional[Data]) -> Data:
        if data is not None:
            return data
        return "world:pairs" if self.info.kind == "encoder-decoder" else "world"

    def lens(self, data: Optional[Data] = None, *, tokens: int = 20000, window: int = 256) -> Table:
        """The logit lens over many texts: one row for the embedding and for each layer. The last is the output. data as in
        roles()."""
        return lens_table(self._core.lens(self._data(data), checked("tokens", tokens, int), checked("window", window, int))[0])

    def roles(self, data: Optional[Data] = None, *, tokens: int = 20000, window: int = 256) -> Table:
        """What every head does, one row each: a role is named only where the whole interval of its score is above its
        threshold. data is a file, a list of texts, or the built-in world: "world", "world:zh", "world:pairs". Without it
        "world", or "world:pairs" for a model that translates.

        >>> import qkv
        >>> model = qkv.Model("world-2l", threads=1)
        >>> roles = model.roles(tokens=4000)
        >>> [row["head"] for row in roles] == model.heads()
        True
        >>> previous = roles.where(role="always previous token")
        >>> [row["head"] for row in previous]
        ['L0H2']
        """
        return roles_table(self._core.roles(self._data(data), checked("tokens", tokens, int), checked("window", window, int)))

    def attribute(
        self, text: Text, *, token: int = -1, target: Optional[int] = None, against: Optional[int] = None
    ) -> Attribution:
        """Whose work the difference of two logits is: its parts add up to it. Without a target, the top guess after
        `token`; without `against`, the second one.

        >>> import qkv
        >>> model = qkv.Model("world", threads=1)
        >>> found = model.attribute("Emma gave a pink kite to Tom. What did Emma give to Tom? Emma gave a")
        >>> model.tokenizer.decode([found.target])
        ' pink'
        >>> abs(sum(part["share"] for part in found.parts) - found.difference) < 1e-3
        True
        """
        return attribution(self._core.attribute(text, {"token": token, "target": target, "against": against}))

    def patch(
        self,
        clean: Text,
        corrupt: Text,
        *,
        answer: Optional[int] = None,
        wrong: Optional[int] = None,
        token: int = -1,
        heads: str = "",
    ) -> Patched:
        """Activation patching. The model reads the corrupt text, but at one place it gets what it had there in the clean
        one, which has as many tokens: how much of the clean answer comes back? 0 is none, 1 all of it.

        The answer is read after `token`, the last one unless given. `answer` and `wrong` are token ids: without them,
        the top guess after the clean text and the one after the corrupt text. `heads` ("L1H2,L3") are patched position by
        position too.

        >>> import qkv
        >>> model = qkv.Model("world", threads=1)
        >>> question = "Emma gave a {} kite to Tom. What did Emma give to Tom? Emma gave a"
        >>> found = model.patch(question.format("pink"), question.format("green"))
        >>> found["resid.pre"].shape == (model.info.layers, len(found.clean_ids))
        True
        >>> pink = [i for i, (a, b) in enumerate(zip(found.clean_ids, found.corrupt_ids)) if a != b]
        >>> float(found["resid.pre"][0, pink[0]].round(3))  # all that is different enters there
        1.0
        >>> best = max(found.table().where(map="heads"), key=lambda place: place["restored"])
        >>> f"{best['row']}H{best['column']}" in model.heads() and best["restored"] > 0.2  # one head brings back much of it
        True
        """
        how = {"answer": answer, "wrong": wrong, "token": token, "heads": heads}
        return Patched(self._core.patch(clean, corrupt, how))

    # --- as TransformerLens does it ---

    def run_with_cache(
        self, text: Text, names_filter: transformer_lens.NamesFilter = None
    ) -> tuple[Any, transformer_lens.ActivationCache]:
        """Logits [batch, position, vocabulary] and the arrays of a pass, with TransformerLens' names and shapes.
        names_filter is a name, a list of names, or a function of a name; without one everything is kept."""
        return transformer_lens.run_with_cache(self, text, names_filter)

    def run_with_hooks(self, text: Text, fwd_hooks: Iterable[tuple[Any, Callable[..., Any]]] = ()) -> Any:
        """Logits of a pass with hooks: pairs of a name (or names, or a function of a name) and a function of
        (value, hook), which may change the value or return another one.

        >>> import qkv
        >>> model = qkv.Model("world", threads=1)
        >>> def no_head(value, hook):
        ...     value[:, :, 2] = 0
        >>> logits = model.run_with_hooks("Mia has a cat.", [("blocks.1.attn.hook_z", no_head)])
        >>> (logits[0] == model.read("Mia has a cat.", keep="logits", cut="L1H2")["logits"]).all()
        True
        """
        return transformer_lens.run_with_hooks(self, text, fwd_hooks)


_CUT = ("heads", "experts", "replace", "data", "tokens", "window")


def cut_of(cut: Any) -> Optional[dict[str, Any]]:
    if isinstance(cut, dict):
        for name in cut:
            if name not in _CUT:
                raise TypeError(f"a cut has no {name!r:.60}; it has: {', '.join(_CUT)}")
        return cut
    if cut is None:
        return cut
    return {"heads": checked("cut", cut, str)}
