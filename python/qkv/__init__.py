"""qkv: trains, runs and looks inside Transformers.

>>> import qkv
>>> model = qkv.Model("world", threads=1)
>>> print(model.generate("Emma gave a pink kite to Tom. What did Emma give to Tom?", max_new=12))
 Emma gave a pink kite to Tom.
>>> probs = model.read("Emma gave a pink kite to Tom.", keep="attn.probs")["0.attn.probs"]
>>> probs.shape[1] == model.info.heads
True

docs/library.md has the ten things people do with it, docs/from-transformerlens.md the names of TransformerLens.
"""

try:
    import numpy as _numpy  # noqa: F401
except ImportError:
    import sys as _sys

    raise ImportError(f"qkv needs NumPy, and {_sys.executable} has none\n  hint: install it with  {_sys.executable} -m pip install numpy") from None

from . import _core as native
from .errors import BusyError, ClosedError, Error, InputError, InternalError
from .generation import Generated, Generation, Piece, Token, Translation
from .looking import Looked
from .measures import Attribution, CutEffect, Score
from .model import Info, Model, builtin_models
from .patching import Patched, PatchMap
from .reading import Reading
from .tables import Estimate, Table
from .tokenizer import Tokenizer
from .training import Evaluation, Step, Trained, Trainer, new_model, recipes, train
from .transformer_lens import ActivationCache, HookPoint

__version__ = native.version()

__all__ = [
    "ActivationCache",
    "Attribution",
    "BusyError",
    "ClosedError",
    "CutEffect",
    "Error",
    "Estimate",
    "Evaluation",
    "Generated",
    "Generation",
    "HookPoint",
    "Info",
    "InputError",
    "InternalError",
    "Looked",
    "Model",
    "PatchMap",
    "Patched",
    "Piece",
    "Reading",
    "Score",
    "Step",
    "Table",
    "Token",
    "Tokenizer",
    "Trained",
    "Trainer",
    "Translation",
    "builtin_models",
    "new_model",
    "recipes",
    "train",
]
