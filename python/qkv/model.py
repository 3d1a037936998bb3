"""A model, opened by path or name: everything it can do."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any, Callable, Iterable, Optional, Sequence, Union, overload

from . import _core, transformer_lens
from .errors import ClosedError
from .generation import Generated, Generation, Translation, generated, stops
from .looking import Looked
from .measures import Attribution, CutEffect, Score, attribution, cut_effect, lens_table, roles_table
from .reading import Hooks, Reading, pairs, taps_table, taps_text
from .tables import Table
from .texts import Data, Text, checked, is_many
from .tokenizer import Tokenizer

Path = Union[str, "os.PathLike[str]"]


@dataclass(frozen=True)
class Info:
    """What a model is."""

    path: str = field(repr=False)
    family: str  # "llama"
    kind: str  # "decoder_only"
    parameters: int
    layers: int
    width: int
    heads: int
    vocabulary: int
    context: int
    device: str
    precision: str
    threads: int


def builtin_models() -> Table:
    """The models that ship.

    >>> import qkv
    >>> [model["name"] for model in qkv.builtin_models()][:2]
    ['world', 'translator']
    """
    return Table({"name": n, "about": a, "languages": l} for n, a, l in _core.builtin_models())


class Model:
    """A Hugging Face folder, a GGUF file, or a built-in model by its name.

    Any thread may call anything; passes of one model come one after the other, and texts that are written at the same
    time share them. The GIL is free while it computes, and Ctrl-C ends what runs. After close() every call is a
    ClosedError; a `with` closes at its end.

    device is "auto", "cpu" or "cuda"; precision "auto", "f32" or "bf16"; threads 0 is as many as the machine allows;
    context the most tokens of one text (0: the model's own, at most 4096); texts the room in the caches for texts that
    are written at once; cache the type of keys and values, "auto", "f32", "bf16" or "i8".

    >>> import qkv
    >>> with qkv.Model("world", threads=1) as model:
    ...     print(model.info.family, model.info.kind)
    llama decoder_only
    >>> model.closed
    True
    """

    def __init__(
        self,
        path: Path,
        *,
        device: str = "auto",
        precision: str = "auto",
        threads: int = 0,
        context: int = 0,
        texts: int = 8,
        cache: str = "auto",
        decoded: bool = False,
    ) -> None:
        how = {name: value for name, value in locals().items() if name not in ("self", "path", "__class__")}
        if not isinstance(path, (str, os.PathLike)):
            raise TypeError(f"path is {path!r:.60}, a {type(path).__name__}; give a folder, a file or a name")
        self._model = _core.Model(os.fspath(path), how)
        self._process = os.getpid()
        self._taps: Optional[Table] = None

    @property
    def _core(self) -> _core.Model:
        if os.getpid() != self._process:
            raise ClosedError(
                "the model was opened by another process, whose threads are not in this one",
                "open it after the fork, or start processes with multiprocessing's 'spawn'",
            )
        return self._model

    def close(self) -> None:
        """Frees everything; what runs is finished first."""
        self._core.close()

    @property
    def closed(self) -> bool:
        return self._model.closed()

    def __enter__(self) -> "Model":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        if self.closed:
            return "<qkv.Model, closed>"
        info = self.info
        name = os.path.basename(os.path.normpath(info.path))
        return f"<qkv.Model {name}: {info.family}, {info.layers} layers, {info.parameters:,} parameters>"

    @property
    def info(self) -> Info:
        return Info(**self._core.info())

    @property
    def tokenizer(self) -> Tokenizer:
        """An InputError if the model has none; then ids are read and written."""
        return Tokenizer(self._core.tokenizer())

    @property
    def target_tokenizer(self) -> Tokenizer:
        """Of a model that translates."""
        return Tokenizer(self._core.target_tokenizer())

    @property
    def has_tokenizer(self) -> bool:
        return self._core.has_tokenizer()

    # --- writing ---

    @overload
    def generate(self, prompt: str, **options: Any) -> Generated: ...
    @overload
    def generate(self, prompt: list[str], **options: Any) -> list[Generated]: ...
    def generate(self, prompt: Any, *, on_text: Optional[Callable[[str], Any]] = None, **options: Any) -> Any:
        """Continues a text (or token ids); of a list of them each, at once. Each is the text it would be alone.

        What is left open is as the model's generation_config.json says; without it the most likely token is taken.
        Options: max_new, temperature, top_k, top_p, min_p, typical_p, repetition_penalty, presence_penalty,
        frequency_penalty, no_repeat_ngram, logit_bias, stop, seed, logprobs, draft, json_schema. on_text is told every
        piece as it is written; False ends the text.

        >>> import qkv
        >>> model = qkv.Model("world", threads=1)
        >>> one = model.generate("Mia has", max_new=6)
        >>> len(one.ids)
        6
        >>> two = model.generate(["Mia has", "小明有"], max_new=6)
        >>> two[0].text == one.text
        True
        """
        how = _options(options)
        if is_many(prompt):
            if on_text is not None:
                raise TypeError("on_text is for one text, but there is a list; use start() for each")
            return [generated(made) for made in self._core.generate_many(prompt, how)]
        return generated(self._core.generate(prompt, how, on_text))

    def start(self, prompt: Text, **options: Any) -> Generation:
        """A text to iterate over as it is written; the options are those of generate().

        >>> import qkv
        >>> for piece in qkv.Model("world", threads=1).start("Mia has", max_new=3):
        ...     assert isinstance(piece.text, str)
        """
        return Generation(self._core.start(prompt, _options(options)))

    def search(
        self,
        prompt: Text,
        *,
        beams: int = 4,
        n: int = 1,
        max_new: Optional[int] = None,
        no_repeat_ngram: Optional[int] = None,
        length_penalty: Optional[float] = None,
        repetition_penalty: Optional[float] = None,
    ) -> list[Generated]:
        """A beam search: the n most likely whole texts, best first."""
        how = {name: value for name, value in locals().items() if name not in ("self", "prompt")}
        return [generated(made) for made in self._core.search(prompt, how)]

    def translate(
        self,
        text: Union[str, Sequence[str]],
        *,
        beams: Optional[int] = None,
        n: int = 1,
        max_new: Optional[int] = None,
        length_penalty: Optional[float] = None,
        prefix: str = "",
        rows: int = 64,
    ) -> Any:
        """The best translation of a text; of a list, a list. With n > 1, lists of n, best first.

        >>> import qkv
        >>> model = qkv.Model("translator", threads=1)
        >>> model.translate("Mia has a cat.").text
        '米娅有一只猫。'
        """
        how = {name: value for name, value in locals().items() if name not in ("self", "text")}
        texts = [text] if isinstance(text, str) else [checked("one of the texts", one, str) for one in text]
        found = [[Translation(*one) for one in all] for all in self._core.translate(texts, how)]
        nothing = Translation("", 0.0, [])
        best: list[Any] = found if n > 1 else [all[0] if all else nothing for all in found]
        return best[0] if isinstance(text, str) else best

    # --- judging ---

    def score(self, text: Union[Text, list[Text]]) -> Any:
        """log p of every token of a text that the text itself determines; of a list, a list.

        >>> import qkv
        >>> model = qkv.Model("world", threads=1)
        >>> good, bad = model.score(["Mia has a cat.", "cat a has Mia."])
        >>> good.perplexity < bad.perplexity
        True
        """
        many = is_many(text)
        found = [Score(*one) for one in self._core.likelihood(text if many else [text])]
        return found if many else found[0]

    def embed(self, texts: Union[Text, list[Text]], pooling: str = "usual") -> Any:
        """A vector of length 1 for each text: an array [text, width]; pooling is "usual", "mean", "first" or "last"."""
        return self._core.embed(texts if is_many(texts) else [texts], {"pooling": pooling})

    # --- looking ---

    def taps(self) -> Table:
        """The places of a pass: name, axes, sizes (0: depends on the text), meaning, the name in TransformerLens.

        >>> import qkv
        >>> qkv.Model("world", threads=1).taps()[2]["transformer_lens"]
        'blocks.0.attn.hook_q'
        """
        core = self._core
        if self._taps is None:
            self._taps = taps_table(core.taps())
        else:
            core.has_tokenizer()  # a ClosedError after close()
        return Table(dict(row) for row in self._taps)

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
            "see": pairs(see, "see"),
            "edit": pairs(edit, "edit"),
            "cut": _cut(cut),
            "losses": checked("losses", losses, bool),
        }
        made = self._core.read(text, how)
        aliases = {tap["transformer_lens"]: tap["name"] for tap in self.taps() if tap["transformer_lens"]}
        return Reading(made, aliases)

    def look(self, text: Text, *, token: int = -1, cut: Union[None, str, dict[str, Any]] = None) -> Looked:
        """One text and everything that happens inside: what qkv look shows. token: whose path is kept in detail."""
        return Looked(self._core.look(text, checked("token", token, int), _cut(cut)))

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
        >>> effect.delta.mean > 0
        True
        """
        what = {name: value for name, value in locals().items() if name != "self"}
        if data is None:
            what["data"] = "world:pairs" if self.info.kind == "encoder_decoder" else "world"
        return cut_effect(heads or experts, self._core.cut(what))

    def lens(self, data: Data = "world", *, tokens: int = 20000, window: int = 256) -> Table:
        """The logit lens over many texts: one row for the embedding and for each layer. The last is the output."""
        return lens_table(self._core.lens(data, checked("tokens", tokens, int), checked("window", window, int))[0])

    def roles(self, data: Data = "world", *, tokens: int = 20000, window: int = 256) -> Table:
        """What every head does, one row each: a role is named only where the whole interval of its score is above its
        threshold. data is a file, a list of texts, or the built-in world: "world", "world:zh", "world:pairs".

        >>> import qkv
        >>> roles = qkv.Model("world-2l", threads=1).roles(tokens=4000)
        >>> sorted(roles[0])[:3], len(roles)
        (['attends_bos', 'attends_bos_high', 'attends_bos_low'], 8)
        """
        return roles_table(self._core.roles(data, checked("tokens", tokens, int), checked("window", window, int)))

    def attribute(
        self, text: Text, *, token: int = -1, target: Optional[int] = None, against: Optional[int] = None
    ) -> Attribution:
        """Whose work the difference of two logits is: its parts add up to it. Without a target, the top guess after
        `token`; without `against`, the second one.

        >>> import qkv
        >>> found = qkv.Model("world", threads=1).attribute("Mia has a")
        >>> abs(sum(part["share"] for part in found.parts) - found.difference) < 1e-3
        True
        """
        return attribution(self._core.attribute(text, {"token": token, "target": target, "against": against}))

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

    # --- changing ---

    def save(self, folder: Path, *, without: Union[None, str, dict[str, Any]] = None) -> list[str]:
        """Writes a new folder: the model as it is, or without some heads ("L0H1,L3"). Returns notes."""
        if without is None:
            return self._core.save(os.fspath(folder))
        return self._core.save_without(_cut(without), os.fspath(folder))


_GENERATE = frozenset(
    "max_new temperature top_k top_p min_p typical_p repetition_penalty presence_penalty frequency_penalty"
    " no_repeat_ngram logit_bias stop seed logprobs draft json_schema".split()
)


def _options(options: dict[str, Any]) -> dict[str, Any]:
    for name in options:
        if name not in _GENERATE:
            raise TypeError(f"there is no option {name}; there are: {', '.join(sorted(_GENERATE))}")
    return {**options, "stop": stops(options.get("stop"))}


def _cut(cut: Any) -> Optional[dict[str, Any]]:
    if cut is None or isinstance(cut, dict):
        return cut
    return {"heads": checked("cut", cut, str)}
