#!/bin/sh
# numbers_test.sh QKV: numbers that the program prints, against their definitions.
qkv=$1
command -v python3 >/dev/null || exit 77
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export QKV_TEST="$qkv" FOLDER="$folder" TOKENIZERS="$(dirname "$0")/../golden/tokenizers"
exec python3 - <<'END'
import json, math, os, shutil, subprocess, sys

qkv, folder, tokenizers = os.environ["QKV_TEST"], os.environ["FOLDER"], os.environ["TOKENIZERS"]
failed = False


def run(*arguments, given=""):
    done = subprocess.run([qkv, *arguments], input=given, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"qkv {' '.join(arguments)}: exit {done.returncode}: {done.stderr}")
    return done.stdout


def check(what, got, wanted):
    global failed
    if got != wanted:
        print(f"{what}: {got}, not {wanted}")
        failed = True


def new_model(name, config, tokenizer):
    with open(f"{folder}/{name}.json", "w") as out:
        json.dump(config, out)
    run("new", "--spec", f"{folder}/{name}.json", "--seed", "3", "--out", f"{folder}/{name}")
    shutil.copy(f"{tokenizers}/{tokenizer}/tokenizer.json", f"{folder}/{name}")
    return f"{folder}/{name}"


# The words that translate each other are those of the other direction, the other way round.
english = [json.loads(line) for line in run("world", "--labels", "align", "--lang", "en", "--lines", "3").splitlines()]
chinese = [json.loads(line) for line in run("world", "--labels", "align", "--lang", "zh", "--lines", "3").splitlines()]
check("sentences", len(chinese), len(english))
for one, other in zip(english, chinese):
    check("the source in Chinese", other["source"], one["target"])
    check("its pairs", other["pairs"], [[b, a] for a, b in one["pairs"]])

# Bins of lengths follow each other, and hold all documents.
with open(f"{folder}/text", "w") as out:
    for length in (1, 2, 3, 4, 7, 8, 30, 31, 32):
        out.write("x" * length + "\n\n")
run("data", "pack", "--tokenizer", "bytes", "--split-validation", "0", "--out", f"{folder}/data", f"{folder}/text")
bins = json.loads(run("data", "stats", f"{folder}/data", "--json"))["train"]["lengths"]["document"]
check("the first bin", bins[0]["from"], 1)
for this, after in zip(bins, bins[1:]):
    check("the end of a bin", this["to"] + 1, after["from"])
check("the last bin", (bins[-1]["from"], bins[-1]["to"]), (32, 63))  # 32 letters and the end
check("documents", sum(one["count"] for one in bins), 9)

# Bits per byte are of bytes, whatever a character takes.
reader = new_model("reader", {
    "model_type": "llama", "vocab_size": 600, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1,
    "num_attention_heads": 2, "max_position_embeddings": 64, "bos_token_id": 1, "eos_token_id": 2}, "llama2")
text = "小猫坐在垫子上。The cat sat on the mat. " * 6
with open(f"{folder}/story", "w") as out:
    out.write(text)
report = json.loads(run("eval", reader, "--data", f"{folder}/story", "--json"))
check("bytes", report["bytes"], len(text.encode()))
bits = report["nats_per_token"]["value"] * report["tokens"] / report["bytes"] / math.log(2)
check("bits per byte", abs(report["bits_per_byte"]["value"] - bits) < 1e-9, True)

# A window's bytes are bytes too: where each token has as many, both intervals are the same, but for the unit. The first
# word has no space before it; a word is three tokens of three bytes, a window ten words.
with open(f"{folder}/story", "w") as out:
    out.write("ü" + " ü" * 199)
report = json.loads(run("eval", reader, "--data", f"{folder}/story", "--window", "31", "--json"))
check("windows", report["windows"] > 10, True)
scale = report["tokens"] / report["bytes"] / math.log(2)
for nats, bits in zip(report["nats_per_token"]["interval95"], report["bits_per_byte"]["interval95"]):
    check("the bounds in bits per byte", abs(bits / (nats * scale) - 1) < 0.01, True)

# Lines are numbered through, also where they are translated in several windows.
translator = new_model("translator", {
    "model_type": "t5", "vocab_size": 124, "d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 1, "num_heads": 2,
    "feed_forward_proj": "relu", "pad_token_id": 0, "eos_token_id": 1, "decoder_start_token_id": 0,
    "tie_word_embeddings": True, "is_encoder_decoder": True}, "unigram")
out = run("translate", translator, "--beam", "1", "--max-new", "2", "--json", given="\n" * 1029 + "the cat\n")
check("numbers of lines", [json.loads(line)["line"] for line in out.splitlines()], list(range(1, 1031)))

sys.exit(1 if failed else 0)
END
