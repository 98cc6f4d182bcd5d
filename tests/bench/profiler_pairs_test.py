#!/usr/bin/python3
"""bench/profiler_pairs.py: what it says of ops that were slowed, and of rows named beside them."""
import sys
import tempfile
import types
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
import profiler_pairs


def pairs(count, *named):
    """So many pairs with Gemm slowed, of which the first ones had these rows named, others Gemm alone."""
    return [{"op": "Gemm", "named": list(names)}
            for names in [*named, *[("Gemm",)] * (count - len(named))]]


class Judged(unittest.TestCase):
    def test_the_slowed_op_is_named_each_time(self):
        self.assertEqual(profiler_pairs.judged(pairs(20)), {"found": 20, "wrong": 0, "holds": True})
        missed = profiler_pairs.judged(pairs(20, ()))
        self.assertEqual(missed, {"found": 19, "wrong": 0, "holds": False})

    def test_other_rows_are_named_as_rarely_as_by_chance(self):
        once = profiler_pairs.judged(pairs(20, ("Relu", "Gemm")))
        self.assertEqual(once, {"found": 20, "wrong": 1, "holds": True})
        for named in ([("Relu", "Gemm")] * 2, [("Relu", "Add", "Gemm")], [("Gemm", "Relu")] * 20):
            self.assertFalse(profiler_pairs.judged(pairs(20, *named))["holds"], named)
        self.assertFalse(profiler_pairs.judged(pairs(10, ("Relu", "Gemm")))["holds"])


class Kept(unittest.TestCase):
    def test_rows_are_there_for_the_next_start(self):
        row = {"by": "op", "op": "MatMul", "named": ["MatMul"], "change": 0.1, "again": 0}
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "rows.json"
            made_with = {"runs": 6, "steps": 8, "threads": 2}
            profiler_pairs.Kept(path, "w3", made_with).add({"pair": 0, **row})
            profiler_pairs.Kept(path, "lenet", made_with).add({"pair": 0, **row, "op": "Conv"})
            kept = profiler_pairs.Kept(path, "w3", made_with)
            kept.add({"pair": 1, **row})
            again = profiler_pairs.Kept(path, "w3", made_with).rows
            self.assertEqual([each["pair"] for each in again], [0, 1])
            self.assertEqual(profiler_pairs.slowed_of(kept.rows), [("op", "MatMul")])
            self.assertIn("2 pairs: ", profiler_pairs.made_when(kept.rows))
            with self.assertRaisesRegex(SystemExit, "made with {'runs': 6}"):
                profiler_pairs.Kept(path, "w3", {**made_with, "runs": 1})
            # Nothing is left to be made: no program is asked for.
            options = types.SimpleNamespace(keep=path, runs=6, threads=2)
            runs = types.SimpleNamespace(options=options, workload="w3", steps=8)
            result = profiler_pairs.busy(runs, 2)
            self.assertEqual((result["found"], result["wrong"]), (2, 0))
            self.assertIn("| w3 | op `MatMul` | 2 | +10.0% | 2 | 0 | 0 |",
                          profiler_pairs.body_of("busy", [result]))


if __name__ == "__main__":
    unittest.main()
