#!/usr/bin/env python3
"""The same work as ./qkv bench train|run|heads --device cuda, in PyTorch, with torch.compile. Prints one JSON object.

  torch_peer.py train  {"layers": 12, "width": 768, "heads": 12, "vocab": 50257, "tokens": 32768, "sequence": 1024}
  torch_peer.py pairs  {"layers": 6, "width": 512, "heads": 8, "hidden": 2048, "vocab": 37000, "tokens": 32768, "sequence": 128}
  torch_peer.py decode {"layers": 22, "width": 2048, "heads": 32, "kv_heads": 4, "hidden": 5632, "vocab": 32000, ...}
  torch_peer.py maps   {"layers": 12, "width": 768, "heads": 12, "vocab": 50257, "tokens": 32768, "sequence": 1024}
"""
import json
import math
import statistics
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

bf16 = torch.bfloat16


def padded(n):
    return (n + 63) // 64 * 64  # what PyTorch's products like best


def median_seconds(step, rounds, warm=4):
    for _ in range(warm):
        step()
    torch.cuda.synchronize()
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        step()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


class SelfAttention(nn.Module):
    def __init__(self, width, heads, causal):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x, maps=False):
        b, t, c = x.shape
        q, k, v = (y.view(b, t, self.heads, -1).transpose(1, 2) for y in self.qkv(x).split(c, 2))
        if maps:
            scores = q @ k.transpose(2, 3) / math.sqrt(q.shape[3])
            seen = torch.ones(t, t, dtype=torch.bool, device=x.device).tril()
            a = scores.masked_fill(~seen, float("-inf")).float().softmax(3).to(q.dtype)
            return self.out((a @ v).transpose(1, 2).reshape(b, t, c)), a
        return self.out(F.scaled_dot_product_attention(q, k, v, is_causal=self.causal).transpose(1, 2).reshape(b, t, c))


class CrossAttention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.q, self.kv, self.out = nn.Linear(width, width), nn.Linear(width, 2 * width), nn.Linear(width, width)

    def forward(self, x, source):
        b, t, c = x.shape
        q = self.q(x).view(b, t, self.heads, -1).transpose(1, 2)
        k, v = (y.view(b, source.shape[1], self.heads, -1).transpose(1, 2) for y in self.kv(source).split(c, 2))
        return self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, t, c))


class FeedForward(nn.Module):
    def __init__(self, width, hidden, act):
        super().__init__()
        self.up, self.down, self.act = nn.Linear(width, hidden), nn.Linear(hidden, width), act

    def forward(self, x):
        return self.down(self.act(self.up(x)))


class Gpt2(nn.Module):
    def __init__(self, s):
        super().__init__()
        width = s["width"]
        self.embed, self.position = nn.Embedding(padded(s["vocab"]), width), nn.Embedding(s["sequence"], width)
        self.blocks = nn.ModuleList(
            nn.ModuleList([nn.LayerNorm(width), SelfAttention(width, s["heads"], True), nn.LayerNorm(width),
                           FeedForward(width, 4 * width, lambda x: F.gelu(x, approximate="tanh"))])
            for _ in range(s["layers"]))
        self.norm = nn.LayerNorm(width)

    def hidden(self, ids, maps=False):
        x = self.embed(ids) + self.position(torch.arange(ids.shape[1], device=ids.device))
        kept = []
        for norm1, attention, norm2, feed in self.blocks:
            y = attention(norm1(x), maps)
            if maps:
                kept.append(y[1])
                y = y[0]
            x = x + y
            x = x + feed(norm2(x))
        return self.norm(x), kept

    def forward(self, ids, targets):
        x, _ = self.hidden(ids)
        return F.cross_entropy(F.linear(x, self.embed.weight).view(-1, self.embed.weight.shape[0]).float(),
                               targets.view(-1))


