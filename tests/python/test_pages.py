"""The Python programs of docs/library.md print and write what the commands below them do, bit for bit."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from small_models import GOLDEN, LLAMA, PROGRAM

import qkv

PAGE = pathlib.Path(__file__).resolve().parent.parent.parent / "docs" / "library.md"
T5 = {
    "model_type": "t5",
    "vocab_size": 124,
    "d_model": 16,
    "d_kv": 8,
    "d_ff": 32,
    "num_layers": 2,
    "num_heads": 2,
    "feed_forward_proj": "relu",
    "pad_token_id": 0,
    "eos_token_id": 1,
    "decoder_start_token_id": 0,
    "tie_word_embeddings": True,
    "is_encoder_decoder": True,
}


def programs():
    """Pairs of a Python program and the command below it, or None."""
    found = []
    for kind, text in re.findall(r"```(python|sh)\n(.*?)```", PAGE.read_text(), re.S):
        if kind == "python":
            found.append([text, None])
        elif found:
            found[-1][1] = text
    return found


class Pages(unittest.TestCase):
    def test_programs_print_what_the_commands_print(self):
        with tempfile.TemporaryDirectory() as folder:
            made = pathlib.Path(folder)
            (made / "bin").mkdir()
            (made / "bin" / "qkv").symlink_to(PROGRAM)
            self.environment = {**os.environ, "PATH": f"{made}/bin:{os.environ['PATH']}", "PYTHONIOENCODING": "utf-8"}
            qkv.new_model({**LLAMA, "vocab_size": 608}, made / "model", seed=1)
            qkv.new_model(T5, made / "translator", seed=1)
            shutil.copy(GOLDEN / "tokenizers" / "qwen2" / "tokenizer.json", made / "model")
            shutil.copy(GOLDEN / "tokenizers" / "unigram" / "tokenizer.json", made / "translator")
            every = programs()
            self.assertEqual(len(every), 11)
            for number, (program, command) in enumerate(every, 1):
                with self.subTest(program=number):
                    self.compare(made, number, program, command)

    def compare(self, made, number, program, command):
        ours, theirs = made / f"ours{number}", made / f"theirs{number}"
        ours.mkdir()
        theirs.mkdir()
        model = made / ("translator" if command and "TRANSLATOR" in command else "model")
        said = self.run_in(ours, [sys.executable, "-c", program, str(model)])
        self.assertTrue(said)
        if command is None:
            return
        line = command.replace("TRANSLATOR", str(made / "translator")).replace("MODEL", str(made / "model"))
        self.assertEqual(said, self.run_in(theirs, ["sh", "-c", line]), command)
        for file in [*ours.rglob("*.npz"), *ours.rglob("*.safetensors")]:
            self.assertEqual(file.read_bytes(), (theirs / file.relative_to(ours)).read_bytes(), file.name)

    def run_in(self, folder, command):
        done = subprocess.run(command, cwd=folder, env=self.environment, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout


if __name__ == "__main__":
    unittest.main()
