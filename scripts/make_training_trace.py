#!/usr/bin/env python3
"""Records the training that tests/verify/marian_trace holds: PyTorch, in f32 and in f64, from the same weights.

  scripts/make_training_trace.py OUT             writes config.json and model, io and train.safetensors to OUT
  scripts/make_training_trace.py --check FOLDER  trains a recorded Marian (as tests/golden/marian) once more and prints
                                                 how far it is from its recording

The layout is that of tests/golden/README.md, with two more tensors: f64.loss and f64.grad_norm, the same training with
everything in f64. One bias of the initial weights is chosen so that at step AT the input of one ReLU is within 2e-7 of
zero: there the f32 training takes another branch than the f64 one, and its gradient norm is some 1e-5 off. Python 3
with PyTorch and NumPy (Debian: python3-torch).
"""
import argparse
import json
import math
import pathlib
import struct

import numpy as np
import torch
import torch.nn.functional as F

STEPS, BATCH, TARGET, SOURCE = 20, 2, 9, 7
PEAK, WARMUP, DECAY, SMOOTHING = 1e-3, 5, 0.1, 0.1
SEED, AT, LAYER, UNIT, NUDGE = 2, 19, "model.encoder.layers.0", 7, 0.0013147993220338982
CONFIG = {
    "model_type": "marian", "architectures": ["MarianMTModel"], "activation_function": "relu", "d_model": 16,
    "vocab_size": 32, "decoder_vocab_size": 32, "encoder_layers": 1, "decoder_layers": 1, "encoder_ffn_dim": 32,
    "decoder_ffn_dim": 32, "encoder_attention_heads": 2, "decoder_attention_heads": 2, "max_position_embeddings": 16,
    "scale_embedding": True, "static_position_embeddings": True, "share_encoder_decoder_embeddings": True,
    "tie_word_embeddings": True, "dropout": 0.0, "attention_dropout": 0.0, "activation_dropout": 0.0,
    "bos_token_id": None, "pad_token_id": 0, "eos_token_id": 2, "decoder_start_token_id": 0,
    "forced_eos_token_id": 2, "is_encoder_decoder": True, "dtype": "float32"}


# --- safetensors -----------------------------------------------------------------------------------------------------

TYPES = {"F32": np.float32, "F64": np.float64, "I64": np.int64}


def read_tensors(path):
    data = pathlib.Path(path).read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    tensors = {}
    for name, entry in json.loads(data[8:8 + size]).items():
        if name != "__metadata__":
            begin, end = (8 + size + at for at in entry["data_offsets"])
            tensors[name] = np.frombuffer(data[begin:end], TYPES[entry["dtype"]]).reshape(entry["shape"])
    return tensors


def write_tensors(path, tensors):
    header, body = {}, b""
    for name, array in sorted(tensors.items()):
        array = np.ascontiguousarray(array)
        dtype = next(key for key, value in TYPES.items() if value == array.dtype)
        header[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [len(body), len(body) + array.nbytes]}
        body += array.tobytes()
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    pathlib.Path(path).write_bytes(struct.pack("<Q", len(text)) + text + body)


# --- the model -------------------------------------------------------------------------------------------------------

