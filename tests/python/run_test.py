#!/usr/bin/python3
"""Folders of runs as numpy arrays; a stand-in for the program that says what it was asked.

Exit code 77 (skipped) without numpy.
"""
import json
import os
import unittest

from support import DATA, FolderCase, skip_without

skip_without("numpy")
import numpy  # noqa: E402
from trainscope.program import ask, program_path  # noqa: E402
from trainscope.run import Run, errors_between, live_bytes  # noqa: E402
from trainscope.trace import TraceReader  # noqa: E402

OLD_RUN = DATA / "run-format-1" / "run"


class Metrics(FolderCase):
    def run_with(self, *lines):
        (self.folder / "manifest.json").write_text('{"format": 2}', encoding="utf-8")
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (self.folder / "metrics.jsonl").write_text(text + '{"kind":"step","st', encoding="utf-8")
        return Run(self.folder)

    def test_are_columns_and_what_is_missing_is_nan(self):
        run = self.run_with({"kind": "step", "step": 1, "loss": 2.5, "gradient_norm": None},
                            {"kind": "evaluation", "step": 1, "loss": 2.0, "accuracy": 0.25},
                            {"kind": "step", "step": 2, "loss": None})
        steps = run.steps()
        self.assertEqual(steps["step"].tolist(), [1, 2])
        self.assertEqual(steps["loss"][0], 2.5)
        self.assertTrue(numpy.isnan(steps["loss"][1]) and numpy.isnan(steps["gradient_norm"]).all())
        self.assertEqual(run.evaluations()["accuracy"].tolist(), [0.25])

    def test_steps_that_a_resumed_session_made_again_count_once(self):
        run = self.run_with(*({"kind": "step", "step": step, "loss": step} for step in (1, 2, 3)),
                            {"kind": "resume", "step": 1}, {"kind": "step", "step": 2, "loss": 7})
        self.assertEqual(run.steps()["loss"].tolist(), [1, 7])

    def test_a_line_that_is_none_is_named(self):
        run = self.run_with({"kind": "step", "step": 1}, {"step": 2})
        self.refuses("metrics.jsonl, line 2: no line of metrics", 3, run.steps)


class Folder(FolderCase):
    def test_of_the_repository(self):
        run = Run(OLD_RUN)
        self.assertEqual(run.steps()["step"].tolist(), [1, 2, 3])
        plan = run.plan()
        live = live_bytes(plan)
        self.assertEqual(len(live), plan["instruction_count"])
        self.assertLessEqual(live.max(), plan["arena_bytes"])
        self.assertGreaterEqual(live.max(), plan["persistent_bytes"])
        self.assertGreater(len(run.stages()), 5)

    def test_that_is_none(self):
        self.refuses("is no run: manifest.json: No such file", 3, Run, self.folder)
        (self.folder / "manifest.json").write_text("{", encoding="utf-8")
        self.refuses("is no JSON", 3, Run, self.folder)


class Errors(unittest.TestCase):
    def test_between_traces(self):
        traces = [TraceReader(DATA / "numerics" / name)
                  for name in ("mlp-trainscope", "mlp-pytorch", "mlp-pytorch-faulty")]
        same, other = (errors_between(traces[0], each) for each in traces[1:])
        key = (1, 0, "act:/3/Relu_output_0")
        self.assertLess(same[key], 1e-6)
        self.assertAlmostEqual(other[key], 1.05e-2, 4)  # as `trainscope compare` has it
        self.assertEqual(other[1, 0, "input:x"], 0.0)
        self.assertLess(max(same.values()), 1e-4)


class Program(FolderCase):
    def setUp(self):
        super().setUp()
        before = os.environ.get("TRAINSCOPE")
        self.addCleanup(lambda: os.environ.pop("TRAINSCOPE", None) if before is None
                        else os.environ.__setitem__("TRAINSCOPE", before))

    def stand_in(self, script):
        path = self.folder / "program"
        path.write_text("#!/bin/sh\n" + script, encoding="utf-8")
        path.chmod(0o755)
        os.environ["TRAINSCOPE"] = str(path)

    def test_says_what_it_was_asked(self):
        self.stand_in('printf \'{"words": "%s"}\' "$*"; exit 9\n')
        self.assertEqual(ask("compare", self.folder, "--top", 3)["words"],
                         f"compare {self.folder} --top 3 --json")

    def test_its_refusals_are_errors_with_its_line_and_code(self):
        self.stand_in("echo 'error: no such run' >&2; echo more >&2; exit 3\n")
        self.refuses("trainscope query: error: no such run", 3, ask, "query", "x")

    def test_that_is_not_there(self):
        os.environ["TRAINSCOPE"] = str(self.folder / "none")
        self.refuses("set TRAINSCOPE to its path", 2, program_path)


if __name__ == "__main__":
    unittest.main()
