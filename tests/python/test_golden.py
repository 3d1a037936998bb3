"""Maps of every recorded model: equal to the bit with qkv look --npz, and close to what Hugging Face recorded."""

import json
import os
import pathlib
import subprocess
import unittest

import numpy as np
from small_models import GOLDEN, PROGRAM, golden, recorded, temporary

import qkv

NAMES = sorted(path.parent.name for path in GOLDEN.glob("*/io.safetensors") if (path.parent / "config.json").exists())


def text_of(io, row=0):
    """A text whose tokens were all recorded without padding."""
    ids = io["input_ids"][row].tolist()
    if "decoder_input_ids" in io:
        return ids, io["decoder_input_ids"][row].tolist()
    return ids, None


class Goldens(unittest.TestCase):
    def test_all_are_here(self):
        self.assertGreater(len(NAMES), 40)

    def test_maps(self):
        compared = 0
        for name in NAMES:
            with self.subTest(name):
                compared += self.compare(name)
        self.assertGreater(compared, 100, "maps in all")

    def compare(self, name):
        io = recorded(name)
        ids, target = text_of(io)
        model = qkv.Model(golden(name), threads=1, precision="f32", device="cpu")
        given = ids if target is None else (ids, target[1:])  # the start token is the model's own
        seen = model.look(given)
        kept = model.read(given, keep=[tap["name"] for tap in model.taps() if tap["name"].endswith("attn.probs")])
        # The program's.
        npz = temporary(name + ".npz")
        command = [PROGRAM, "look", golden(name), " ".join(map(str, ids)), "--ids", "--npz", npz, "--threads", "1"]
        if target is not None:
            command += ["--target", " ".join(map(str, target[1:]))]
        subprocess.run(command + ["--dtype", "f32"], check=True, stdin=subprocess.DEVNULL, capture_output=True)
        with np.load(npz) as files:
            words = {"tokens", "tokens.ids", "source", "source.ids"}
            self.assertEqual(set(files.files) - words, set(seen))
            self.assertEqual(files["tokens.ids"].tolist(), seen.ids)
            for array in seen:
                self.assertTrue(np.array_equal(files[array], seen[array]), f"{array} is not the program's")
        os.unlink(npz)
        # What was recorded.
        maps = 0
        for key, array in io.items():
            stack, _, layer = key.rpartition("attentions.")
            if not layer.isdigit() or key.startswith("router"):
                continue
            prefix = {"": "", "encoder_": "enc.", "decoder_": "dec.", "cross_": "cross."}[stack]
            ours = kept[f"{prefix}{layer}.attn.probs"]
            letter = {"": "L", "encoder_": "E", "decoder_": "L", "cross_": "X"}[stack]
            self.assertTrue(np.array_equal(ours, seen[f"{letter}{layer}.probs"]), key)
            theirs = array[0].transpose(1, 0, 2)
            self.assertLess(np.abs(theirs - ours[:, :, : theirs.shape[2]]).max(), 2e-5, key)
            maps += 1
        self.assertGreater(maps, 0)
        model.close()
        return maps

    def test_logits(self):
        for name in ("gpt2", "llama", "mixtral", "gemma3"):
            io = recorded(name)
            with qkv.Model(golden(name), threads=1, precision="f32") as model:
                logits, _ = model.run_with_cache(io["input_ids"][0], names_filter="hook_embed")
                self.assertLess(np.abs(logits[0] - io["logits"][0]).max(), 2e-4, name)

    def test_greedy_texts(self):
        for name in ("gpt2", "llama", "qwen3", "phi"):
            io = recorded(name)
            prompt = io["input_ids"][0]
            wanted = io["generate_greedy"][0][len(prompt) :].tolist()
            with qkv.Model(golden(name), threads=1, precision="f32") as model:
                made = model.generate(prompt, max_new=len(wanted)).ids
                self.assertEqual(made, wanted[: len(made)], name)
                self.assertTrue(made)


if __name__ == "__main__":
    unittest.main()
