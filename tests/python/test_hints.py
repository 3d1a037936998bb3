"""Hints of the library speak Python: every one that names an option or a command of the program is said of the module."""

import pathlib
import re
import unittest

from small_models import golden, small

import qkv
from qkv.hints import in_python

SOURCES = pathlib.Path(__file__).resolve().parent.parent.parent / "src"
OPTION = re.compile(r"--[a-z]")
COMMAND = re.compile(r"\bqkv (?!\w+\.)[a-z]+")


def arguments(text, start):
    """What stands between the parentheses that open at `start`."""
    depth = 0
    for at in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        if depth == 0:
            return text[start + 1 : at]
    return ""


def hints():
    """Every hint of the sources below the program and its server, with N for what is put into it."""
    for file in sorted(SOURCES.rglob("*")):
        if file.suffix not in (".cpp", ".h", ".cu", ".cuh") or "server" in file.parts:
            continue
        text = file.read_text()
        for found in re.finditer(r"\b(?:Hint|hint|missing|damaged)\(", text):
            parts = re.findall(r'"((?:[^"\\]|\\.)*)"|([^",\s][^",]*)', arguments(text, found.end() - 1))
            said = "".join(words.replace('\\"', '"') if words or not value else "N" for words, value in parts)
            yield file.relative_to(SOURCES), said


class Hints(unittest.TestCase):
    def test_none_of_the_sources_names_an_option_or_a_command(self):
        every = list(hints())
        self.assertGreater(len(every), 600, "hints were lost")
        spoken = [(file, said) for file, said in every if OPTION.search(said) or COMMAND.search(said)]
        self.assertGreater(len(spoken), 30)
        for file, said in spoken:
            if file.name == "texts.cpp" and '--ids "1 403 407"' in said:
                continue  # of ids that are written as a text: the module takes lists
            with self.subTest(file=str(file), said=said):
                left = re.sub(r"\b(?:qkv|cmake) [^;,:]*? \(in a shell\)", "", in_python(said))
                left = re.sub(r"another version of qkv may|\./qkv test", "", left)
                self.assertIsNone(OPTION.search(left), left)
                self.assertIsNone(COMMAND.search(left), left)

    def test_what_is_quoted_stays(self):
        self.assertEqual(in_python("no tap '--foo qkv run', use --threads 2"), "no tap '--foo qkv run', use threads=2")

    def test_errors_are_said_in_python(self):
        model = qkv.Model(small(), threads=1)
        without = qkv.Model(golden("gpt2"), threads=1)
        for words, call in (
            (["max_new is 100000", "use max_new="], lambda: qkv.Model("translator", threads=1).translate("Tom", max_new=100000)),
            (["list of token ids"], lambda: without.read("a")),
            (["model.tokenizer"], lambda: model.patch("The cat", "The cat sat")),
            (["model.tokenizer"], lambda: model.look("a", token=99)),
            (["model.tokenizer.encode(text)"], lambda: model.read([99999])),
        ):
            with self.subTest(words=words):
                with self.assertRaises(qkv.InputError) as caught:
                    call()
                said = str(caught.exception)
                for word in words:
                    self.assertIn(word, said)
                self.assertIsNone(OPTION.search(said), said)
                self.assertIsNone(COMMAND.search(said), said)


if __name__ == "__main__":
    unittest.main()
