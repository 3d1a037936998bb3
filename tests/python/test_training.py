"""Training: a recorded run step by step, recipes, what functions raise, Ctrl-C."""

import json
import os
import pathlib
import struct
import subprocess
import sys
import unittest

import numpy as np
from small_models import GOLDEN, PROGRAM, golden, small, temporary

import qkv

TINY = {"model_type": "gpt2", "vocab_size": 64, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 32}


def trained_by_torch(name):
    data = (GOLDEN / name / "train.safetensors").read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    out = {}
    for key, about in header.items():
        if key != "__metadata__":
            begin, end = about["data_offsets"]
            kind = {"F32": np.float32, "I64": np.int64, "F64": np.float64}[about["dtype"]]
            out[key] = np.frombuffer(data[8 + length + begin : 8 + length + end], kind).reshape(about["shape"])
    return out


class Loop(unittest.TestCase):
    def test_a_recorded_run_of_torch(self):
        run = trained_by_torch("gpt2")
        trainer = qkv.Trainer(golden("gpt2"), threads=1, precision="f32")
        for step, tokens in enumerate(run["tokens"]):
            report = trainer.step(tokens, lr=1e-3 * min(1, (step + 1) / 5))
            self.assertAlmostEqual(report.loss, float(run["loss"][step]), places=4)
            self.assertAlmostEqual(report.grad_norm, float(run["grad_norm"][step]), places=3)
        self.assertEqual(trainer.steps, len(run["tokens"]))
        before = trainer.weight(trainer.weights()[0]["name"])
        trainer.step(run["tokens"][0], lr=1e-3)
        self.assertFalse(np.array_equal(before, trainer.weight(trainer.weights()[0]["name"])), "arrays are yours")

    def test_targets_and_frozen_weights(self):
        folder = qkv.new_model(TINY, temporary("tiny-targets"))
        trainer = qkv.Trainer(folder, threads=1, frozen=["*"])
        self.assertFalse(any(row["trained"] for row in trainer.weights()))
        batch = np.arange(20).reshape(2, 10)
        nothing = np.full((2, 10), -100)
        some = nothing.copy()
        some[0, 3] = 4
        one = qkv.Trainer(folder, threads=1).loss(batch, targets=some)
        seen = qkv.Model(folder, threads=1).score(batch[0])
        self.assertAlmostEqual(one, -float(seen.log_p[3]), places=4)

    def test_save_is_what_was_trained(self):
        folder = qkv.new_model(TINY, temporary("tiny-save"))
        trainer = qkv.Trainer(folder, threads=1)
        batch = np.arange(40).reshape(2, 20)
        for _ in range(3):
            trainer.step(batch, lr=1e-2)
        saved = trainer.save(temporary("tiny-saved"))
        self.assertAlmostEqual(qkv.Trainer(saved, threads=1).loss(batch), trainer.loss(batch), places=6)


SMALL_RUN = {"optimizer.steps": 6}


class Recipe(unittest.TestCase):
    def recipe(self):
        """The smallest recipe that trains: the demo's, cut down."""
        return dict(recipe="demo", set={"data.stories": 200, "steps": 6}, threads=1)

    def test_steps_are_told_and_false_stops(self):
        out = temporary("run-told")
        told = []

        def two(report):
            told.append(report)
            return report.step < 2

        done = qkv.train(out=out, on_step=two, **self.recipe())
        self.assertEqual([report.step for report in told], [1, 2])
        self.assertFalse(done.finished)
        self.assertTrue(os.path.isdir(out))
        more = qkv.train(out=out, resume=True, threads=1, on_step=lambda report: report.step < 3)
        self.assertEqual(more.steps, 3)

    def test_what_a_function_raises_comes_out(self):
        def raises(report):
            raise LookupError(report.step)

        with self.assertRaises(LookupError) as caught:
            qkv.train(out=temporary("run-raises"), on_step=raises, **self.recipe())
        self.assertEqual(caught.exception.args, (1,))

    def test_ctrl_c_saves_the_run(self):
        out = temporary("run-ctrl-c")
        script = """
import sys, json, os, signal, qkv
how = json.loads(sys.argv[1])
def press(report):
    if report.step == 1: os.kill(os.getpid(), signal.SIGINT)
try:
    qkv.train(out=sys.argv[2], on_step=press, **how)
except KeyboardInterrupt:
    print("interrupted")
"""
        how = {**self.recipe(), "set": {"data.stories": 200, "steps": 400}}
        done = subprocess.run([sys.executable, "-c", script, json.dumps(how), out], capture_output=True, text=True,
                              timeout=300, stdin=subprocess.DEVNULL)
        self.assertEqual(done.stdout, "interrupted\n", done.stderr)
        self.assertTrue(any(pathlib.Path(out).rglob("model.safetensors")))


if __name__ == "__main__":
    unittest.main()
