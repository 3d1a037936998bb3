"""What is wrong is said, with a hint, by a typed exception; the interpreter goes on."""

import pickle
import unittest

import numpy as np
from small_models import golden, small, temporary

import qkv

IDS = [1, 5, 9, 4]


class BadInput(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = qkv.Model(small(), threads=1, precision="f32", device="cpu")
        cls.without = qkv.Model(golden("llama"), threads=1)

    def expect(self, kind, words, call):
        with self.assertRaises(kind) as caught:
            call()
        for word in words:
            self.assertIn(word, str(caught.exception))
        return caught.exception

    def test_types(self):
        model = self.model
        cases = [
            (["3.5", "float", "give a str"], lambda: model.generate(3.5)),
            (["None", "NoneType"], lambda: model.generate(None)),
            (["bytes", "decode"], lambda: model.generate(b"cat")),
            (["whole numbers", "float64"], lambda: model.generate(np.array([1.5, 2]))),
            (["1.5", "token id"], lambda: model.generate([1, 1.5])),
            (["max_new", "'ten'", "whole number"], lambda: model.generate("a", max_new="ten")),
            (["max_new", "1.5"], lambda: model.generate("a", max_new=1.5)),
            (["temperature", "number"], lambda: model.generate("a", temperature="hot")),
            (["stop", "list of str"], lambda: model.generate("a", stop=[1])),
            (["logit_bias"], lambda: model.generate("a", logit_bias=[1])),
            (["no option max_tokens", "max_new"], lambda: model.generate("a", max_tokens=3)),
            (["on_text", "list"], lambda: model.generate(["a"], on_text=print)),
            (["seed", "-1"], lambda: model.generate("a", seed=-1)),
            (["list of texts"], lambda: model.roles(5)),
            (["tokens", "'x'"], lambda: model.roles("world", tokens="x")),
            (["see", "pairs"], lambda: model.read("a", see=["embed"])),
            (["edit", "pairs"], lambda: model.read("a", edit={"embed": 3})),
            (["see"], lambda: model.read("a", see=print)),
            (["keep", "3"], lambda: model.read("a", keep=["embed", 3])),
            (["hook"], lambda: model.run_with_hooks("a", [("hook_embed", 3)])),
            (["cut", "str"], lambda: model.read("a", cut=3)),
            (["path"], lambda: qkv.Model(3)),
            (["threads"], lambda: qkv.Model(small(), threads="two")),
            (["text", "str"], lambda: model.tokenizer.encode(3)),
            (["ids"], lambda: model.tokenizer.decode("cat")),
            (["id", "'a'"], lambda: model.tokenizer.token("a")),
            (["texts"], lambda: model.translate(["a", 3])),
            (["pair"], lambda: model.generate(("a", 3))),
            (["lr"], lambda: qkv.Trainer(small(), threads=1).step([IDS], lr="fast")),
            (["token", "2**63"], lambda: model.look("a", token=2**70)),
            (["max_new", "2**63"], lambda: model.generate("a", max_new=2**70)),
            (["seed"], lambda: model.generate("a", seed=2**64)),
            (["json_schema", "dict"], lambda: model.generate("a", json_schema={"type": "object"})),
            (["no 'repalce'", "replace"], lambda: model.read("a", cut={"heads": "L0H1", "repalce": "mean"})),
            (["set", "dict"], lambda: qkv.train("demo", out=temporary("no-run"), set=5)),
            (["on_step", "function"], lambda: qkv.train("demo", out=temporary("no-run"), on_step=5)),
            (["names", "5"], lambda: model.run_with_cache("a", names_filter=5)),
            (["fwd_hooks", "pairs"], lambda: model.run_with_hooks("a", 5)),
            (["fwd_hooks", "pairs"], lambda: model.run_with_hooks("a", [("hook_embed", print, 3)])),
            (["ids"], lambda: model.generate([[[1]]])),
            (["returned", "array"], lambda: model.read("a", edit={"embed": lambda n, a: np.array([object()] * a.size)})),
            (["path"], lambda: qkv.Model(b"world")),
            (["losses", "True or False"], lambda: model.read("a", losses="yes")),
            (["texts"], lambda: qkv.Trainer(small(), threads=1).step("cat", lr=1e-3)),
        ]
        for words, call in cases:
            with self.subTest(words=words):
                self.expect(TypeError, words, call)

    def test_keys_that_are_not_there_name_the_nearest(self):
        model = self.model
        _, cache = model.run_with_cache("the cat")
        for words, call in (
            (["blocks.0.attn.hook_patern", "did you mean blocks.0.attn.hook_pattern?"], lambda: cache["blocks.0.attn.hook_patern"]),
            (["did you mean blocks.1.attn.hook_pattern?"], lambda: cache["patern", 1]),
            (["no layer 7", "0 to 1"], lambda: cache["pattern", 7]),
            (["did you mean 0.attn.q?"], lambda: model.read("a", keep="0.attn.q")["0.attn.qq"]),
            (["did you mean L0.probs?"], lambda: model.look("a")["L0.prob"]),
            (["nothing was", "keep"], lambda: model.read("a")["0.attn.q"]),
        ):
            with self.subTest(words=words):
                with self.assertRaises(KeyError) as caught:
                    call()
                for word in words:
                    self.assertIn(word, str(caught.exception))

    def test_values(self):
        model = self.model
        cases = [
            (["no-such", "hint"], lambda: qkv.Model("no-such-model")),
            (["device", "tpu", "cuda"], lambda: qkv.Model(small(), device="tpu")),
            (["precision", "f16", "bf16"], lambda: qkv.Model(small(), precision="f16")),
            (["texts is 0"], lambda: qkv.Model(small(), texts=0)),
            (["max_new is 0"], lambda: model.generate("a", max_new=0)),
            (["2 dimensions"], lambda: model.read(np.zeros((2, 2), np.int32))),
            (["id 99999"], lambda: model.generate([99999])),
            (["-1"], lambda: model.generate([-1])),
            (["9223372036854775807"], lambda: model.generate(np.array([2**63 - 1]))),
            (["target"], lambda: model.generate(("a", "b"))),
            (["no tokenizer"], lambda: self.without.generate("a")),
            (["attn.qq", "did you mean", "model.taps()"], lambda: model.read("a", keep="0.attn.qq")),
            (["ln1.hook_scale", "the nearest is 0.resid.pre"], lambda: model.read("a", keep="blocks.0.ln1.hook_scale")),
            (["hook_pos_embed", "the nearest is embed"], lambda: model.run_with_cache("a", "hook_pos_embed")),
            (["hook_result", "0.attn.z", "model.attribute()"], lambda: model.read("a", keep="blocks.0.attn.hook_result")),
            (["L9H0"], lambda: model.cut("L9H0")),
            (["L9H0"], lambda: model.read("a", cut="L9H0")),
            (["neither heads nor experts"], lambda: model.read("a", cut={})),
            (["replace", "nothing"], lambda: model.cut("L0H1", replace="nothing")),
            (["pooling"], lambda: model.embed("a", pooling="max")),
            (["attn.probs", "not changed"], lambda: model.read("a", edit={"0.attn.probs": lambda n, a: a})),
            (["read and not changed"], lambda: model.run_with_hooks("a", [("blocks.0.attn.hook_pattern", lambda v, hook: v)])),
            (["translates nothing"], lambda: model.translate("a")),
            (["nan"], lambda: model.read("a", edit={"0.resid.post": lambda n, a: a * np.nan})),
            (["json", "schema"], lambda: model.generate("a", json_schema="{")),
            (["recipe"], lambda: qkv.train("no-such-recipe", out=temporary("no-run"))),
            (["no weight", "nothing"], lambda: qkv.Trainer(small(), threads=1).weight("nothing")),
            (["optimizer", "magic"], lambda: qkv.Trainer(small(), threads=1, optimizer="magic")),
            (["no model was named"], lambda: qkv.Model("")),
            (["no such file or folder", "built-in"], lambda: qkv.Model("a\0b")),
            (["no such file or folder", "built-in"], lambda: qkv.Tokenizer("wrold")),
            (["threads is -3"], lambda: qkv.Model(small(), threads=-3)),
            (["context -1"], lambda: qkv.Model(small(), context=-1)),
            (["no token -5"], lambda: model.look("a", token=-5)),
            (["no token -9"], lambda: model.attribute("a", token=-9)),
            (["no token -9"], lambda: model.patch("the cat sat", "the cot sat", token=-9)),
            (["no token 99"], lambda: model.look("a").guesses(0, 99)),
            (["level 99"], lambda: model.look("a").guesses(99, 0)),
            (["temperature is nan"], lambda: model.generate("a", temperature=float("nan"))),
            (["logit_bias", "nan"], lambda: model.generate("a", logit_bias={5: float("nan")})),
            (["999999"], lambda: model.generate("a", logit_bias={999999: 1.0})),
            (["draft"], lambda: model.generate("a", draft=10**9)),
            (["stop string", "0 bytes"], lambda: model.generate("a", stop="")),
            (["64 levels"], lambda: model.generate("a", json_schema="[" * 100000)),
            (["beams is 0"], lambda: model.search("a", beams=0)),
            (["positions would fit"], lambda: model.search("a", beams=10**8, max_new=2)),
            (["no tokens"], lambda: model.generate([[]])),
            (["made for 512"], lambda: model.read(np.zeros(10**6, np.int32))),
            (["no tap"], lambda: model.read("a", keep="\0,,,")),
            (["no tap"], lambda: model.read("a", keep="99999999999999999999.attn.q")),
            (["[10000, 1]"], lambda: model.read("a", edit={"embed": lambda n, a: np.zeros((10000, 1))})),
            (["no experts"], lambda: model.read("a", cut={"experts": "L0E0"})),
            (["tokens is -1"], lambda: model.cut("L0H1", tokens=-1)),
            (["window 0"], lambda: model.roles("world", window=0)),
            (["is a folder"], lambda: model.roles("/")),
            (["no texts"], lambda: model.lens([])),
            (["none is scored"], lambda: model.score("")),
            (["no token has the id"], lambda: model.tokenizer.decode([10**9])),
            (["no token has the id"], lambda: model.tokenizer.token(2**40)),
            (["exists already"], lambda: model.save("/")),
            (["/no/such/dir"], lambda: model.look("a").save_npz("/no/such/dir/x.npz")),
            (["nope"], lambda: qkv.new_model({"model_type": "nope"}, temporary("never"))),
            (["learning rate is nan"], lambda: qkv.Trainer(small(), threads=1).step([IDS], lr=float("nan"))),
            (["token 1000000"], lambda: qkv.Trainer(small(), threads=1).step([[1, 10**6]], lr=1e-3)),
            (["no texts"], lambda: qkv.Trainer(small(), threads=1).step([], lr=1e-3)),
            (["4 tokens but 1 targets"], lambda: qkv.Trainer(small(), threads=1).step([IDS], lr=1e-3, targets=[[1]])),
            (["nothing to predict"], lambda: qkv.Trainer(small(), threads=1).step([IDS], lr=1e-3, targets=[[-100] * 4])),
            (["unknown key", "nope"], lambda: qkv.train("demo", out=temporary("no-run"), set={"nope": 3})),
        ]
        for words, call in cases:
            with self.subTest(words=words):
                with self.assertRaises(qkv.InputError) as caught:
                    call()
                said = str(caught.exception).lower()
                for word in words:
                    self.assertIn(word.lower(), said)
                self.assertTrue(caught.exception.hint, said)
        self.assertEqual(len(model.generate("a", max_new=2).ids), 2, "and goes on")

    def test_shapes_of_what_hooks_return(self):
        error = self.expect(qkv.InputError, ["0.mlp.out", "[3, 3]"],
                            lambda: self.model.read("a b c", edit={"0.mlp.out": lambda n, a: np.zeros((3, 3))}))
        self.assertIn("same shape", error.hint)
        self.expect(qkv.InputError, ["blocks.0.hook_mlp_out", "[2]"],
                    lambda: self.model.run_with_hooks("a", [("blocks.0.hook_mlp_out", lambda v, hook: [1, 2])]))
        self.expect(TypeError, ["0.mlp.out", "array"],
                    lambda: self.model.read("a", edit={"0.mlp.out": lambda n, a: "cat"}))
        with self.assertRaises(ValueError):  # numpy's own: read-only
            self.model.read("a", see={"embed": lambda n, a: a.fill(0)})

    def test_closed(self):
        model = qkv.Model(small(), threads=1)
        writing = model.start("The cat", max_new=100)
        next(writing)
        seen, kept = model.look("The cat"), model.read("The cat", keep="final")
        tokenizer = model.tokenizer
        model.close()
        model.close()
        for call in (lambda: model.generate("a"), lambda: model.info, lambda: model.tokenizer, lambda: model.taps(),
                     lambda: model.read("a"), lambda: model.roles(), lambda: model.start("a"), lambda: next(writing),
                     lambda: model.save(temporary("never"))):
            with self.assertRaises(qkv.ClosedError) as caught:
                call()
            self.assertTrue(caught.exception.hint)
        self.assertTrue(model.closed)
        self.assertIn("closed", repr(model))
        self.assertEqual(seen["L0.probs"].shape[1], 4, "what was seen lives on")
        self.assertIn("<html", seen.html())
        self.assertEqual(kept["final"].shape[1], 32)
        self.assertTrue(tokenizer.encode("a"))

    def test_text_that_is_none(self):
        with self.assertRaises(UnicodeEncodeError):
            self.model.generate("\ud800")
        with self.assertRaises(UnicodeEncodeError):
            self.model.tokenizer.encode("a\ud800")
        self.model.generate("a\0b", max_new=2)
        with self.assertRaises(qkv.InputError):
            self.model.read([])

    def test_errors_travel(self):
        try:
            qkv.Model("no-such-model")
        except qkv.Error as error:
            again = pickle.loads(pickle.dumps(error))
            self.assertEqual((type(again), str(again), again.where), (type(error), str(error), error.where))
            self.assertIsInstance(error, ValueError)

    def test_objects_of_the_inside_cannot_be_made_up(self):
        for name in ("Looked", "Generation"):
            with self.assertRaises(TypeError):
                getattr(qkv._core, name)()

    def test_objects_without_init_are_closed_ones(self):
        core = qkv._core
        for kind, call in ((core.Model, "info"), (core.Tokenizer, "size"), (core.Trainer, "steps"), (core.Generation, "next"),
                           (core.Looked, "html")):
            with self.subTest(kind=kind):
                with self.assertRaises(qkv.ClosedError):
                    getattr(kind.__new__(kind), call)()
        self.assertEqual(core.Patched.__new__(core.Patched).maps(), [])
        for one in (self.model, self.model.tokenizer, qkv.Trainer(small(), threads=1)):
            with self.assertRaises(TypeError):
                pickle.dumps(one)

    def test_objects_that_fight_back(self):
        class Evil:
            def __iter__(self):
                raise RuntimeError("evil")

            __array__ = __repr__ = __iter__

        class Shrinking(list):
            def __iter__(self):
                yield 1
                self.clear()
                yield 2

        for call in (lambda: self.model.generate(Evil()), lambda: self.model.generate([Evil()]),
                     lambda: self.model.read("a", see=[("embed", lambda n, a: Evil().__iter__())])):
            with self.assertRaisesRegex(RuntimeError, "evil"):
                call()
        self.assertEqual(self.model.read(Shrinking([1, 2, 3])).ids, [1, 2])
        other = qkv.Model(small(), threads=1)
        for function in (lambda n, a: other.close(), lambda n, a: other.generate("a"), lambda n, a: list(other.start("a")),
                         lambda n, a: other.patch("the cat", "the cot")):
            with self.assertRaises(qkv.BusyError):
                other.read("a", see={"embed": function})
        for raised in (SystemExit, KeyboardInterrupt, GeneratorExit):
            def fail(name, array):
                raise raised

            with self.assertRaises(raised):
                other.read("a", edit={"embed": fail})
        self.assertEqual(len(other.generate("a", max_new=2).ids), 2, "and goes on")
        other.close()

    def test_a_word_for_frozen_is_one_name(self):
        trainer = qkv.Trainer(small(), threads=1, frozen="em*d")
        frozen = [weight["name"] for weight in trainer.weights() if not weight["trained"]]
        self.assertEqual(frozen, ["embed"])

    def test_a_trainer_is_for_one_thread(self):
        import threading

        trainer = qkv.Trainer(small(), threads=1)
        batch = np.arange(8 * 200).reshape(8, 200) % 600
        outcomes = []

        def train():
            for _ in range(4):
                try:
                    trainer.step(batch, lr=1e-3)
                    outcomes.append("step")
                except qkv.BusyError as error:
                    outcomes.append("busy")
                    assert error.hint

        threads = [threading.Thread(target=train) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(outcomes.count("step"), trainer.steps)
        self.assertEqual(len(outcomes), 12)


if __name__ == "__main__":
    unittest.main()
