"""Activation patching: the report of qkv patch to the byte, and what a hook that patches by hand finds."""

import json
import unittest

import numpy as np
from small_models import golden, small
from test_model import program

import qkv

CLEAN, CORRUPT = "The cat sat on the mat", "The cot sat on the mat"


class Patching(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = qkv.Model(small(), threads=1, precision="f32", device="cpu")
        tokenizer = cls.model.tokenizer
        cls.two = {"answer": tokenizer.encode("a", plain=True)[0], "wrong": tokenizer.encode("b", plain=True)[0]}
        cls.found = cls.model.patch(CLEAN, CORRUPT, heads="L1H2", **cls.two)

    def test_the_report_is_the_one_of_the_program(self):
        said = program("patch", small(), "--clean", CLEAN, "--corrupt", CORRUPT, "--answer", "a", "--wrong", "b",
                       "--heads", "L1H2", "--json", "--threads", "1")
        self.assertEqual(self.found.json(), said)
        page = program("patch", small(), "--clean", CLEAN, "--corrupt", CORRUPT, "--answer", "a", "--wrong", "b",
                       "--heads", "L1H2", "--html", "-", "--threads", "1")
        self.assertEqual(self.found.html(), page)

    def test_maps_are_those_of_the_report(self):
        maps = self.found.report()["patch"]["maps"]
        self.assertEqual(len(maps), len(self.found))
        self.assertEqual(list(self.found), ["resid.pre", "attn.out", "mlp.out", "heads", "heads by position"])
        for name, reported in zip(self.found, maps):
            wanted = np.array([[np.nan if x is None else x for x in row] for row in reported["restored"]])
            np.testing.assert_array_equal(self.found[name], wanted)
        self.assertEqual(len(self.found.table()), sum(array.size for array in self.found.values()))
        self.assertIn("places", repr(self.found))

    def test_a_hook_that_patches_by_hand_finds_the_same(self):
        clean = self.model.read(CLEAN, keep="resid.pre,attn.z,logits")
        row = len(clean.ids) - 1

        def m(logits):
            return float(logits[row, self.two["answer"]]) - float(logits[row, self.two["wrong"]])

        self.assertEqual(m(clean["logits"]), self.found.clean)
        for layer, position in ((0, 1), (1, row)):

            def put(name, stream):
                stream[position] = clean[name][position]

            logits = self.model.read(CORRUPT, keep="logits", edit={f"{layer}.resid.pre": put})["logits"]
            restored = (m(logits) - self.found.corrupt) / (self.found.clean - self.found.corrupt)
            self.assertEqual(self.found["resid.pre"][layer, position], restored)

        def put_head(name, z):
            z[:, 2] = clean[name][:, 2]

        logits = self.model.read(CORRUPT, keep="logits", edit={"1.attn.z": put_head})["logits"]
        restored = (m(logits) - self.found.corrupt) / (self.found.clean - self.found.corrupt)
        self.assertEqual(self.found["heads"][1, 2], restored)

    def test_a_translator_has_three_stacks(self):
        with qkv.Model(golden("t5"), threads=1, precision="f32") as model:
            found = model.patch(([5, 9, 2, 7], [4, 8]), ([5, 9, 3, 7], [4, 8]), answer=4, wrong=6)
            self.assertEqual(found["encoder.resid.pre"].shape[1], 4)
            self.assertEqual(found["decoder.resid.pre"].shape[1], 3)
            self.assertIn("cross.heads", found)
            self.assertAlmostEqual(found["encoder.resid.pre"][0, 2], 1)

    def test_what_is_wrong_is_said(self):
        model = self.model
        for words, call in (
            (["tokens", "corrupt one"], lambda: model.patch(CLEAN, "no")),
            (["the same"], lambda: model.patch(CLEAN, CLEAN)),
            (["no token 99"], lambda: model.patch(CLEAN, CORRUPT, token=99)),
            (["answer", "99999"], lambda: model.patch(CLEAN, CORRUPT, answer=99999)),
            (["both texts are answered"], lambda: model.patch(CLEAN, CORRUPT, answer=3, wrong=3)),
            (["L9"], lambda: model.patch(CLEAN, CORRUPT, heads="L9")),
        ):
            with self.subTest(words=words):
                with self.assertRaises(qkv.InputError) as caught:
                    call()
                for word in words:
                    self.assertIn(word, str(caught.exception))
                self.assertTrue(caught.exception.hint)
        for call in (lambda: model.patch(CLEAN, 3), lambda: model.patch(CLEAN, CORRUPT, answer="a"),
                     lambda: model.patch(CLEAN, CORRUPT, heads=3), lambda: model.patch(CLEAN, CORRUPT, token="last")):
            with self.assertRaises(TypeError):
                call()
        with self.assertRaisesRegex(KeyError, "resid.pre"):
            self.found["hook_resid_pre"]
        json.dumps(self.found.table())


if __name__ == "__main__":
    unittest.main()
