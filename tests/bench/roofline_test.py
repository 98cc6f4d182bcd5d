#!/usr/bin/python3
"""bench/roofline.py: roofs of ops, their sums, and the time between them."""
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
import roofline  # noqa: E402  (found through the line above)

ROOFS = {"threads": 2, "gflops": 200.0, "gbps": 40.0}


def op(name, ms, flops, moved):
    return {"op": name, "phase": "forward", "kernel": name.lower(), "flops": flops, "bytes": moved,
            "ms": ms}


class Roofline(unittest.TestCase):
    def test_an_op_meets_the_roof_that_is_lower_for_it(self):
        rows = roofline.by_kind([op("MatMul", 2.0, 200_000_000, 4_000_000),
                                 op("Add", 1.0, 1_000_000, 20_000_000),
                                 op("Add", 3.0, 1_000_000, 20_000_000)], ROOFS)
        self.assertEqual([row[0] for row in rows], ["Add, forward (add)", "MatMul, forward (matmul)"])
        self.assertEqual(rows[0][1:], [2, 4.0, 2_000_000, 40_000_000, 1.0])  # 40 MB at 40 GB/s
        self.assertAlmostEqual(rows[1][5], 1.0)  # 0.2 GFLOP at 200 GFLOP/s

    def test_what_is_in_no_op_is_named(self):
        text = roofline.section({"workload": "w3", "measured_step_ms": 10.0, "ops_ms": 9.2,
                                 "gaps_ms": {"before_first_op": 0.1, "between_ops": 0.6,
                                             "after_last_op": 0.1},
                                 "ops": [op("MatMul", 9.0, 900_000_000, 1)]}, ROOFS)
        self.assertIn("| MatMul, forward (matmul) | 1 | 9.000 | 90.0% | 100.0 | 0.0 | 50% |", text)
        self.assertIn("| beyond medians |  | 0.200 | 2.0% |", text)
        self.assertIn("| before first op |  | 0.100 | 1.0% |", text)
        self.assertIn("| between ops |  | 0.600 | 6.0% |", text)
        self.assertIn("| after last op |  | 0.100 | 1.0% |", text)


if __name__ == "__main__":
    unittest.main()
