"""A model, opened by path or name: everything it can do."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any, Optional, Union

from . import _core as native
from .inside import Inside, cut_of
from .tables import Table
from .texts import of_this_process
from .tokenizer import Tokenizer
from .writing import Writing

Path = Union[str, "os.PathLike[str]"]


@dataclass(frozen=True)
class Info:
    """What a model is."""

    path: str = field(repr=False)
    family: str  # "llama"
    kind: str  # "decoder-only"
    parameters: int
    layers: int
    width: int
    heads: int
    vocabulary: int
    context: int
    device: str
    precision: str
    looking: str  # the precision of what looks inside
    threads: int


def builtin_models() -> Table:
    """The models that ship.

    >>> import qkv
    >>> [model["name"] for model in qkv.builtin_models()][:2]
    ['world', 'translator']
    """
    return Table({"name": n, "about": a, "languages": l} for n, a, l in native.builtin_models())


class Model(Writing, Inside):
    """A Hugging Face folder, a GGUF file, or a built-in model by its name.

    Any thread may call anything; passes of one model come one after the other, and texts that are written at the same
    time share them. The GIL is free while it computes, and Ctrl-C ends what runs. After close() every call is a
    ClosedError; a `with` closes at its end.

    device is "auto", "cpu" or "cuda"; precision "auto", "f32" or "bf16"; threads 0 is as many as the machine allows;
    with "auto" what looks inside computes in f32 up to 600 million weights; context the most tokens of one text (0: the model's own, at most 4096); texts the room in the caches for texts that
    are written at once; cache the type of keys and values, "auto", "f32", "bf16" or "i8".

    >>> import qkv
    >>> with qkv.Model("world", threads=1) as model:
    ...     print(model.info.family, model.info.kind)
    qwen2 decoder-only
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
            raise TypeError(f"path is {path!r:.60} ({type(path).__name__}); give a folder, a file or a name")
        self._model = native.Model(os.fspath(path), how)
        self._process = os.getpid()
        self._taps: Optional[list[dict[str, Any]]] = None

    @property
    def _core(self) -> native.Model:
        return of_this_process(self._model, self._process, "model")

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

    def save(self, folder: Path, *, without: Union[None, str, dict[str, Any]] = None) -> list[str]:
        """Writes a new folder: the model as it is, or without some heads ("L0H1,L3"). Returns notes."""
        if without is None:
            return self._core.save(os.fspath(folder))
        return self._core.save_without(cut_of(without), os.fspath(folder))
