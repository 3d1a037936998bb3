"""A wheel is made without network, and what it installs works away from here."""

import os
import pathlib
import subprocess
import sys
import unittest

from small_models import golden, temporary

import qkv

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


class Wheel(unittest.TestCase):
    def test_built_installed_and_used(self):
        if subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True).returncode != 0:
            self.skipTest("pip is not installed")
        build = pathlib.Path(qkv.__file__).resolve().parent.parent.parent
        wheels, site = temporary("wheels"), temporary("site")
        own = temporary("tmp")  # so that whoever tidies the common one takes nothing away
        os.mkdir(own)
        no_network = {**os.environ, "QKV_BUILD": str(build), "PIP_NO_INDEX": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "TMPDIR": own}
        no_network.pop("PYTHONPATH")
        core = next((build / "python" / "qkv").glob("_core.*.so"))
        before = core.stat().st_mtime_ns
        pip = [sys.executable, "-m", "pip"]
        made = subprocess.run([*pip, "wheel", str(ROOT), "--no-deps", "-w", wheels], env=no_network,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True)
        self.assertEqual(made.returncode, 0, made.stdout + made.stderr)
        self.assertEqual(core.stat().st_mtime_ns, before, "other tests are using what is there")
        (wheel,) = pathlib.Path(wheels).glob("qkv-*.whl")
        done = subprocess.run([*pip, "install", "--no-deps", "--target", site, str(wheel)], env=no_network,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        nothing = subprocess.run([*pip, "wheel", str(ROOT), "--no-deps", "-w", wheels], env={**no_network, "QKV_BUILD": own},
                                 stdin=subprocess.DEVNULL, capture_output=True, text=True)
        self.assertNotEqual(nothing.returncode, 0)
        self.assertIn("which has no module", nothing.stdout + nothing.stderr)
        script = "import qkv, sys; print(qkv.__file__); print(qkv.Model(sys.argv[1], threads=1).generate([1, 5], max_new=3).ids)"
        used = subprocess.run([sys.executable, "-c", script, golden("gpt2")], cwd="/", capture_output=True, text=True,
                              env={**no_network, "PYTHONPATH": site}, stdin=subprocess.DEVNULL)
        self.assertEqual(used.returncode, 0, used.stderr)
        where, ids = used.stdout.splitlines()
        self.assertTrue(where.startswith(site), where)
        with qkv.Model(golden("gpt2"), threads=1) as model:
            self.assertEqual(ids, str(model.generate([1, 5], max_new=3).ids))
        script = "import qkv; print(qkv.Model('world', threads=1).generate('Mia has a', max_new=4).text)"
        named = subprocess.run([sys.executable, "-c", script], cwd="/", capture_output=True, text=True, stdin=subprocess.DEVNULL,
                               env={**no_network, "PYTHONPATH": site, "QKV_MODELS": ""})
        self.assertEqual(named.returncode, 0, named.stderr)
        with qkv.Model("world", threads=1) as model:
            self.assertEqual(named.stdout, model.generate("Mia has a", max_new=4).text + "\n", "the models that ship are in it")


if __name__ == "__main__":
    unittest.main()