class EncoderDecoder(nn.Module):
    """Attention is all you need: norms after the residuals, ReLU, one embedding for source, target and head."""

    def __init__(self, s):
        super().__init__()
        width, heads, hidden = s["width"], s["heads"], s["hidden"]
        self.embed = nn.Embedding(padded(s["vocab"]), width)

        def block(causal, cross):
            parts = {"own": SelfAttention(width, heads, causal), "norm1": nn.LayerNorm(width),
                     "feed": FeedForward(width, hidden, F.relu), "norm3": nn.LayerNorm(width)}
            if cross:
                parts |= {"cross": CrossAttention(width, heads), "norm2": nn.LayerNorm(width)}
            return nn.ModuleDict(parts)
        self.encoder = nn.ModuleList(block(False, False) for _ in range(s["layers"]))
        self.decoder = nn.ModuleList(block(True, True) for _ in range(s["layers"]))
        self.drop = s.get("dropout", 0.1)

    def forward(self, source, ids, targets):
        def drop(x):
            return F.dropout(x, self.drop)
        x = drop(self.embed(source) * math.sqrt(self.embed.weight.shape[1]))
        for b in self.encoder:
            x = b["norm1"](x + drop(b["own"](x)))
            x = b["norm3"](x + drop(b["feed"](x)))
        y = drop(self.embed(ids) * math.sqrt(self.embed.weight.shape[1]))
        for b in self.decoder:
            y = b["norm1"](y + drop(b["own"](y)))
            y = b["norm2"](y + drop(b["cross"](y, x)))
            y = b["norm3"](y + drop(b["feed"](y)))
        return F.cross_entropy(F.linear(y, self.embed.weight).view(-1, self.embed.weight.shape[0]).float(),
                               targets.view(-1), label_smoothing=0.1)


def trained(model, batch, s):
    model = model.cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, betas=(0.9, 0.95), fused=True)
    compiled = torch.compile(model)

    def step():
        with torch.autocast("cuda", bf16):
            loss = compiled(*batch)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    seconds = median_seconds(step, s.get("rounds", 10))
    return {"seconds": seconds, "tokens_per_second": s["tokens"] / seconds}


