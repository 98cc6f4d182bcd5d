#!/usr/bin/python3
"""bench/profiler_pairs.py: what it says of ops that were slowed, and of rows named beside them."""
import json
import sys
import tempfile
import types
import unittest
import unittest.mock
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


class Sides(unittest.TestCase):
    def sides(self, is_enough):
        runs = types.SimpleNamespace(options=types.SimpleNamespace(runs=6))
        begins = []

        def in_turn(_, turn, first, second):
            begins.append(turn)
            return first(), second()

        with unittest.mock.patch.object(profiler_pairs, "in_turn", in_turn):
            a, b = profiler_pairs.sides(runs, 3, lambda: "a", lambda: "b", is_enough)
        self.assertEqual((a, b), (["a"] * len(a), ["b"] * len(a)))
        self.assertEqual(begins, list(range(3, 3 + len(a))))
        return len(a)

    def test_two_runs_more_until_they_are_enough(self):
        self.assertEqual(self.sides(lambda a, b: True), 6)
        self.assertEqual(self.sides(lambda a, b: len(a) >= 9), 10)
        self.assertEqual(self.sides(lambda a, b: False), profiler_pairs.MOST_RUNS)


class Kept(unittest.TestCase):
    def test_rows_are_there_for_the_next_start(self):
        row = {"by": "op", "op": "MatMul", "named": ["MatMul"], "runs": 6, "change": 0.1, "again": 0}
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "rows.json"
            made_with = {"runs": 6, "steps": 8, "threads": 2, "error": None}
            profiler_pairs.Kept(path, "w3", made_with).add({"pair": 0, **row})
            profiler_pairs.Kept(path, "lenet", made_with).add({"pair": 0, **row, "op": "Conv"})
            kept = profiler_pairs.Kept(path, "w3", made_with)
            kept.add({"pair": 1, **row, "runs": 14})
            again = profiler_pairs.Kept(path, "w3", made_with).rows
            self.assertEqual([each["pair"] for each in again], [0, 1])
            self.assertIn("2 pairs: ", profiler_pairs.made_when(kept.rows))
            with self.assertRaisesRegex(SystemExit, "made with {'runs': 6}"):
                profiler_pairs.Kept(path, "w3", {**made_with, "runs": 1})
            with self.assertRaisesRegex(SystemExit, "made with {'error': None}"):
                profiler_pairs.Kept(path, "w3", {**made_with, "error": 0.01})
            # A file from before errors were asked for has none.
            older = json.loads(path.read_text())
            del older["w3"]["error"]
            path.write_text(json.dumps(older))
            self.assertEqual(len(profiler_pairs.Kept(path, "w3", made_with).rows), 2)
            with self.assertRaisesRegex(SystemExit, "made with {'error': None}"):
                profiler_pairs.Kept(path, "w3", {**made_with, "error": 0.01})
            # Nothing is left to be made: no program is asked for.
            options = types.SimpleNamespace(keep=path, runs=6, threads=2, error=None)
            kept.own["slowed"] = [["op", "MatMul", 0.03]]
            kept.add({"pair": 2, **row})
            runs = types.SimpleNamespace(options=options, workload="w3", steps=8)
            result = profiler_pairs.busy(runs, 2)
            self.assertEqual((result["found"], result["wrong"]), (2, 0))
            self.assertIn("| w3 | op `MatMul` | 3.0% | 2 | 6 to 14 | +10.0% | 2 | 0 | 0 |",
                          profiler_pairs.body_of("busy", [result]))


class Slowed(unittest.TestCase):
    def test_the_smallest_that_will_do_is_slowed_first(self):
        rows = [{"name": name, "is_call": name != "wait", "share": share} for name, share in
                (("large", 0.5), ("wait", 0.4), ("small", 0.031), ("tiny", 0.029))]
        runs = types.SimpleNamespace(
            start=lambda: types.SimpleNamespace(run_to_end=lambda: "run"),
            program=lambda *words: json.dumps({"rows": rows}))
        self.assertEqual(profiler_pairs.Runs.slowed(runs),
                         [("op", "small", 0.031), ("op", "large", 0.5), ("node", "small", 0.031),
                          ("node", "large", 0.5)])


if __name__ == "__main__":
    unittest.main()
