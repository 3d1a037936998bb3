"""The whole surface against the program: the same tokens, numbers and tables."""

import json
import subprocess
import unittest

import numpy as np
from small_models import PROGRAM, golden, recorded, small, stand_ins, temporary

import qkv

TEXT = "The cat sat on the mat. 小猫坐在垫子上。"


def program(*arguments):
    done = subprocess.run([PROGRAM, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 0:
        raise AssertionError(f"{arguments}: exit {done.returncode}: {done.stderr}")
    return done.stdout


def numbers_of(report):
    if isinstance(report, (dict, list)):
        for part in report.values() if isinstance(report, dict) else report:
            yield from numbers_of(part)
    elif isinstance(report, float):
        yield report


class Surface(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = qkv.Model(small(), threads=1, precision="f32", device="cpu")

    @classmethod
    def tearDownClass(cls):
        cls.model.close()

    def test_info(self):
        info = self.model.info
        self.assertEqual((info.family, info.kind, info.layers, info.heads), ("llama", "decoder-only", 2, 4))
        self.assertIn("llama", repr(self.model))

    def test_generates_what_the_program_writes(self):
        wanted = program("run", small(), TEXT, "--max-new", "12", "--threads", "1", "--dtype", "f32", "--json")
        made = self.model.generate(TEXT, max_new=12)
        self.assertEqual(len(made.ids), 12)
        self.assertEqual(made.text, json.loads(wanted)["text"])
        self.assertEqual(made.ids, json.loads(wanted)["ids"])
        self.assertEqual(made.ended, "length")
        self.assertEqual(made.prompt_tokens, len(self.model.tokenizer.encode(TEXT)))

    def test_pieces_are_the_text(self):
        whole = self.model.generate(TEXT, max_new=20)
        told = []
        self.assertEqual(self.model.generate(TEXT, max_new=20, on_text=told.append).ids, whole.ids)
        self.assertEqual("".join(told), whole.text)
        pieces = list(self.model.start(TEXT, max_new=20))
        self.assertEqual("".join(piece.text for piece in pieces), whole.text)
        self.assertEqual([token.id for piece in pieces for token in piece.tokens], whole.ids)

    def test_false_ends_a_text(self):
        told = []

        def first_only(piece):
            told.append(piece)
            return False

        made = self.model.generate(TEXT, max_new=60, on_text=first_only)
        self.assertEqual(made.ended, "cancelled")
        self.assertEqual(len(told), 1)
        self.assertLess(len(made.ids), 60)

    def test_many_are_what_each_is_alone(self):
        prompts = ["The cat", "小猫", TEXT]
        alone = [self.model.generate(prompt, max_new=9).ids for prompt in prompts]
        self.assertEqual([made.ids for made in self.model.generate(prompts, max_new=9)], alone)
        self.assertEqual(self.model.generate([], max_new=9), [])

    def test_ids_in_any_clothes(self):
        ids = self.model.tokenizer.encode(TEXT)
        wanted = self.model.generate(ids, max_new=5).ids
        for given in (tuple(ids), np.array(ids), np.array(ids, np.int32), np.array(ids, np.uint16)):
            self.assertEqual(self.model.generate(given, max_new=5).ids, wanted)
        both = self.model.generate(np.array([ids, ids]), max_new=5)
        self.assertEqual([one.ids for one in both], [wanted, wanted])

    def test_sampling_and_logprobs(self):
        made = self.model.generate(TEXT, max_new=6, temperature=0.8, top_k=20, seed=7, logprobs=3)
        again = self.model.generate(TEXT, max_new=6, temperature=0.8, top_k=20, seed=7, logprobs=3)
        self.assertEqual(made.tokens, again.tokens)
        self.assertEqual([len(token.most_likely) for token in made.tokens], [3] * 6)
        self.assertTrue(all(token.logprob < 0 for token in made.tokens))

    def test_search(self):
        found = self.model.search(TEXT, beams=3, n=2, max_new=5)
        self.assertEqual(len(found), 2)
        self.assertNotEqual(found[0].ids, found[1].ids)

    def test_score_is_the_mean_of_losses(self):
        score = self.model.score(TEXT)
        self.assertEqual(len(score.log_p), len(score.ids) - score.first)
        self.assertAlmostEqual(score.total, float(score.log_p.sum()), places=6)
        self.assertLess(np.abs(self.model.read(score.ids, losses=True).losses + score.log_p).max(), 1e-4)
        self.assertEqual(self.model.score([TEXT, "a cat"])[0].total, score.total)

    def test_embed(self):
        vectors = self.model.embed([TEXT, "a cat"])
        self.assertEqual(vectors.shape, (2, 32))
        self.assertLess(np.abs(np.linalg.norm(vectors, axis=1) - 1).max(), 1e-5)

    def test_tables(self):
        roles = self.model.roles(tokens=6000)
        self.assertEqual([row["head"] for row in roles], self.model.heads())
        lens = self.model.lens(tokens=2000)
        self.assertEqual(len(lens), 3)
        self.assertAlmostEqual(lens[-1]["agrees"], 1)
        effect = self.model.cut("L1H2", tokens=1500)
        self.assertAlmostEqual(effect.after.mean - effect.before.mean, effect.delta.mean, places=6)
        parts = self.model.attribute(TEXT).parts
        for table in (roles, lens, effect.table(), parts, self.model.taps(), qkv.builtin_models()):
            self.assertIn("<table>", table._repr_html_())
            self.assertTrue(str(table))
            self.assertEqual(len({tuple(row) for row in table}), 1, "every row has the same columns")

    def test_pandas_takes_tables(self):
        try:
            import pandas
        except ImportError:
            self.skipTest("pandas is not installed")
        table = self.model.taps()
        frame = pandas.DataFrame(table)
        self.assertEqual(list(frame.columns), table.names())
        self.assertEqual(len(frame), len(table))
        self.assertEqual(len(pandas.DataFrame(table.columns())), len(table))

    def test_cut_equals_the_program(self):
        report = program("cut", small(), "--heads", "L1H2", "--with", "zero", "--data", "world", "--tokens", "1500",
                         "--threads", "1", "--dtype", "f32", "--json")
        effect = self.model.cut("L1H2", data="world", tokens=1500)
        numbers = set(numbers_of(json.loads(report)))
        for wanted in (effect.before.mean, effect.after.mean, effect.delta.mean):
            self.assertTrue(any(abs(wanted - number) < 1e-6 for number in numbers), wanted)

    def test_save(self):
        whole, less = temporary("whole"), temporary("less")
        self.model.save(whole)
        self.model.save(less, without="L1H2,L1H3")  # both heads of a group of keys
        with qkv.Model(whole, threads=1, precision="f32") as again:
            self.assertEqual(again.generate(TEXT, max_new=5).ids, self.model.generate(TEXT, max_new=5).ids)
        with qkv.Model(less, threads=1, precision="f32") as again:
            cut = self.model.read(TEXT, keep="logits", cut="L1H2,L1H3")["logits"]
            self.assertLess(np.abs(again.read(TEXT, keep="logits")["logits"] - cut).max(), 1e-4)

    def test_tokenizer(self):
        tokenizer = self.model.tokenizer
        ids = tokenizer.encode(TEXT, plain=True)
        self.assertEqual(tokenizer.decode(ids), TEXT)
        self.assertEqual("".join(tokenizer.pieces(ids)), TEXT)
        self.assertEqual(b"".join(tokenizer.bytes(i) for i in ids).decode(), TEXT)
        self.assertEqual(tokenizer.id(tokenizer.token(ids[0])), ids[0])
        self.assertIn(ids[0], tokenizer)
        self.assertNotIn(10**6, tokenizer)
        self.assertNotIn("cat", tokenizer)

    def test_json_schema(self):
        schema = json.dumps({"type": "object", "properties": {"n": {"type": "integer", "maximum": 99, "minimum": 0}},
                             "required": ["n"], "additionalProperties": False})
        made = self.model.generate("Number:", max_new=60, json_schema=schema)
        if made.ended == "stop":
            self.assertIn("n", json.loads(made.text))
        else:
            self.assertTrue(made.text.lstrip().startswith("{"))


class Translator(unittest.TestCase):
    def test_beams_are_the_recorded_ones(self):
        io = recorded("t5")
        with qkv.Model(golden("t5"), threads=1, precision="f32") as model:
            ids = io["input_ids"][0].tolist()
            found = model.search((ids, []), beams=4, max_new=24)
            self.assertEqual(io["generate_beam4"][0][1 : 1 + len(found[0].ids)].tolist(), found[0].ids)

    def test_translate(self):
        stand_ins()
        with qkv.Model("translator", threads=1) as model:
            one = model.translate("The cat sat.", max_new=8)
            self.assertEqual(one, model.translate(["The cat sat.", ""], max_new=8)[0])
            self.assertEqual(len(model.translate("The cat sat.", n=2, beams=3, max_new=8)), 2)


if __name__ == "__main__":
    unittest.main()