def positions(length, width):
    angles = np.array([[p / np.power(10000, 2 * (j // 2) / width) for j in range(width)] for p in range(length)])
    return torch.tensor(np.concatenate([np.sin(angles[:, 0::2]), np.cos(angles[:, 1::2])], 1).astype(np.float32))


class Marian:
    def __init__(self, config, weights, dtype):
        self.config, self.dtype = config, dtype
        self.weights = {name: torch.tensor(np.array(value), dtype=dtype, requires_grad=True)
                        for name, value in weights.items() if name != "final_logits_bias"}
        self.bias = torch.tensor(np.array(weights["final_logits_bias"]), dtype=dtype)  # not trained
        self.positions = positions(config["max_position_embeddings"], config["d_model"]).to(dtype)
        self.relu_inputs = {}

    def linear(self, name, x):
        return F.linear(x, self.weights[name + ".weight"], self.weights[name + ".bias"])

    def norm(self, name, x):
        return F.layer_norm(x, x.shape[-1:], self.weights[name + ".weight"], self.weights[name + ".bias"], 1e-5)

    def attention(self, name, x, memory, heads, causal):
        def split(t):
            return t.view(*t.shape[:2], heads, -1).transpose(1, 2)

        q, k, v = split(self.linear(name + ".q_proj", x)), *(split(self.linear(name + part, memory))
                                                            for part in (".k_proj", ".v_proj"))
        scores = q * q.shape[-1] ** -0.5 @ k.transpose(2, 3)
        if causal:
            scores = scores + torch.full(scores.shape[2:], float("-inf"), dtype=self.dtype).triu(1)
        mixed = (F.softmax(scores, -1) @ v).transpose(1, 2).reshape(x.shape)
        return self.linear(name + ".out_proj", mixed)

    def feed(self, name, x):
        inner = self.linear(name + ".fc1", x)
        self.relu_inputs[name] = inner.detach()
        return self.norm(name + ".final_layer_norm", x + self.linear(name + ".fc2", F.relu(inner)))

    def embed(self, ids):
        rows = F.embedding(ids, self.weights["model.shared.weight"]) * math.sqrt(self.config["d_model"])
        return rows + self.positions[:ids.shape[1]]

    def logits(self, source, target):
        memory, x = self.embed(source), self.embed(target)
        for n in range(self.config["encoder_layers"]):
            name, heads = f"model.encoder.layers.{n}", self.config["encoder_attention_heads"]
            attended = self.attention(name + ".self_attn", memory, memory, heads, False)
            memory = self.feed(name, self.norm(name + ".self_attn_layer_norm", memory + attended))
        for n in range(self.config["decoder_layers"]):
            name, heads = f"model.decoder.layers.{n}", self.config["decoder_attention_heads"]
            x = self.norm(name + ".self_attn_layer_norm", x + self.attention(name + ".self_attn", x, x, heads, True))
            attended = self.attention(name + ".encoder_attn", x, memory, heads, False)
            x = self.feed(name, self.norm(name + ".encoder_attn_layer_norm", x + attended))
        return x @ self.weights["model.shared.weight"].T + self.bias


def fresh_weights(config, seed):
    rng, width = np.random.default_rng(seed), config["d_model"]
    shapes = {"model.shared.weight": (config["vocab_size"], width)}
    for stack in ("encoder", "decoder"):
        for n in range(config[stack + "_layers"]):
            name, hidden = f"model.{stack}.layers.{n}.", config[stack + "_ffn_dim"]
            for attention in ["self_attn"] + ["encoder_attn"] * (stack == "decoder"):
                for part in ("q_proj", "k_proj", "v_proj", "out_proj"):
                    shapes[f"{name}{attention}.{part}.weight"] = (width, width)
                    shapes[f"{name}{attention}.{part}.bias"] = (width,)
                for part in ("weight", "bias"):
                    shapes[f"{name}{attention}_layer_norm.{part}"] = (width,)
            for part, shape in (("fc1", (hidden, width)), ("fc2", (width, hidden))):
                shapes[f"{name}{part}.weight"], shapes[f"{name}{part}.bias"] = shape, shape[:1]
            for part in ("weight", "bias"):
                shapes[f"{name}final_layer_norm.{part}"] = (width,)
    weights = {name: (rng.standard_normal(shape) * 0.1 + (name.endswith("norm.weight"))).astype(np.float32)
               for name, shape in shapes.items()}
    weights["final_logits_bias"] = np.zeros((1, config["vocab_size"]), np.float32)
    return weights


# --- the training ----------------------------------------------------------------------------------------------------

def train(config, weights, recording, dtype, watch=None):
    """What a trace records. `watch(step, model)` sees the model after each backward pass."""
    model = Marian(config, weights, dtype)
    params = list(model.weights.values())
    optimizer = torch.optim.AdamW([{"params": [p for p in params if p.dim() >= 2], "weight_decay": DECAY},
                                   {"params": [p for p in params if p.dim() < 2], "weight_decay": 0.0}],
                                  lr=PEAK, betas=(0.9, 0.95), eps=1e-8)
    source, tokens = (torch.tensor(np.array(recording[name])) for name in ("source", "tokens"))
    found = {"loss": [], "grad_norm": []}
    for step in range(len(tokens)):
        for group in optimizer.param_groups:
            group["lr"] = PEAK * min(1.0, (step + 1) / WARMUP)
        optimizer.zero_grad(set_to_none=True)
        scores = F.log_softmax(model.logits(source[step], tokens[step, :, :-1]), -1)
        nll = -scores.gather(2, tokens[step, :, 1:, None]).mean()
        loss = (1 - SMOOTHING) * nll + SMOOTHING * -scores.mean(-1).mean()
        loss.backward()
        norm = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(p.grad) for p in params]))
        for p in params:
            p.grad *= min(1.0, 1 / norm.item())
        found["loss"].append(loss.item())
        found["grad_norm"].append(norm.item())
        if step == 0:
            found.update({"grad_after_clip." + name: p.grad.numpy().copy() for name, p in model.weights.items()})
        if watch:
            watch(step, model)
        optimizer.step()
    found.update({"final." + name: p.detach().numpy() for name, p in model.weights.items()})
    return found


def start():
    """The initial weights and the texts of the recording."""
    rng = np.random.default_rng(SEED + 1000)
    texts = {"source": rng.integers(3, CONFIG["vocab_size"], (STEPS, BATCH, SOURCE)),
             "tokens": rng.integers(3, CONFIG["vocab_size"], (STEPS, BATCH, TARGET))}
    weights = fresh_weights(CONFIG, SEED)
    weights[LAYER + ".fc1.bias"][UNIT] += np.float32(NUDGE)
    return weights, texts


def record(out):
    weights, texts = start()
    inputs = {}

    def watch(dtype):
        def look(step, model):
            if step == AT:
                inputs[dtype] = model.relu_inputs[LAYER][..., UNIT].flatten()
        return look

    narrow = train(CONFIG, weights, texts, torch.float32, watch("f32"))
    wide = train(CONFIG, weights, texts, torch.float64, watch("f64"))
    nearest = inputs["f64"].abs().argmin()
    values = {dtype: inputs[dtype][nearest].item() for dtype in inputs}
    apart = max(abs(a - b) / b for a, b in zip(narrow["grad_norm"], wide["grad_norm"]))
    print(f"step {AT}: the input of a ReLU is {values['f32']:.2e} in f32 and {values['f64']:.2e} in f64; "
          f"the gradient norms are up to {apart:.1e} apart")
    assert abs(values["f64"]) < 2e-7 and values["f32"] * values["f64"] < 0, "another PyTorch rounds otherwise: choose another NUDGE"
    source, target = (torch.tensor(texts[name][0]) for name in ("source", "tokens"))
    logits = Marian(CONFIG, weights, torch.float32).logits(source, target).detach()
    out = pathlib.Path(out)
    out.mkdir(parents=True, exist_ok=True)
    (out / "config.json").write_text(json.dumps(CONFIG, indent=2) + "\n")
    write_tensors(out / "model.safetensors", weights)
    write_tensors(out / "io.safetensors", {"input_ids": source.numpy(), "decoder_input_ids": target.numpy(),
                                           "logits": logits.numpy()})
    trace = {**texts, **{name: np.array(value, np.float32) for name, value in narrow.items()}}
    trace.update({"f64." + name: np.array(wide[name]) for name in ("loss", "grad_norm")})
    write_tensors(out / "train.safetensors", trace)


def check(folder):
    folder = pathlib.Path(folder)
    config = json.loads((folder / "config.json").read_text())
    recording = read_tensors(folder / "train.safetensors")
    for dtype in (torch.float32, torch.float64):
        found = train(config, read_tensors(folder / "model.safetensors"), recording, dtype)
        for name in ("loss", "grad_norm"):
            apart = np.max(np.abs(np.array(found[name]) / recording[name] - 1))
            print(f"{dtype}: {name} is {apart:.1e} from the recording")


if __name__ == "__main__":
    torch.set_num_threads(1)
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("out", nargs="?")
    arguments.add_argument("--check", metavar="FOLDER")
    given = arguments.parse_args()
    if given.check:
        check(given.check)
    else:
        record(given.out)
