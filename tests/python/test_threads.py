"""Threads, the GIL, Ctrl-C, forks."""

import os
import signal
import subprocess
import sys
import threading
import time
import unittest

from small_models import LLAMA, golden, small, temporary

import qkv


class Threads(unittest.TestCase):
    def test_four_threads_write_what_each_writes_alone(self):
        with qkv.Model(small(), threads=2, precision="f32") as model:
            prompts = [f"{word} and the cat {word}" for word in ("one", "two", "三", "四")]
            alone = [model.generate(prompt, max_new=40).ids for prompt in prompts]
            for _ in range(3):
                found = [None] * 4

                def write(i):
                    found[i] = model.generate(prompts[i], max_new=40).ids

                threads = [threading.Thread(target=write, args=(i,)) for i in range(4)]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
                self.assertEqual(found, alone)

    def test_hooks_of_one_thread_and_texts_of_others(self):
        with qkv.Model(small(), threads=1, precision="f32") as model:
            alone = model.generate("The cat", max_new=60).ids
            failed = []

            def read():
                for _ in range(20):
                    seen = []
                    model.read("The cat sat", see={"attn.probs": lambda name, array: seen.append(name)})
                    if len(seen) != 2:
                        failed.append(seen)

            def write():
                for _ in range(3):
                    if model.generate("The cat", max_new=60).ids != alone:
                        failed.append("text")

            threads = [threading.Thread(target=run) for run in (read, write, read, write)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(failed, [])

    def test_the_gil_is_free_while_it_computes(self):
        # Another thread counts while a pass runs; if the GIL were kept, it could not.
        with qkv.Model(golden("llama"), threads=1) as model:
            counted = 0
            stop = threading.Event()

            def count():
                nonlocal counted
                while not stop.is_set():
                    counted += 1
                    time.sleep(0)

            interval = sys.getswitchinterval()
            sys.setswitchinterval(1000)  # only whoever gives the GIL away lets others run
            thread = threading.Thread(target=count)
            thread.start()
            try:
                before = counted
                for _ in range(200):
                    model.generate([1, 5, 9], max_new=20)
                    if counted > before + 10:
                        break
                during = counted - before
            finally:
                sys.setswitchinterval(interval)
                stop.set()
                thread.join()
            self.assertGreater(during, 10)

    def test_a_text_belongs_to_one_thread(self):
        with qkv.Model(small(), threads=1) as model:
            writing = model.start("The cat", max_new=300)
            outcomes = []

            def take():
                try:
                    for _ in writing:
                        pass
                    outcomes.append("ended")
                except qkv.BusyError:
                    outcomes.append("busy")

            threads = [threading.Thread(target=take) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertIn("ended", outcomes)
            self.assertTrue(set(outcomes) <= {"ended", "busy"}, outcomes)
            self.assertEqual(len(writing.result().ids), 300)

    def test_cancel_from_another_thread(self):
        with qkv.Model(small(), threads=1) as model:
            writing = model.start("The cat", max_new=480)
            next(writing)
            thread = threading.Thread(target=writing.cancel)
            thread.start()
            thread.join()
            self.assertEqual(writing.wait().ended, "cancelled")
            self.assertEqual(len(model.generate("The cat", max_new=4).ids), 4)

    def test_dropped_texts_are_cancelled(self):
        with qkv.Model(small(), threads=1, texts=2) as model:
            for _ in range(20):  # more than there is room for: a text that stayed would block the next
                next(model.start("The cat", max_new=400))
            self.assertEqual(len(model.generate("The cat", max_new=4).ids), 4)


# One call that would take far longer than the test may: only Ctrl-C ends it.
CTRL_C = """
import os, signal, sys, threading, time
import qkv
what, path = sys.argv[1:]
model = qkv.Model(path, threads=1, precision="f32", context=40000, texts=1)
wanted = model.generate([1, 5, 9], max_new=3).ids
many = [list(range(1, 250))] * 40000
def press():
    time.sleep(1)
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=press, daemon=True).start()
try:
    if what == "generate":
        model.generate([1, 5, 9], max_new=39000)
    elif what == "many":
        model.generate([[1, 5, 9]] * 4, max_new=39000)
    elif what == "pieces":
        for piece in model.start([1, 5, 9], max_new=39000): pass
    elif what == "search":
        model.search([1, 5, 9], beams=2, max_new=15000)
    elif what == "hook":
        model.read(list(range(250)) * 40, see={"attn.out": lambda name, array: time.sleep(60)})
    elif what == "read":
        model.read(list(range(250)) * 100, keep="final")
    elif what == "roles":
        model.roles(many)
    elif what == "lens":
        model.lens(many)
    elif what == "score":
        model.score(many)
    elif what == "embed":
        model.embed(many)
    elif what == "look":
        model.look(list(range(250)) * 40)
    elif what == "patch":
        model.patch(list(range(250)) * 4, [7] + list(range(1, 250)) + list(range(250)) * 3, answer=1, wrong=2)
    elif what == "cut":
        model.cut("L0H1", data=many)
    print("came to its end")
except KeyboardInterrupt:
    assert model.generate([1, 5, 9], max_new=3).ids == wanted
    print("interrupted, and usable")
"""

SLOW = {
    **LLAMA,
    "hidden_size": 256,
    "intermediate_size": 1024,
    "num_hidden_layers": 12,
    "num_key_value_heads": 1,
    "max_position_embeddings": 40000,
    "eos_token_id": None,
}


class CtrlC(unittest.TestCase):
    def test_every_long_call_ends(self):
        slow = qkv.new_model(SLOW, temporary("slow"))
        for what in ("generate", "many", "pieces", "search", "hook", "read", "roles", "lens", "score", "embed",
                     "look", "patch", "cut"):
            with self.subTest(what):
                done = subprocess.run([sys.executable, "-c", CTRL_C, what, slow], capture_output=True, text=True,
                                      timeout=120, stdin=subprocess.DEVNULL)
                self.assertEqual((done.returncode, done.stdout), (0, "interrupted, and usable\n"), done.stderr)


class Forks(unittest.TestCase):
    def test_a_forked_process_is_told(self):
        trainer = qkv.Trainer(golden("llama"), threads=2)
        with qkv.Model(golden("llama"), threads=2) as model:
            writing = model.start([1, 5, 9], max_new=9)
            next(writing)
            calls = (lambda: model.generate([1, 5, 9], max_new=2), lambda: next(writing),
                     lambda: trainer.step([[1, 5, 9]], lr=1e-3))
            read, write = os.pipe()
            child = os.fork()
            if child == 0:
                signal.alarm(60)  # a child that waits for threads it does not have would wait for ever
                try:
                    for call in calls:
                        try:
                            call()
                        except qkv.ClosedError as error:
                            os.write(write, error.hint.encode() + b"\n")
                finally:
                    os._exit(0)
            os.close(write)
            with os.fdopen(read) as told:
                said = told.read()
            os.waitpid(child, 0)
            self.assertEqual(said.count("after the fork"), 3)
            self.assertEqual(len(model.generate([1, 5, 9], max_new=2).ids), 2)
            self.assertEqual(len(writing.wait().ids), 9)


if __name__ == "__main__":
    unittest.main()
