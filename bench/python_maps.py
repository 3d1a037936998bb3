"""The Python module beside the program and beside PyTorch.

  ./qkv python bench/python_maps.py maps      all attention maps of GPT-2 124 M at T = 1024, as arrays of NumPy, against a
                                              plain GPT-2 in PyTorch that returns its maps; f32 and bf16
  ./qkv python bench/python_maps.py generate  tokens per second through Python against the program (build/release/bin/qkv)

The candidates take turns, so that a busy machine slows all of them; times are medians, ratios those of each round. On a busy
machine take --threads 1 and the seconds of the CPU: they hold no waiting. Both compute the same model of random weights,
and the maps are compared. Debian's PyTorch multiplies with libblas.so.3: give it OpenBLAS (libopenblas0-pthread).
"""

import argparse
import json
import os
import pathlib
import statistics
import struct
import subprocess
import tempfile
import time

import numpy as np
import qkv

PROGRAM = pathlib.Path(__file__).resolve().parent.parent / "build" / "release" / "bin" / "qkv"


def weights_of(folder):
    """model.safetensors, as arrays that lie in the file."""
    path = pathlib.Path(folder) / "model.safetensors"
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
    data = np.memmap(path, np.uint8, "r", 8 + length)
    out = {}
    for name, about in header.items():
        if name != "__metadata__":
            begin, end = about["data_offsets"]
            out[name.removeprefix("transformer.")] = np.frombuffer(data[begin:end], np.float32).reshape(about["shape"])
    return out


def torch_gpt2(folder, dtype, heads=12):
    """A plain GPT-2: forward(ids) returns the last states and the maps of every layer."""
    import torch
    import torch.nn.functional as F

    w = {name: torch.tensor(array).to(dtype) for name, array in weights_of(folder).items()}
    layers = 1 + max(int(name.split(".")[1]) for name in w if name.startswith("h."))

    def norm(x, name):
        return F.layer_norm(x, x.shape[-1:], w[name + ".weight"], w[name + ".bias"], 1e-5)

    def linear(x, name):  # GPT-2 keeps its matrices as [in, out]
        return torch.addmm(w[name + ".bias"], x, w[name + ".weight"])

    @torch.inference_mode()
    def forward(ids):
        tokens = torch.tensor(ids)
        n = len(ids)
        x = w["wte.weight"][tokens] + w["wpe.weight"][:n]
        hidden = torch.triu(torch.ones(n, n, dtype=torch.bool), 1)
        maps = []
        for i in range(layers):
            q, k, v = linear(norm(x, f"h.{i}.ln_1"), f"h.{i}.attn.c_attn").split(x.shape[1], 1)
            q, k, v = (t.view(n, heads, -1).transpose(0, 1) for t in (q, k, v))
            scores = q @ k.transpose(1, 2) / q.shape[2] ** 0.5
            a = scores.masked_fill(hidden, float("-inf")).softmax(2)
            maps.append(a)
            x = x + linear((a @ v).transpose(0, 1).reshape(n, -1), f"h.{i}.attn.c_proj")
            h = linear(norm(x, f"h.{i}.ln_2"), f"h.{i}.mlp.c_fc")
            x = x + linear(F.gelu(h, approximate="tanh"), f"h.{i}.mlp.c_proj")
        return norm(x, "ln_f"), maps

    return forward


def rounds_of(candidates, rounds):
    """Seconds on the clock and of the CPU of each candidate by round; each is first once in a while. The first run of
    each is not counted; one that takes three minutes is not run again, and its first run is."""
    times, names = {name: [] for name in candidates}, []
    for name, run in candidates.items():
        took = seconds_of(run)
        print(f"{name:12} {took[0]:7.2f} s at first, {took[1]:.2f} of the CPU", flush=True)
        if took[0] < 180:
            names.append(name)
        else:
            times[name].append(took)
    for i in range(rounds):
        for name in names[i % len(names) :] + names[: i % len(names)]:
            times[name].append(seconds_of(candidates[name]))
    return times


def seconds_of(run):
    start = time.perf_counter(), time.process_time()
    run()
    return time.perf_counter() - start[0], time.process_time() - start[1]


def ratio(times, slow, fast, clock):
    if len(times[slow]) == 1:  # against the others' slowest, so that a busy moment is not held against it
        return f"{times[slow][0][clock] / max(t[clock] for t in times[fast]):.2f} x (one round)"
    of_rounds = sorted(s[clock] / f[clock] for s, f in zip(times[slow], times[fast]))
    return f"{statistics.median(of_rounds):.2f} x (rounds {of_rounds[0]:.2f} to {of_rounds[-1]:.2f})"