def tokens(s, count):
    return torch.randint(s["vocab"], (count // s["sequence"], s["sequence"]), device="cuda")


def train(s):
    return trained(Gpt2(s), (tokens(s, s["tokens"]), tokens(s, s["tokens"])), s)


def pairs(s):
    half = s["tokens"] // 2
    return trained(EncoderDecoder(s), (tokens(s, half), tokens(s, half), tokens(s, half)), s)


class RmsNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return F.rms_norm(x, (x.shape[-1],), self.weight, 1e-5)


class Llama(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.s, width, self.each = s, s["width"], s["width"] // s["heads"]
        wide = self.each * (s["heads"] + 2 * s["kv_heads"])
        self.embed = nn.Embedding(s["vocab"], width)
        self.layers = nn.ModuleList(
            nn.ModuleDict({"norm1": RmsNorm(width), "qkv": nn.Linear(width, wide, bias=False),
                           "out": nn.Linear(width, width, bias=False), "norm2": RmsNorm(width),
                           "gate_up": nn.Linear(width, 2 * s["hidden"], bias=False),
                           "down": nn.Linear(s["hidden"], width, bias=False)}) for _ in range(s["layers"]))
        self.norm, self.head = RmsNorm(width), nn.Linear(width, s["vocab"], bias=False)

    def caches(self, batch, length):
        shape = (self.s["layers"], 2, batch, self.s["kv_heads"], length, self.each)
        self.register_buffer("cache", torch.zeros(shape, dtype=bf16, device="cuda"))
        angle = torch.outer(torch.arange(length), 1e4 ** (-torch.arange(0, self.each, 2) / self.each)).cuda()
        self.register_buffer("cos", angle.cos()), self.register_buffer("sin", angle.sin())
        self.register_buffer("seen", torch.ones(length, length, dtype=torch.bool, device="cuda").tril())

    def rotate(self, x, position):
        cos, sin = self.cos[position].to(x.dtype), self.sin[position].to(x.dtype)
        a, b = x.chunk(2, -1)
        return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)

    def forward(self, ids, position):
        s, (b, t) = self.s, ids.shape
        x = self.embed(ids)
        for i, l in enumerate(self.layers):
            q, k, v = l["qkv"](l["norm1"](x)).split([s["heads"] * self.each] + 2 * [s["kv_heads"] * self.each], 2)
            q, k, v = (y.view(b, t, -1, self.each).transpose(1, 2) for y in (q, k, v))
            q, k = self.rotate(q, position), self.rotate(k, position)
            keys, values = self.cache[i, 0], self.cache[i, 1]
            keys[:, :, position], values[:, :, position] = k, v
            z = F.scaled_dot_product_attention(q, keys, values, attn_mask=self.seen[position][None, None],
                                               enable_gqa=True)
            x = x + l["out"](z.transpose(1, 2).reshape(b, t, -1))
            gate, up = l["gate_up"](l["norm2"](x)).chunk(2, 2)
            x = x + l["down"](F.silu(gate) * up)
        return self.head(self.norm(x[:, -1:]))


def decode(s):
    with torch.device("cuda"):
        torch.set_default_dtype(bf16)
        model = Llama(s).eval()
        torch.set_default_dtype(torch.float32)
    result = []
    for batch in s["batches"]:
        model.caches(batch, s["length"])
        one = torch.compile(model, mode="reduce-overhead", fullgraph=True)
        ids = torch.randint(s["vocab"], (batch, 1), device="cuda")

        @torch.no_grad()
        def run():
            at = ids
            for i in range(s["length"] - 1):
                at = one(at, torch.tensor([i], device="cuda")).argmax(2).clone()
        seconds = median_seconds(run, 3, warm=1)
        result.append({"batch": batch, "tokens_per_second": batch * (s["length"] - 1) / seconds})
        torch._dynamo.reset()
    del model
    return {"rows": result, "transformers": transformers_decode(s)}


def transformers_decode(s):
    """transformers' own generate() with its compiled static cache: what people run."""
    try:
        from transformers import LlamaConfig, LlamaForCausalLM
    except ImportError:
        return []
    config = LlamaConfig(hidden_size=s["width"], num_hidden_layers=s["layers"], num_attention_heads=s["heads"],
                         num_key_value_heads=s["kv_heads"], intermediate_size=s["hidden"], vocab_size=s["vocab"])
    with torch.device("cuda"):
        torch.set_default_dtype(bf16)
        model = LlamaForCausalLM(config).eval()
        torch.set_default_dtype(torch.float32)
    rows, new = [], s["length"] - 1
    for batch in s["batches"]:
        ids = torch.randint(3, s["vocab"], (batch, 1), device="cuda")

        def run():
            model.generate(ids, max_new_tokens=new, min_new_tokens=new, do_sample=False, cache_implementation="static",
                           pad_token_id=0)
        seconds = median_seconds(run, 3, warm=2)
        rows.append({"batch": batch, "tokens_per_second": batch * new / seconds})
    return rows


def maps(s):
    model = Gpt2(s).cuda().to(bf16).eval()
    ids = tokens(s, s["tokens"])

    @torch.no_grad()
    def plain():
        F.linear(model.hidden(ids)[0], model.embed.weight)

    @torch.no_grad()
    def with_maps():
        rows = max(1, 8192 // s["sequence"])  # as many sequences at once as their maps leave room for
        for part in ids.split(rows):
            x, kept = model.hidden(part, True)
            F.linear(x, model.embed.weight)
    found = {"plain_tokens_per_second": s["tokens"] / median_seconds(plain, 5, 2),
             "maps_tokens_per_second": s["tokens"] / median_seconds(with_maps, 5, 2)}
    return found | transformers_maps(s, ids)


def transformers_maps(s, ids):
    """transformers' GPT-2: what people run to get maps."""
    try:
        from transformers import GPT2Config, GPT2LMHeadModel
    except ImportError:
        return {}
    config = GPT2Config(n_embd=s["width"], n_layer=s["layers"], n_head=s["heads"], vocab_size=s["vocab"],
                        n_positions=s["sequence"])
    found = {}
    for name, kind, rows in (("plain", "sdpa", ids.shape[0]), ("maps", "eager", max(1, 8192 // s["sequence"]))):
        model = GPT2LMHeadModel._from_config(config, attn_implementation=kind, dtype=bf16).cuda().eval()

        @torch.no_grad()
        def run():
            for part in ids.split(rows):
                model(part, use_cache=False, output_attentions=name == "maps")
        found[f"transformers_{name}_tokens_per_second"] = s["tokens"] / median_seconds(run, 3, 1)
    return found


if __name__ == "__main__":
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.set_float32_matmul_precision("high")
    work = {"train": train, "pairs": pairs, "decode": decode, "maps": maps}[sys.argv[1]]
    found = work(json.loads(sys.argv[2]))
    print(json.dumps({"peer": "PyTorch " + torch.__version__} | found))
