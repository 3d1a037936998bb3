"""1000 loads and drops leave nothing behind, nor do readings, texts and exceptions."""

import ctypes
import gc
import tracemalloc
import unittest

from small_models import golden

import qkv


def resident():
    """Bytes of this process in memory, after what is free was given back."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


def threads():
    with open("/proc/self/status") as file:
        return int(next(line for line in file if line.startswith("Threads:")).split()[1])


def one():
    model = qkv.Model(golden("llama"), threads=2)
    model.generate([1, 5, 9], max_new=2)
    kept = model.read([1, 5, 9], keep="attn.probs")
    try:
        model.read([1, 5, 9], see={"embed": lambda name, array: 1 / 0})
    except ZeroDivisionError:
        pass
    next(model.start([1, 5, 9], max_new=50))
    return kept["0.attn.probs"]


class Memory(unittest.TestCase):
    def test_a_thousand_loads_and_drops(self):
        for _ in range(50):  # caches of the interpreter, pools of the allocator
            one()
        before, threads_before = resident(), threads()
        tracemalloc.start()
        gc.collect()
        start = tracemalloc.take_snapshot()
        for _ in range(1000):
            one()
        gc.collect()
        end = tracemalloc.take_snapshot()
        tracemalloc.stop()
        grown = [entry for entry in end.compare_to(start, "filename") if entry.size_diff > 0]
        python = sum(e.size_diff for e in grown if "tracemalloc" not in e.traceback[0].filename)
        self.assertLess(python, 64 * 1024, f"Python's own memory: {grown[:3]}")
        self.assertLess(resident() - before, 4 << 20, "resident bytes: 4 kB a load would be 4 MB")
        self.assertEqual(threads(), threads_before)

    def test_arrays_keep_what_they_need(self):
        model = qkv.Model(golden("llama"), threads=1)
        seen = model.look([1, 5, 9])
        array = seen["L0.probs"]
        wanted = array.copy()
        del model, seen
        gc.collect()
        for _ in range(20):
            one()
        self.assertTrue((array == wanted).all())

    def test_large_arrays_are_freed(self):
        model = qkv.Model(golden("llama"), threads=1)
        ids = [i % 90 for i in range(model.info.context or 64)]
        model.read(ids, keep="attn.probs")
        before = resident()
        for _ in range(300):
            model.read(ids, keep="attn.probs,attn.scores,logits")
            model.look(ids)["L0.probs"]
        self.assertLess(resident() - before, 4 << 20)


if __name__ == "__main__":
    unittest.main()
