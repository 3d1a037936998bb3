"""The examples of the docstrings run, on the models that ship, and every public name has one or a docstring."""

import doctest
import importlib
import pkgutil
import unittest

import qkv

MODULES = [f"qkv.{module.name}" for module in pkgutil.iter_modules(qkv.__path__) if not module.name.startswith("_")]


class Examples(unittest.TestCase):
    def test_run(self):
        attempted = 0
        for name in ["qkv", *MODULES]:
            with self.subTest(name):
                result = doctest.testmod(importlib.import_module(name), verbose=False)
                self.assertEqual(result.failed, 0)
                attempted += result.attempted
        self.assertGreater(attempted, 40, "examples were lost")

    def test_public_names_have_docstrings(self):
        for name in qkv.__all__:
            self.assertTrue(getattr(qkv, name).__doc__, name)


class Documents(unittest.TestCase):
    def test_python_of_the_pages_runs(self):
        import pathlib
        import re

        docs = pathlib.Path(__file__).resolve().parent.parent.parent / "docs"
        ran = 0
        for page in ("from-transformerlens.md",):  # test_pages.py has those of library.md
            for number, block in enumerate(re.findall(r"```python\n(.*?)```", (docs / page).read_text(), re.S)):
                with self.subTest(page=page, block=number):
                    exec(compile(block, f"{page} block {number}", "exec"), {"__name__": "page"})
                    ran += 1
        self.assertGreater(ran, 0)


class Stubs(unittest.TestCase):
    def test_stub_of_core_has_all_it_has(self):
        import ast
        import pathlib

        stub = ast.parse((pathlib.Path(qkv.__file__).parent / "_core.pyi").read_text())
        said = {}
        for node in stub.body:
            if isinstance(node, ast.ClassDef):
                said[node.name] = {f.name for f in node.body if isinstance(f, ast.FunctionDef)} | {
                    f.target.id for f in node.body if isinstance(f, ast.AnnAssign)
                }
            elif isinstance(node, ast.FunctionDef):
                said[node.name] = None
        has = {name: value for name, value in vars(qkv._core).items() if not name.startswith("_")}
        self.assertEqual(set(said), set(has))
        for name, members in said.items():
            if members is not None:
                real = {m for m in vars(has[name]) if not m.startswith("_") or m == "__init__"}
                self.assertEqual(members | {"__init__"}, real | {"__init__"}, name)


if __name__ == "__main__":
    unittest.main()