def maps(options, folder):
    ids = [i * 7919 % 50257 for i in range(options.tokens)]
    candidates = {}
    for precision in options.precision:
        model = qkv.Model(folder, threads=options.threads, precision=precision, device="cpu")
        candidates[f"qkv {precision}"] = lambda model=model: model.read(ids, keep="attn.probs,final")
    try:
        import torch

        torch.set_num_threads(options.threads)
        for precision in options.precision:
            dtype = {"f32": torch.float32, "bf16": torch.bfloat16}[precision]
            candidates[f"torch {precision}"] = lambda run=torch_gpt2(folder, dtype): run(ids)
        print("torch", torch.__version__)
    except ImportError:
        print("torch is not installed: apt-get -o DPkg::Lock::Timeout=300 install python3-torch")
    print(f"T = {options.tokens}, {options.threads} threads, {options.rounds} rounds, load {os.getloadavg()[0]:.1f}")
    times = rounds_of(candidates, options.rounds)
    for name, all in times.items():
        wall, cpu = ([t[clock] for t in all] for clock in (0, 1))
        print(f"{name:12} {statistics.median(wall):7.2f} s, {statistics.median(cpu):7.2f} of the CPU (least {min(cpu):.2f})")
    for precision in options.precision:
        for clock, what in enumerate(("on the clock", "of the CPU")):
            if f"torch {precision}" in times:
                print(f"torch / qkv, {precision}, {what}: {ratio(times, f'torch {precision}', f'qkv {precision}', clock)}")
    if "torch f32" in candidates:
        ours, theirs = candidates["qkv f32"](), candidates["torch f32"]()[1]
        both = ((theirs[i].numpy(), ours[f"{i}.attn.probs"].transpose(1, 0, 2)) for i in range(len(theirs)))
        print(f"largest difference of the maps, f32: {max(float(np.abs(a - b).max()) for a, b in both):.2e}")


def generate(options, folder):
    model = qkv.Model(folder, threads=options.threads, precision="f32", device="cpu")
    prompt = [i * 7919 % model.info.vocabulary for i in range(16)]
    command = [str(options.program), "run", folder, " ".join(map(str, prompt)), "--ids", "--json", "--dtype", "f32"]
    command += ["--max-new", str(options.new), "--threads", str(options.threads)]
    speeds, outside, pairs = {"program": [], "python": []}, [], []
    for i in range(options.rounds + 1):
        done = {}
        for who in ("program", "python") if i % 2 else ("python", "program"):
            if who == "python":
                start = time.perf_counter()
                made = model.generate(prompt, max_new=options.new)
                wall = time.perf_counter() - start
                done[who] = (len(made.ids) - 1) / made.write_seconds
                around = (wall - made.read_seconds - made.write_seconds) / wall
                ids = made.ids
            else:
                said = subprocess.run(command, check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL)
                report = json.loads(said.stdout)
                report = report["texts"][0] if "texts" in report else report
                done[who] = (len(report["ids"]) - 1) / report["write_seconds"]
                theirs = report["ids"]
        assert ids == theirs, "the program writes other tokens"
        if i > 0:  # the first round reads the weights
            for who, speed in done.items():
                speeds[who].append(speed)
            pairs.append(done["python"] / done["program"])
            outside.append(around)
    print(f"{options.new} tokens, {options.threads} threads, {options.rounds} rounds, load {os.getloadavg()[0]:.1f}")
    for who, of_rounds in speeds.items():
        print(f"{who:8} {statistics.median(of_rounds):7.2f} tokens/s (fastest {max(of_rounds):.2f})")
    print(f"python / program: median of rounds {statistics.median(pairs):.3f}, of the fastest "
          f"{max(speeds['python']) / max(speeds['program']):.3f}")
    print(f"time outside reading and writing: {100 * statistics.median(outside):.2f} % of a call")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("maps", "generate"))
    parser.add_argument("--tokens", type=int, default=1024)
    parser.add_argument("--new", type=int, default=64, help="tokens to write")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--precision", nargs="+", choices=("f32", "bf16"), default=["f32", "bf16"], help="of the maps")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--model", help="a folder; otherwise GPT-2 124 M of random weights")
    parser.add_argument("--program", type=pathlib.Path, default=PROGRAM)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.model or qkv.new_model("gpt2", os.path.join(temporary, "gpt2"))
        {"maps": maps, "generate": generate}[options.what](options, folder)


if __name__ == "__main__":
    main()
