"""Training: from a recipe, as qkv train does it, or in a loop of one's own."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from typing import Any, Callable, Iterable, Optional, Sequence, Union

from . import _core as native
from .tables import Table
from .texts import Ids, checked, of_this_process

Path = Union[str, "os.PathLike[str]"]
Rows = Union[Sequence[Ids], Any]


@dataclass(frozen=True)
class Step:
    step: int  # done
    of: int  # in all; 0 in a loop of one's own
    loss: float  # mean over the counted targets
    lr: float
    grad_norm: float
    tokens: int
    seconds: float = field(repr=False)


@dataclass(frozen=True)
class Evaluation:
    step: int
    loss: float  # nats per target
    perplexity: float
    bits_per_byte: float
    best: bool  # so far


@dataclass(frozen=True)
class Trained:
    steps: int
    tokens: int
    best_loss: float
    finished: bool  # False: stopped, or nothing improved any more
    best: str  # folders of models
    last: str


def train(
    recipe: Union[str, dict[str, Any]] = "",
    *,
    out: Path,
    data: Union[None, Path, Iterable[Path]] = None,
    start: str = "",
    set: Optional[dict[str, Any]] = None,
    resume: bool = False,
    device: str = "auto",
    threads: int = 0,
    on_step: Optional[Callable[[Step], Any]] = None,
    on_evaluation: Optional[Callable[[Evaluation], Any]] = None,
) -> Trained:
    """Trains by a recipe: one that ships (recipes()), a file, or a dict. What a run writes is in docs/training.md.

    `start` is a model to start from, `set` changes keys of the recipe: {"schedule.warmup": 20}. After each step on_step
    is told; False saves the run and stops it, and resume=True goes on. Ctrl-C and what a function raises do the same.
    With resume=True `set` changes keys that do not concern what was prepared: {"steps": 4000}.
    """
    if set is not None and not isinstance(set, dict):
        raise TypeError(f"set is {set!r:.60} ({type(set).__name__}); give a dict, as {{'schedule.warmup': 20}}")
    for name, function in (("on_step", on_step), ("on_evaluation", on_evaluation)):
        if function is not None and not callable(function):
            raise TypeError(f"{name} is {function!r:.60} ({type(function).__name__}); give a function")
    how: dict[str, Any] = {
        "recipe": json.dumps(recipe) if isinstance(recipe, dict) else os.fspath(recipe),
        "out": os.fspath(out),
        "data": [os.fspath(path) for path in ([data] if isinstance(data, (str, os.PathLike)) else data or [])],
        "from": start,
        "set": [f"{key}={json.dumps(value)}" for key, value in (set or {}).items()],
        "resume": resume,
        "device": device,
        "threads": threads,
    }
    if on_step is not None:
        how["on_step"] = lambda report: on_step(Step(**report))
    if on_evaluation is not None:
        how["on_evaluation"] = lambda report: on_evaluation(Evaluation(**report))
    return Trained(**native.train(how))


def recipes() -> list[str]:
    """The recipes that ship.

    >>> import qkv
    >>> "world" in qkv.recipes()
    True
    """
    return native.recipes()


def new_model(preset: Union[str, dict[str, Any]], folder: Path, seed: int = 0) -> str:
    """Writes a model with random weights: a well-known one by name ("gpt2"), or a config.json, as a dict or a file.

    >>> import qkv, tempfile
    >>> config = {"model_type": "gpt2", "vocab_size": 64, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 32}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model = qkv.Model(qkv.new_model(config, folder + "/tiny"), threads=1)
    ...     print(model.info.family, model.info.layers)
    gpt2 2
    """
    config = json.dumps(preset) if isinstance(preset, dict) else os.fspath(preset)
    native.new_model(config, os.fspath(folder), checked("seed", seed, int))
    return os.fspath(folder)


class Trainer:
    """A model that is trained by steps, in f32 masters. One thread at a time: BusyError otherwise.

    >>> import qkv, tempfile, numpy as np
    >>> config = {"model_type": "gpt2", "vocab_size": 64, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 32}
    >>> batch = np.arange(40).reshape(2, 20)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     trainer = qkv.Trainer(qkv.new_model(config, folder + "/tiny"), threads=1)
    ...     losses = [trainer.step(batch, lr=1e-2).loss for _ in range(8)]
    ...     again = qkv.Trainer(trainer.save(folder + "/trained"), threads=1).loss(batch)
    >>> losses[-1] < losses[0], again < losses[0]
    (True, True)
    """

    def __init__(
        self,
        path: Path,
        *,
        optimizer: str = "adamw",
        beta1: float = 0.9,
        beta2: float = 0.95,
        eps: float = 1e-8,
        momentum: float = 0.95,
        decay: float = 0.1,
        clip: float = 1.0,
        smoothing: float = 0.0,
        frozen: Union[str, Sequence[str]] = (),
        seed: int = 0,
        precision: str = "f32",
        device: str = "auto",
        threads: int = 0,
    ) -> None:
        how = {name: value for name, value in locals().items() if name not in ("self", "path", "__class__")}
        how["frozen"] = [frozen] if isinstance(frozen, str) else list(frozen)
        self._trainer = native.Trainer(os.fspath(path), how)
        self._process = os.getpid()

    @property
    def _core(self) -> native.Trainer:
        return of_this_process(self._trainer, self._process, "trainer")

    def step(self, texts: Rows, lr: float, targets: Optional[Rows] = None, sources: Optional[Rows] = None) -> Step:
        """Forward, backward and update. Each token is asked for the one that follows, unless there are targets (-100:
        not counted). `sources` are those of a model that translates. A loss that is not finite changes no weight."""
        return Step(**self._core.step((texts, targets, sources), checked("lr", lr, float)))

    def loss(self, texts: Rows, targets: Optional[Rows] = None, sources: Optional[Rows] = None) -> float:
        """Without an update."""
        return self._core.loss((texts, targets, sources))

    @property
    def steps(self) -> int:
        return self._core.steps()

    def weights(self) -> Table:
        return Table({"name": n, "shape": tuple(s), "trained": t} for n, s, t in self._core.weights())

    def weight(self, name: str) -> Any:
        """Its numbers now: an array that is yours."""
        return self._core.weight(checked("name", name, str))

    def save(self, folder: Path) -> str:
        """Writes a new folder that qkv and Hugging Face load; the tokenizer goes along."""
        self._core.save(os.fspath(folder))
        return os.fspath(folder)
