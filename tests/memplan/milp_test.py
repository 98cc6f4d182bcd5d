#!/usr/bin/python3
"""`trainscope place` against a MILP solver (HiGHS in scipy) on small random problems.

Usage: milp_test.py TRAINSCOPE. Exit code 77 (skipped) without scipy's milp (1.9 or later).
"""
import json
import random
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

try:
    import numpy
    from scipy.optimize import Bounds, LinearConstraint, milp
except ImportError:
    print("skipped: scipy.optimize.milp not found")
    sys.exit(77)

PROBLEMS = 60
# No layout of these is as low as their live bytes: one in a thousand random problems is like that.
ABOVE_LIVE_BYTES = [
    [(5, 8, 2), (3, 6, 2), (3, 5, 1), (0, 3, 3), (7, 8, 2), (2, 6, 2), (7, 8, 2), (2, 5, 1),
     (1, 2, 3), (0, 1, 2), (6, 7, 3)],
    [(1, 5, 1), (8, 9, 4), (6, 9, 4), (3, 7, 1), (0, 2, 5), (5, 6, 3), (4, 8, 1), (2, 4, 6),
     (5, 6, 2), (2, 3, 1), (7, 8, 3), (4, 5, 5), (5, 7, 1)],
    [(5, 6, 3), (5, 7, 3), (0, 2, 3), (4, 7, 1), (3, 5, 4), (2, 3, 4), (2, 6, 2), (1, 4, 5),
     (1, 2, 3), (0, 1, 5), (6, 7, 6), (6, 7, 1), (4, 6, 2)],
]


def random_buffers(seed):
    """(lower, upper, size) with much overlap and sizes that do not divide each other."""
    dice = random.Random(seed)
    buffers = []
    for _ in range(dice.randint(5, 9)):
        lower = dice.randint(0, 9)
        buffers.append((lower, dice.randint(lower + 1, 10), dice.randint(1, 20)))
    return buffers


def lowest_height(buffers):
    """Variables: an offset per buffer, the height, and per pair alive together who is below."""
    count = len(buffers)
    pairs = [(i, j) for i in range(count) for j in range(i)
             if buffers[i][0] < buffers[j][1] and buffers[j][0] < buffers[i][1]]
    total = sum(size for _, _, size in buffers)
    width = count + 1 + len(pairs)
    rows, highest = [], []
    for i, (_, _, size) in enumerate(buffers):  # offset + size <= height
        row = numpy.zeros(width)
        row[i], row[count] = 1, -1
        rows.append(row)
        highest.append(-size)
    for number, (i, j) in enumerate(pairs):
        for low, high, below in ((i, j, 1), (j, i, 0)):  # offset + size <= other's, or not below
            row = numpy.zeros(width)
            row[low], row[high] = 1, -1
            row[count + 1 + number] = total if below else -total
            rows.append(row)
            highest.append((total if below else 0) - buffers[low][2])
    cost = numpy.zeros(width)
    cost[count] = 1
    upper = numpy.full(width, float(total))
    upper[count + 1:] = 1
    integral = numpy.zeros(width)
    integral[count + 1:] = 1
    result = milp(cost, constraints=LinearConstraint(numpy.array(rows), -numpy.inf, highest),
                  bounds=Bounds(numpy.zeros(width), upper), integrality=integral)
    if result.status != 0:
        raise RuntimeError(result.message)
    return round(result.fun)


class Place(unittest.TestCase):
    def test_heights_are_the_lowest_there_are(self):
        above_live_bytes = 0
        with tempfile.TemporaryDirectory() as folder:
            problem, solution = Path(folder) / "problem.csv", Path(folder) / "solution.csv"
            for buffers in ABOVE_LIVE_BYTES + [random_buffers(s) for s in range(PROBLEMS)]:
                rows = [f"b{i},{lower},{upper},{size}\n"
                        for i, (lower, upper, size) in enumerate(buffers)]
                problem.write_text("id,lower,upper,size\n" + "".join(rows), encoding="utf-8")
                done = subprocess.run([TRAINSCOPE, "place", problem, "--out", solution, "--json"],
                                      capture_output=True, text=True, check=True)
                facts = json.loads(done.stdout)
                with self.subTest(buffers=buffers):
                    self.assertEqual(facts["height_bytes"], lowest_height(buffers))
                    self.assertTrue(facts["proven"])
                live = max(sum(size for lower, upper, size in buffers if lower <= t < upper)
                           for t in range(10))
                above_live_bytes += facts["height_bytes"] > live
        self.assertGreaterEqual(above_live_bytes, len(ABOVE_LIVE_BYTES))


if __name__ == "__main__":
    TRAINSCOPE = sys.argv.pop(1)
    unittest.main()
