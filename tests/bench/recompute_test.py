#!/usr/bin/python3
"""bench/recompute.py: what it asks before it measures, and the cells of its table."""
import argparse
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
import recompute  # noqa: E402  (found through the line above)

# Writes down its arguments; no plan fits.
PROGRAM = """#!/usr/bin/python3
import pathlib, sys
pathlib.Path({log!r}).write_text(" ".join(sys.argv[1:]))
sys.exit(5)
"""


class Recompute(unittest.TestCase):
    def test_whether_a_plan_fits_is_asked_for_the_threads_that_are_measured(self):
        with tempfile.TemporaryDirectory() as folder:
            program, log = Path(folder) / "program", Path(folder) / "log"
            program.write_text(PROGRAM.format(log=str(log)))
            program.chmod(0o755)
            options = argparse.Namespace(trainscope=program, threads=3)
            flags = ["--memory-budget", 1000, "--costs", "times.csv", "--paired"]
            self.assertFalse(recompute.has_plan(options, "w3", flags))
            self.assertEqual(log.read_text(), "bench w3 --steps 1 --threads 3 --memory-budget 1000 "
                                              "--costs times.csv")

    def test_cells(self):
        row = {"workload": "w3", "share": 50, "budget_bytes": 2_000_000}
        self.assertEqual(recompute.cells(row)[3], "no plan fits")
        row.update(arena_bytes=1_500_000, repeats=7, predicted=0.02, measured=0.03,
                   measured_of_runs=[0.03, 0.04], bound=None)
        self.assertEqual(recompute.cells(row), ["w3", "50 %", "2.0", "1.5", "7", "-", "2.00%",
                                                "3.00%", "3.00%, 4.00%"])
        row["bound"] = 0.0
        self.assertEqual(recompute.cells(row)[5], "0.00%")


if __name__ == "__main__":
    unittest.main()
