#!/usr/bin/python3
"""bench/compare.py: runs in turn, ratios within a round, load, report; with programs of our own."""
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COMPARE = ROOT / "bench" / "compare.py"

# Prints the next of its times each time it is called; notes its name and its arguments.
PROGRAM = """#!/usr/bin/python3
import json, pathlib, sys
folder, name, times = pathlib.Path({folder!r}), {name!r}, {times!r}
log = folder / "log"
earlier = log.read_text().splitlines() if log.exists() else []
number = sum(line.split()[0] == name for line in earlier)
log.write_text("\\n".join(earlier + [" ".join([name] + sys.argv[1:])]) + "\\n")
print("not the result")
print(json.dumps(dict(peer="peer 1.0", step_ms=times[number], gflops=1.0, peak_rss_mb=1.0,
                      arena_mb=1.0)))
"""


# Cores: a run of milliseconds may seem to leave others more than there are.
NO_LOAD_LIMIT = "1000"


class Compare(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary.cleanup)
        self.folder = Path(self.temporary.name)
        roofs = self.folder / "roofs_bench"
        roofs.write_text("#!/bin/sh\necho '{\"threads\":2,\"gflops\":2.0,\"gbps\":1.0}'\n")
        roofs.chmod(0o755)

    def program(self, name, times):
        path = self.folder / name
        path.write_text(PROGRAM.format(folder=str(self.folder), name=name, times=times))
        path.chmod(0o755)
        return path

    def compare(self, *words, env=None):
        return subprocess.run(
            [sys.executable, COMPARE, "w1-sgd", "--tiers", "T0", "--python", sys.executable,
             "--trainscope", self.folder / "ours", "--peer", self.folder / "theirs",
             "--out", self.folder / "out", *words], capture_output=True, text=True, env=env)

    def test_rounds_alternate_and_ratios_are_of_a_round(self):
        self.program("ours", [1.0, 2.0, 8.0])
        self.program("theirs", [3.0, 4.0, 40.0])
        done = self.compare("--rounds", "3", "--steps", "7", "--load-limit", NO_LOAD_LIMIT)
        self.assertEqual(done.returncode, 0, done.stderr)
        log = (self.folder / "log").read_text().splitlines()
        self.assertEqual([line.split()[0] for line in log], ["ours", "theirs"] * 3)
        self.assertEqual(log[0], "ours bench w1-sgd --steps 7 --threads 2 --json")
        self.assertEqual(log[1], "theirs w1-sgd --steps 7 --threads 2")
        # Ratios 3, 2, 5: the median is 3, not 4.0 / 2.0.
        self.assertIn("| w1-sgd | 2.00 | 4.00 (3.00x) | 1 / 1 | 50% / 50% |", done.stdout)
        report = json.loads(next((self.folder / "out").glob("*.json")).read_text())
        self.assertEqual([run["step_ms"] for run in report["runs"]["w1-sgd"]["T0"]],
                         [3.0, 4.0, 40.0])
        self.assertTrue(report["commit"] and report["date"] and report["machine"]["cpu"])

    def test_a_newer_pytorch_runs_eager_and_compiled(self):
        self.program("ours", [1.0])
        self.program("theirs", [4.0, 3.0])
        words = ["--tiers", "T2,T2c", "--rounds", "1", "--load-limit", NO_LOAD_LIMIT]
        self.assertIn("--current-python", self.compare(*words).stderr)
        done = self.compare(*words, "--current-python", sys.executable)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("| w1-sgd | 1.00 | 4.00 (4.00x) | 3.00 (3.00x) |", done.stdout)
        log = (self.folder / "log").read_text().splitlines()
        self.assertTrue(log[2].endswith("--compile") and not log[1].endswith("--compile"))

    def test_pytorch_under_autocast(self):
        self.program("ours", [1.0])
        self.program("theirs", [4.0, 3.0])
        done = self.compare("--tiers", "T2b,T2cb", "--rounds", "1", "--steps", "2", "--load-limit",
                            NO_LOAD_LIMIT, "--current-python", sys.executable)
        self.assertEqual(done.returncode, 0, done.stderr)
        log = (self.folder / "log").read_text().splitlines()
        self.assertTrue(log[1].endswith("--threads 2 --dtype bf16"), log[1])
        self.assertTrue(log[2].endswith("--threads 2 --compile --dtype bf16"), log[2])

    def test_another_type_beside_f32(self):
        self.program("ours", [1.0, 1.7])
        done = self.compare("--tiers", "f32", "--dtype", "bf16", "--rounds", "1", "--steps", "2",
                            "--load-limit", NO_LOAD_LIMIT)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("| w1-sgd | 1.00 | 1.70 (1.70x) |", done.stdout)
        log = (self.folder / "log").read_text().splitlines()
        self.assertTrue(log[0].endswith("--json --dtype bf16") and log[1].endswith("--json"))

    def test_more_flags_go_to_trainscope_alone(self):
        self.program("ours", [1.0])
        self.program("theirs", [1.0])
        done = self.compare("--flags=--paired --max-overhead '1 %'", "--rounds", "1", "--steps", "2",
                            "--load-limit", NO_LOAD_LIMIT)
        self.assertEqual(done.returncode, 0, done.stderr)
        log = (self.folder / "log").read_text().splitlines()
        self.assertTrue(log[0].endswith("--json --paired --max-overhead 1 %"), log[0])
        self.assertTrue(log[1].endswith("--threads 2"), log[1])

    def test_a_machine_without_git_is_measured_too(self):
        self.program("ours", [1.0])
        self.program("theirs", [1.0])
        environment = {**os.environ, "PATH": str(self.folder)}
        done = self.compare("--rounds", "1", "--load-limit", NO_LOAD_LIMIT, env=environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        report = json.loads(next((self.folder / "out").glob("*.json")).read_text())
        self.assertEqual(report["commit"], "unknown")
        self.assertIn("compare.py", report["command"])
        self.assertTrue(next((self.folder / "out").glob("*.md")).read_text().startswith("# "))

    def test_a_program_that_fails_ends_it(self):
        self.program("ours", [1.0])
        (self.folder / "theirs").write_text("raise SystemExit(3)\n")
        done = self.compare("--rounds", "1", "--load-limit", NO_LOAD_LIMIT)
        self.assertEqual(done.returncode, 1)
        self.assertIn("exit code 3", done.stderr)
        self.assertFalse((self.folder / "out").exists())


class Quiet(unittest.TestCase):
    def test_runs_beside_other_load_are_repeated(self):
        sys.path.insert(0, str(ROOT / "bench"))
        import measure
        measure.time.sleep = lambda _: None
        loads = iter([0.5, 0.07, 0.01])
        result = measure.until_quiet(lambda: {"foreign_cores": next(loads)}, 0.06)
        self.assertEqual(result, {"foreign_cores": 0.01, "rejected_runs": 2})
        with self.assertRaises(SystemExit):
            measure.until_quiet(lambda: {"foreign_cores": 1.0}, 0.06)


if __name__ == "__main__":
    unittest.main()
