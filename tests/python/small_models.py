"""Models for the tests: the recorded ones, and small ones of random weights that stand in for those that ship."""

from __future__ import annotations

import atexit
import hashlib
import json
import os
import pathlib
import shutil
import struct
import tempfile

import numpy as np

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "golden"
PROGRAM = os.environ["QKV_PROGRAM"]

_folder = pathlib.Path(tempfile.mkdtemp(prefix="qkv-python-test-"))
atexit.register(shutil.rmtree, _folder, ignore_errors=True)

LLAMA = {
    "model_type": "llama",
    "vocab_size": 608,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "rms_norm_eps": 1e-5,
    "max_position_embeddings": 512,
    "bos_token_id": 0,
    "eos_token_id": 470,
    "tie_word_embeddings": False,
}


def temporary(name: str) -> str:
    return str(_folder / name)


def golden(name: str) -> str:
    return str(GOLDEN / name)


def _make(name: str, config: dict, tokenizer: str) -> pathlib.Path:
    import qkv

    path = _folder / "models" / name
    if path.exists():
        return path
    path.parent.mkdir(exist_ok=True)
    qkv.new_model(config, path, seed=4)
    shutil.copy(GOLDEN / "tokenizers" / tokenizer / "tokenizer.json", path)
    files = {}
    for file in sorted(path.iterdir()):
        data = file.read_bytes()
        files[file.name] = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    (path / "manifest.json").write_text(json.dumps({"files": files}, indent=2, sort_keys=True) + "\n")
    return path


def stand_ins() -> None:
    """From now on "world", "world-2l" and "translator" are small models of random weights."""
    os.environ["QKV_MODELS"] = str(_folder / "models")
    _make("world", LLAMA, "qwen2")
    _make("world-2l", LLAMA, "qwen2")
    t5 = json.loads((GOLDEN / "t5" / "config.json").read_text())
    _make("translator", {**t5, "vocab_size": 124}, "unigram")


def small() -> str:
    """A decoder with a tokenizer."""
    return str(_make("small", LLAMA, "qwen2"))


_KINDS = {"F32": np.float32, "I64": np.int64, "I32": np.int32, "BOOL": np.bool_}


def recorded(name: str) -> dict:
    """The arrays of a golden's io.safetensors, read without any help of qkv."""
    data = (GOLDEN / name / "io.safetensors").read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    out = {}
    for key, about in header.items():
        if key == "__metadata__":
            continue
        begin, end = about["data_offsets"]
        raw = data[8 + length + begin : 8 + length + end]
        out[key] = np.frombuffer(raw, _KINDS[about["dtype"]]).reshape(about["shape"])
    return out
