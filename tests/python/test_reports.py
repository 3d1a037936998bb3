"""Reports: they are made again by the command they name, they can be pickled, and the program and the module agree in them."""

import copy
import json
import os
import pathlib
import pickle
import re
import subprocess
import unittest

import numpy as np
from small_models import PROGRAM, golden, small, temporary
from test_model import program

import qkv

CLEAN, CORRUPT = "The cat sat on the mat", "The cot sat on the mat"
TRAINING = ("--set steps=6 --set schedule.warmup=1 --set schedule.decay=2 --set data.stories=300 --set evaluate.every=3 "
            "--set model.hidden_size=32 --set model.intermediate_size=64 --threads 1").split()


def in_bf16():
    """The small model in bf16, as most models are."""
    path = temporary("small-bf16")
    if not os.path.exists(path):
        program("convert", small(), "--out", path, "--dtype", "bf16")
    return path


def shell():
    """A folder to find qkv in, as a user's PATH has it."""
    folder = pathlib.Path(temporary("bin"))
    folder.mkdir(exist_ok=True)
    if not (folder / "qkv").exists():
        (folder / "qkv").symlink_to(PROGRAM)
    return {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}


def run(line, **how):
    done = subprocess.run(["sh", "-c", line], env={**shell(), **how}, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode not in (0, 1):  # 1: a lab that did not see its claim
        raise AssertionError(f"{line}: exit {done.returncode}: {done.stderr}")
    return done.stdout


def page_of(html):
    return json.loads(re.search(r'<script[^>]*id="report"[^>]*>(.*?)</script>', html, re.S).group(1))


class MadeWith(unittest.TestCase):
    def again(self, report):
        """The command of a report makes the same report."""
        with self.subTest(made_with=report["made_with"]):
            line = re.sub(r"^qkv \w+", r"\g<0> --json", report["made_with"])  # in front: a text may be all that follows
            self.assertEqual(json.loads(run(line)), report)

    def test_looks(self):
        model = qkv.Model(in_bf16(), threads=1)
        bf16 = qkv.Model(in_bf16(), threads=1, precision="bf16")
        for text in (CLEAN, "it's $HOME `ls` \\ \"x\" !", "a\nb\tc", "-x --token 1", "床前明月光", "*", "--"):
            report = model.look(text).report()
            self.assertEqual(report["title"], text)
            self.again(report)
        self.again(model.look(CLEAN, token=2).report())
        self.again(model.look([1, 5, 9]).report())
        self.again(bf16.look(CLEAN).report())
        self.assertIn("--dtype bf16", bf16.look(CLEAN).report()["made_with"])
        self.assertNotEqual(bf16.look(CLEAN).report()["ladder"], model.look(CLEAN).report()["ladder"])
        self.again(qkv.Model(golden("t5"), threads=1).look(([5, 9, 2, 7], [4, 8]), token=1).report())
        self.again(qkv.Model("world-2l", threads=1).look("Mia has a cat.").report())
        self.assertIn("qkv look world-2l ", qkv.Model("world-2l", threads=1).look("Mia").report()["made_with"])
        self.again(json.loads(program("look", in_bf16(), CLEAN, "--token", "3", "--json")))
        self.again(json.loads(program("look", in_bf16(), "1, 5 9", "--ids", "--dtype", "bf16", "--json")))

    def test_a_look_without_heads_says_so_and_names_no_command(self):
        report = qkv.Model(small(), threads=1).look(CLEAN, cut="L0H1").report()
        self.assertEqual(report["cut"], ["L0H1"])
        self.assertNotIn("made_with", report)

    def test_patches(self):
        model = qkv.Model(in_bf16(), threads=1)
        encode = model.tokenizer.encode
        answer, wrong = encode(" m", plain=True)[0], encode("b", plain=True)[0]
        part = encode("猫", plain=True)[0]  # no text of its own: a part of a character
        late = len(encode(CLEAN, plain=True)) - 2
        for how in ({"answer": answer, "wrong": wrong}, {"answer": answer, "wrong": wrong, "token": late, "heads": "L1H2,L0"},
                    {"answer": part, "wrong": wrong}):
            self.again(model.patch(CLEAN, CORRUPT, **how).report())
        said = model.patch(CLEAN, CORRUPT, answer=part, wrong=wrong).report()["made_with"]
        self.assertIn(f"--answer '#{part}' --wrong b", said)
        self.again(qkv.Model(in_bf16(), threads=1, precision="bf16").patch(CLEAN, CORRUPT, answer=answer, wrong=wrong).report())
        self.again(model.patch([1, 5, 9], [1, 6, 9], answer=answer, wrong=wrong).report())
        with qkv.Model(golden("t5"), threads=1) as translator:
            self.again(translator.patch(([5, 9, 2, 7], [4, 8]), ([5, 9, 3, 7], [4, 8]), answer=4, wrong=6).report())
            two = translator.patch(([5, 9, 2, 7], [4, 8]), ([5, 9, 3, 7], [4, 9]), answer=4, wrong=6)
            self.assertNotIn("made_with", two.report(), "the command has one target for both")
        self.again(json.loads(program("patch", in_bf16(), "--clean", CLEAN, "--corrupt", CORRUPT, "--answer", " m",
                                      "--wrong", f"#{wrong}", "--token", str(late), "--json")))

    def test_movies_and_demos(self):
        demo = pathlib.Path(temporary("a demo"))
        demo.mkdir()
        program("train", "demo", "--watch", "--out", str(demo / "run"), *TRAINING)
        self.again(json.loads(program("movie", str(demo / "run"), "--json")))
        self.again(json.loads(program("movie", "world-2l", "--json")))
        nothing = {"QKV_MODELS": temporary("no-models")}
        first = json.loads(run(f"qkv demo --out '{demo}' --json", **nothing))
        self.assertEqual(first["made_with"], f"qkv demo --out '{demo}'")
        self.assertEqual(json.loads(run(first["made_with"] + " --json", **nothing)), first)

    def test_labs(self):
        def lab(line):
            html = temporary("lab.html")
            run(f"{line} --html {html} --threads 1")
            page = page_of(pathlib.Path(html).read_text())
            for one in page["labs"]:
                for clock in ("seconds", "cpu_seconds"):
                    del one["here"][clock]
            return page

        first = lab("qkv lab causality --seeds 3 --first-seed 2")
        self.assertEqual(first["made_with"], "qkv lab causality --seeds 3 --first-seed 2")
        self.assertEqual(lab(first["made_with"]), first)


class Agreement(unittest.TestCase):
    """Of a model in bf16, without a word about precision."""

    def test_program_and_module_agree(self):
        model = qkv.Model(in_bf16(), threads=1)
        self.assertEqual((model.info.precision, model.info.looking), ("bf16", "f32"))
        self.assertEqual(model.look(CLEAN).json(), program("look", in_bf16(), CLEAN, "--json"))
        answer, wrong = ("--answer", " m"), ("--wrong", "b")
        ids = {name[2:]: model.tokenizer.encode(text, plain=True)[0] for name, text in (answer, wrong)}
        self.assertEqual(model.patch(CLEAN, CORRUPT, **ids).json(),
                         program("patch", in_bf16(), "--clean", CLEAN, "--corrupt", CORRUPT, *answer, *wrong, "--json"))
        said = json.loads(program("attribute", in_bf16(), CLEAN, "--json"))
        self.assertEqual([part["share"] for part in model.attribute(CLEAN).parts], [part["share"] for part in said["parts"]])
        said = json.loads(program("cut", in_bf16(), "--heads", "L0H1", "--with", "zero", "--tokens", "600", "--json"))
        self.assertEqual(model.cut("L0H1", tokens=600).delta.mean, said["effect"]["delta"]["mean"])
        said = json.loads(program("lens", in_bf16(), "--tokens", "600", "--json"))
        self.assertEqual([row["kl"] for row in model.lens(tokens=600)], [row["kl"]["mean"] for row in said["logit_lens"]["layers"]])

    def test_bf16_where_it_is_asked_for(self):
        asked = qkv.Model(in_bf16(), threads=1, precision="bf16")
        self.assertEqual(asked.info.looking, "bf16")
        self.assertEqual(asked.look(CLEAN).json(), program("look", in_bf16(), CLEAN, "--json", "--dtype", "bf16"))

    def test_data_is_chosen_as_cut_chooses_it(self):
        with qkv.Model("translator", threads=1) as model:
            self.assertEqual(model.lens(tokens=400), model.lens("world:pairs", tokens=400))
            self.assertEqual(str(model.roles(tokens=1500)), str(model.roles("world:pairs", tokens=1500)))


class Pickles(unittest.TestCase):
    def test_a_look(self):
        for text in ("The 猫 sat", ([5, 9, 2], [4])):
            seen = qkv.Model(small() if isinstance(text, str) else golden("t5"), threads=1).look(text)
            for again in (pickle.loads(pickle.dumps(seen)), copy.deepcopy(seen), pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(seen))))):
                self.assertEqual(list(again), list(seen))
                for name in seen:
                    np.testing.assert_array_equal(again[name], seen[name])
                    self.assertFalse(again[name].flags.writeable)
                self.assertEqual((again.tokens, again.ids, again.json()), (seen.tokens, seen.ids, seen.json()))
                self.assertEqual(again.html(), seen.html())
                self.assertEqual(again.ladder(), seen.ladder())
                self.assertEqual(again.guesses(-1, 0), seen.guesses(-1, 0))
                self.assertEqual(repr(again), repr(seen))
                with self.assertRaises(qkv.InputError):
                    again.guesses(99, 0)
                ours, theirs = temporary("ours.npz"), temporary("theirs.npz")
                again.save_npz(ours)
                seen.save_npz(theirs)
                with np.load(ours) as a, np.load(theirs) as b:
                    self.assertEqual(set(a.files), set(b.files))
                    for name in a.files:
                        self.assertEqual(a[name].dtype, b[name].dtype)
                        np.testing.assert_array_equal(a[name], b[name])

    def test_a_patch(self):
        found = qkv.Model(small(), threads=1).patch(CLEAN, CORRUPT, answer=5, wrong=9, heads="L1H2")
        again = pickle.loads(pickle.dumps(found))
        self.assertEqual(list(again), list(found))
        for name in found:
            np.testing.assert_array_equal(again[name], found[name])
        for name in ("clean_ids", "corrupt_ids", "token", "answer", "wrong", "clean", "corrupt"):
            self.assertEqual(getattr(again, name), getattr(found, name))
        self.assertEqual((again.json(), again.html(), repr(again)), (found.json(), found.html(), repr(found)))
        self.assertEqual(again.table(), found.table())

    def test_everything_else_that_is_returned(self):
        model = qkv.Model(small(), threads=1)
        _, cache = model.run_with_cache(CLEAN, "blocks.0.attn.hook_pattern")
        for made in (model.read(CLEAN, keep="final", losses=True), model.attribute(CLEAN), model.cut("L0H1", tokens=400),
                     model.generate(CLEAN, max_new=2), model.score(CLEAN), model.info, model.taps(), cache):
            again = pickle.loads(pickle.dumps(made))
            self.assertIs(type(again), type(made))
            self.assertEqual(repr(again), repr(made))
        try:
            model.read([99999])
        except qkv.InputError as error:
            self.assertEqual(str(pickle.loads(pickle.dumps(error))), str(error))


