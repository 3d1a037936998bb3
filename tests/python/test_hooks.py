"""Functions of Python inside a pass: names, shapes, edits, and what they raise."""

import gc
import traceback
import unittest

import numpy as np
from small_models import golden, small

import qkv

IDS = [1, 5, 9, 4, 5, 9]


class Hooks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = qkv.Model(golden("llama"), threads=1, precision="f32", device="cpu")
        cls.plain = cls.model.read(IDS, keep="logits")["logits"].copy()

    def test_every_tap_is_shown_as_it_is_kept(self):
        names = [tap["name"] for tap in self.model.taps()]
        shown = {}
        kept = self.model.read(IDS, keep=names, see=[(name, shown.__setitem__) for name in names])
        self.assertEqual(list(shown), list(kept))
        self.assertEqual(set(kept), set(names))
        for tap in self.model.taps():
            array = kept[tap["name"]]
            self.assertTrue(np.array_equal(array, shown[tap["name"]]), tap["name"])
            sizes = [size or len(IDS) for size in tap["sizes"]]
            self.assertEqual(list(array.shape), sizes, tap["name"])

    def test_names_of_transformer_lens(self):
        for tap in self.model.taps():
            theirs = tap["transformer_lens"]
            if theirs:
                self.assertTrue(np.array_equal(self.model.read(IDS, keep=theirs)[theirs],
                                               self.model.read(IDS, keep=tap["name"])[tap["name"]]), theirs)
        for theirs in ("blocks.1.attn.hook_pattern", "blocks.0.hook_resid_pre", "hook_embed", "ln_final.hook_normalized",
                       "blocks.0.attn.hook_rot_q"):
            self.assertEqual(len(self.model.read(IDS, keep=theirs)), 1, theirs)

    def test_cache(self):
        logits, cache = self.model.run_with_cache(IDS)
        self.assertTrue(np.array_equal(logits[0], self.plain))
        heads = self.model.info.heads
        self.assertEqual(cache["pattern", 1].shape, (1, heads, len(IDS), len(IDS)))
        self.assertEqual(cache["q", 0].shape[:3], (1, len(IDS), heads))
        self.assertTrue(np.allclose(cache["pattern", 0].sum(-1), 1, atol=1e-5))
        ours = self.model.read(IDS, keep="0.attn.probs")["0.attn.probs"]
        self.assertTrue(np.array_equal(cache["blocks.0.attn.hook_pattern"][0, 2], ours[:, 2]))
        self.assertIs(cache["resid_post", -1], cache["blocks.1.hook_resid_post"])
        self.assertIs(cache["post", 0, "mlp"], cache["blocks.0.mlp.hook_post"])
        self.assertEqual(cache.remove_batch_dim()["pattern", 1].ndim, 3)
        _, some = self.model.run_with_cache(IDS, names_filter=lambda name: name.endswith("hook_z"))
        self.assertEqual(list(some), ["blocks.0.attn.hook_z", "blocks.1.attn.hook_z"])
        with self.assertRaises(KeyError):
            some["pattern", 0]
        with self.assertRaises(qkv.InputError):
            self.model.run_with_cache(IDS, names_filter="blocks.0.attn.hook_nothing")

    def test_cross_attention_has_names_too(self):
        with qkv.Model(golden("t5"), threads=1, precision="f32") as model:
            for tap in model.taps():
                if tap["transformer_lens"]:
                    seen = model.read(([5, 6, 7], [8, 9]), keep=tap["transformer_lens"])
                    self.assertEqual(list(seen), [tap["name"]])

    def test_edits(self):
        def nothing(name, array):
            pass

        def doubled(name, array):
            return array * 2

        def in_place(name, array):
            array *= 2

        for tap in self.model.taps():
            if not tap["editable"]:
                continue
            same = self.model.read(IDS, keep="logits", edit={tap["name"]: nothing})["logits"]
            self.assertTrue(np.array_equal(same, self.plain), tap["name"])
        first = self.model.read(IDS, keep="logits", edit={"0.mlp.out": doubled})["logits"]
        second = self.model.read(IDS, keep="logits", edit=[("0.mlp.out", in_place)])["logits"]
        self.assertFalse(np.array_equal(first, self.plain))
        self.assertTrue(np.array_equal(first, second))
        self.assertTrue(np.array_equal(self.model.read(IDS, keep="logits")["logits"], self.plain), "nothing stays")

    def test_hooks_of_transformer_lens(self):
        def no_head(value, hook):
            self.assertEqual((hook.name, hook.layer()), ("blocks.1.attn.hook_z", 1))
            value[:, :, 2] = 0

        def no_head_returned(value, hook):
            value = value.copy()
            value[:, :, 2] = 0
            return value

        cut = self.model.read(IDS, keep="logits", cut="L1H2")["logits"]
        for function in (no_head, no_head_returned):
            logits = self.model.run_with_hooks(IDS, fwd_hooks=[("blocks.1.attn.hook_z", function)])
            self.assertTrue(np.array_equal(logits[0], cut))
        seen = []
        self.model.run_with_hooks(IDS, [(lambda name: name.endswith("pattern"), lambda value, hook: seen.append(value.shape))])
        self.assertEqual(seen, [(1, self.model.info.heads, 6, 6)] * 2)

    def test_what_is_kept_outlives_the_pass(self):
        kept = []
        self.model.read(IDS, see={"attn.probs": lambda name, array: kept.append(array[:, 0])})
        wanted = self.model.read(IDS, keep="attn.probs")
        views = {name: array[1:] for name, array in wanted.items()}
        copies = {name: array[:, 0].copy() for name, array in wanted.items()}
        last = views["1.attn.probs"].copy()
        del wanted
        gc.collect()
        for _ in range(5):
            self.model.read(list(range(60)), keep="attn.probs")
        self.assertTrue(np.array_equal(kept[0], copies["0.attn.probs"]))
        self.assertTrue(np.array_equal(views["1.attn.probs"], last))

    def test_arrays_are_not_copied(self):
        seen = self.model.read(IDS, keep="final")
        array = seen["final"]
        self.assertFalse(array.flags.owndata, "numpy would own a copy")
        self.assertTrue(array.flags.writeable and array.flags.c_contiguous)
        self.assertEqual(array.dtype, np.float32)
        again = np.from_dlpack(array)
        self.assertTrue(np.shares_memory(array, again))
        self.assertTrue(np.shares_memory(array, np.asarray(memoryview(array))))
        looked = self.model.look(IDS)
        self.assertTrue(np.shares_memory(looked["L0.probs"], looked["L0.probs"]))

    def test_whoever_changes_what_can_only_be_read_is_told_what_to_do(self):
        looked = self.model.look(IDS)["L0.probs"]

        def adds(array):
            array += 1

        def sets(array):
            array[0] = 0

        ways = (adds, sets, lambda a: a.fill(0), lambda a: a.sort(), lambda a: np.copyto(a, 1), lambda a: np.add(a, 1, out=a),
                lambda a: np.put(a, 0, 1), lambda a: sets(a[:, 0]))
        for way in ways:
            with self.assertRaises(qkv.InputError) as caught:
                way(looked)
            self.assertIn("read and not changed", caught.exception.message)
            self.assertIn("copy()", caught.exception.hint)
            self.assertIn("edit", caught.exception.hint)
            for call, words in (
                (lambda: self.model.read(IDS, see={"0.attn.z": lambda name, array: way(array)}), ("edit", "0.attn.z")),
                (lambda: self.model.run_with_hooks(IDS, [("blocks.0.attn.hook_pattern", lambda value, hook: way(value))]),
                 ("hook_pattern", "hook_z", "cut=")),
            ):
                with self.assertRaises(qkv.InputError) as caught:
                    call()
                for word in words:
                    self.assertIn(word, caught.exception.hint)
        self.assertTrue(np.array_equal(self.model.look(IDS)["L0.probs"], looked))
        own = looked.copy()
        own += 1
        self.assertIs(type(own), np.ndarray)
        self.assertIs(type(looked * 2), np.ndarray)
        self.assertAlmostEqual(float(looked.sum(axis=-1).max()), 1, places=5)
        self.assertTrue(np.array_equal(np.concatenate([looked, looked])[: len(looked)], looked))

    def test_torch_takes_arrays_as_they_are(self):
        try:
            import torch
        except ImportError:
            self.skipTest("torch is not installed")
        array = self.model.read(IDS, keep="final")["final"]
        tensor = torch.from_dlpack(array)
        tensor[0, 0] = 7
        self.assertEqual(array[0, 0], 7)

    def test_an_exception_ends_the_call_and_leaves_the_model_usable(self):
        class Mine(Exception):
            pass

        def raises(name, array):
            raise Mine(name)

        for how in ({"see": {"embed": raises}}, {"see": {"1.attn.probs": raises}}, {"see": {"logits": raises}},
                    {"edit": {"0.mlp.out": raises}}, {"edit": {"attn.z": raises}}):
            try:
                self.model.read(IDS, keep="final", **how)
                self.fail("nothing was raised")
            except Mine as error:
                names = [frame.name for frame in traceback.extract_tb(error.__traceback__)]
                self.assertEqual(names[-1], "raises", "the traceback leads to the hook's own line")
            self.assertTrue(np.array_equal(self.model.read(IDS, keep="logits")["logits"], self.plain))
        with self.assertRaises(ZeroDivisionError):
            self.model.run_with_hooks(IDS, [("hook_embed", lambda value, hook: 1 / 0)])
        with self.assertRaises(SystemExit):
            self.model.read(IDS, see={"embed": lambda name, array: exit(3)})
        self.assertEqual(len(self.model.generate(IDS, max_new=3).ids), 3)

    def test_on_text_may_raise(self):
        with qkv.Model(small(), threads=1) as model:
            wanted = model.generate("The cat", max_new=8).ids
            with self.assertRaises(ZeroDivisionError):
                model.generate("The cat", max_new=400, on_text=lambda piece: 1 / 0)
            self.assertEqual(model.generate("The cat", max_new=8).ids, wanted)

    def test_a_model_asked_within_its_own_pass(self):
        for again in (lambda name, array: self.model.read(IDS),
                      lambda name, array: self.model.generate(IDS, max_new=2),
                      lambda name, array: self.model.close()):
            with self.assertRaises(qkv.BusyError):
                self.model.read(IDS, see={"embed": again})
        self.assertFalse(self.model.closed)


if __name__ == "__main__":
    unittest.main()
