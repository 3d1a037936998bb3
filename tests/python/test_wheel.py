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
        no_network = {**os.environ, "QKV_BUILD": str(build), "PIP_NO_INDEX": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
        no_network.pop("PYTHONPATH")
        pip = [sys.executable, "-m", "pip"]
        made = subprocess.run([*pip, "wheel", str(ROOT), "--no-deps", "-w", wheels], env=no_network,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True)
        self.assertEqual(made.returncode, 0, made.stdout + made.stderr)
        (wheel,) = pathlib.Path(wheels).glob("qkv-*.whl")
        done = subprocess.run([*pip, "install", "--no-deps", "--target", site, str(wheel)], env=no_network,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        script = "import qkv, sys; print(qkv.__file__); print(qkv.Model(sys.argv[1], threads=1).generate([1, 5], max_new=3).ids)"
        used = subprocess.run([sys.executable, "-c", script, golden("gpt2")], cwd="/", capture_output=True, text=True,
                              env={**no_network, "PYTHONPATH": site}, stdin=subprocess.DEVNULL)
        self.assertEqual(used.returncode, 0, used.stderr)
        where, ids = used.stdout.splitlines()
        self.assertTrue(where.startswith(site), where)
        with qkv.Model(golden("gpt2"), threads=1) as model:
            self.assertEqual(ids, str(model.generate([1, 5], max_new=3).ids))


if __name__ == "__main__":
    unittest.main()