class EncoderDecoders(unittest.TestCase):
    def test_keys_of_the_cache(self):
        with qkv.Model(golden("t5"), threads=1) as model:
            _, cache = model.run_with_cache(([5, 9, 2, 7], [4, 8]))
            self.assertIs(cache["pattern", 0], cache["decoder.0.attn.hook_pattern"])
            self.assertIs(cache["pattern", 0, "decoder"], cache["decoder.0.attn.hook_pattern"])
            self.assertIs(cache["pattern", 0, "encoder"], cache["encoder.0.attn.hook_pattern"])
            for name in ("cross", "cross_attn"):
                self.assertIs(cache["pattern", 1, name], cache["decoder.1.cross_attn.hook_pattern"])
            self.assertEqual(cache["pattern", 0, "cross"].shape[2:], (3, 4))
            last = model.info.layers - 1
            self.assertIs(cache["resid_post", -1], cache[f"decoder.{last}.hook_resid_post"])
            self.assertIs(cache["resid_post", -1, "encoder"], cache["encoder.1.hook_resid_post"])
            self.assertIs(cache["attn_out", 0, "cross"], cache["decoder.0.hook_cross_attn_out"])
            with self.assertRaisesRegex(KeyError, "no layer 9.*0 to"):
                cache["pattern", 9]
            point = qkv.HookPoint("decoder.1.cross_attn.hook_pattern")
            self.assertEqual(point.layer(), 1)
            with self.assertRaisesRegex(qkv.InputError, "no layer"):
                qkv.HookPoint("encoder_final_ln.hook_normalized").layer()
        with qkv.Model(golden("bert"), threads=1) as model:
            _, cache = model.run_with_cache([5, 9, 2])
            self.assertIs(cache["pattern", -1], cache[f"blocks.{model.info.layers - 1}.attn.hook_pattern"])


if __name__ == "__main__":
    unittest.main()
