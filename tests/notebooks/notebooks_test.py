#!/usr/bin/python3
"""The notebooks: run in order, headless; the numbers in their plots are those of the program.

Usage: notebooks_test.py TRAINSCOPE. Exit code 77 (skipped) without matplotlib or numpy.

What is drawn is read from the plots (lines, bars, points, pictures) and held against what the
program says with --json, or what PyTorch wrote.
"""
import csv
import json
import os
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

try:
    import matplotlib
    matplotlib.use("Agg")
    import numpy
    from matplotlib import pyplot
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
from run import CellFailed, run_notebook  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = ROOT / "notebooks"
RUN = ROOT / "tests/data/gpt-run"
NUMERICS = ROOT / "tests/data/numerics"
EXPORTERS = ROOT / "tests/data/exporters"
SECONDS = 90  # of all notebooks together
PROGRAM = ""


def facts(*words):
    """What the program says with --json; of a comparison that finds something too."""
    done = subprocess.run([PROGRAM, *map(str, words), "--json"], capture_output=True, text=True,
                          check=False)
    assert done.returncode in (0, 9), done.stderr
    return json.loads(done.stdout)


def line(ax, place=0):
    """(x, y) of a line that was plotted."""
    x, y = ax.lines[place].get_data()
    return numpy.asarray(x, float), numpy.asarray(y, float)


def bars(ax):
    """{label: length} of horizontal bars."""
    labels = [text.get_text() for text in ax.get_yticklabels()]
    return dict(zip(labels, [bar.get_width() for bar in ax.patches]))


class NotebooksTest(unittest.TestCase):
    seconds = 0.0

    def tearDown(self):
        pyplot.close("all")

    def drawn(self, name):
        """The namespace of a notebook; the folder that it worked in goes with the test."""
        start = time.monotonic()
        namespace = run_notebook(NOTEBOOKS / f"{name}.ipynb")
        NotebooksTest.seconds += time.monotonic() - start
        if "work" in namespace:
            self.addCleanup(namespace["work"].cleanup)
        return namespace

    def near(self, a, b, relative=1e-9):
        numpy.testing.assert_allclose(numpy.asarray(a, float), numpy.asarray(b, float), relative)

    def test_run_in_ten_plots(self):
        axes = self.drawn("run_in_ten_plots")["axes"]
        self.assertEqual(len(axes), 10)
        self.check_curves(axes)
        for name, by in (("phases", "phase"), ("ops", "op"), ("layers", "layer")):
            rows = facts("query", RUN, "--by", by)["rows"]
            of_program = {row["name"] if row["is_call"] else f"({row['name']})": row["ms"]
                          for row in rows}
            shown = bars(axes[name])
            self.assertGreaterEqual(len(shown), min(4, len(rows)))
            self.near(list(shown.values()), [of_program[label] for label in shown])
        step_ms = facts("query", RUN, "--by", "op")["step_ms"]
        self.near(sum(bars(axes["phases"]).values()), step_ms, 1e-6)
        self.check_memory_and_stages(axes)
        self.check_gradients(axes["gradients"])

    def check_curves(self, axes):
        with tempfile.TemporaryDirectory() as folder:
            facts("export", RUN, "--format", "csv", "-o", Path(folder) / "metrics.csv")
            with open(Path(folder) / "metrics.csv", encoding="utf-8", newline="") as file:
                rows = list(csv.DictReader(file))
        steps = [row for row in rows if row["kind"] == "step"]
        evaluations = [row for row in rows if row["kind"] == "evaluation"]
        self.assertEqual(len(steps), 60)
        self.assertGreaterEqual(len(evaluations), 3)
        for name, column in (("loss", "loss"), ("rate", "learning_rate"), ("norm", "gradient_norm"),
                             ("time", "step_ms")):
            x, y = line(axes[name])
            self.near(x, [row["step"] for row in steps])
            self.near(y, [row[column] for row in steps])
        self.near(line(axes["loss"], 1), [[row["step"] for row in evaluations],
                                          [row["loss"] for row in evaluations]])

    def check_memory_and_stages(self, axes):
        memory = facts("inspect", RUN, "--memory")
        live = line(axes["memory"])[1]
        self.near(live.max() * 1e6, memory["live_bytes"])
        self.near(live[memory["time"]] * 1e6, memory["live_bytes"])
        self.near(line(axes["memory"], 1)[1] * 1e6, memory["arena_bytes"])
        changed = [stage for stage in facts("inspect", RUN, "--stages")["stages"]
                   if stage["changed"] or stage["name"] == "imported"]
        heights = [bar.get_height() for bar in axes["stages"].patches]
        self.assertEqual(heights, [stage["nodes_after"] for stage in changed])
        self.assertGreaterEqual(len(heights), 10)

    def check_gradients(self, ax):
        rows = [row for row in facts("compare", RUN, RUN, "--only", "tensors")["tensors"]
                if row["value"].startswith("grad:")]
        l2 = {(row["value"][5:], str(row["step"])): row["l2_a"] for row in rows}
        image = ax.images[0].get_array()
        names = [text.get_text() for text in ax.get_yticklabels()]
        steps = [text.get_text() for text in ax.get_xticklabels()]
        self.assertEqual(len(l2), image.size)
        self.near(10.0 ** image, [[l2[name, step] for step in steps] for name in names], 1e-9)

    def test_memory_budget_against_time(self):
        names = self.drawn("memory_budget_against_time")
        model, words = names["model"], names["STEP"]
        front = facts("plan", model, *words, "--front")["front"]
        megabytes, more_time = line(names["ax"])
        self.near(megabytes * 1e6, [point["arena_bytes"] for point in front])
        self.near(more_time, [100 * point["overhead"] for point in front])
        self.assertGreater(len(front), 5)
        # Less memory takes more time, all along.
        order = numpy.argsort(megabytes)
        self.assertTrue((numpy.diff(more_time[order]) <= 0).all())
        arenas, took = line(names["ax"], 1)
        self.assertTrue((arenas <= names["budgets"]).all())
        for budget, arena, more in zip(names["budgets"], arenas, took):
            plan = facts("plan", model, *words, "--memory-budget", int(budget * 1e6))
            self.near(arena * 1e6, plan["arena_bytes"])
            self.near(more, 100 * plan["recompute"]["overhead"])
            # No slower than the quickest of the front that fits.
            fits = more_time[megabytes <= budget]
            self.assertLessEqual(more, fits.min() + 0.5)
        plain = facts("plan", model, *words)["arena_bytes"]
        self.near(line(names["ax"], 2)[0][0] * 1e6, plain)
        without, within = (line(names["memory"], place)[1].max() * 1e6 for place in (0, 1))
        self.assertLessEqual(without, plain)
        self.assertLessEqual(within, names["budgets"][0] * 1e6)

    def test_where_two_engines_part(self):
        names = self.drawn("where_two_engines_part")
        pair = NUMERICS / "mlp-trainscope", NUMERICS / "mlp-pytorch-faulty"
        compared = facts("compare", *pair, "--only", "tensors")
        rows = {(row["value"], str(row["step"])): row for row in compared["tensors"]}
        ax = names["ax"]
        image = numpy.ma.filled(ax.images[0].get_array(), numpy.nan)
        keys = [text.get_text() for text in ax.get_yticklabels()]
        steps = [text.get_text() for text in ax.get_xticklabels()]
        shown = 0
        for place in numpy.argwhere(~numpy.isnan(image)):
            row = rows[keys[place[0]], steps[place[1]]]
            self.near(10.0 ** image[tuple(place)], max(row["error"], 1e-12) / row["limit"], 1e-6)
            self.assertEqual(image[tuple(place)] > 0, row["verdict"] == "beyond")
            shown += 1
        self.assertGreater(shown, 25)
        first = compared["first"]
        self.assertEqual(first["value"], "act:/3/Relu_output_0")
        self.near(line(ax)[1], keys.index(first["value"]))
        heights = [bar.get_height() for bar in names["truth"].patches]
        self.near(heights, [first["error_a"], first["error_b"]])
        self.assertGreater(heights[1], 1e3 * heights[0])
        self.assertEqual(names["culprit"]["node"], "/3/Relu")
        self.assertEqual(names["culprit"]["run"], "B")

    def test_roofline_of_a_step(self):
        names = self.drawn("roofline_of_a_step")
        rows = [row for row in facts("query", RUN, "--by", "op")["rows"]
                if row["is_call"] and row["flops"] > 0]
        points = names["points"].get_offsets()
        self.near(points[:, 0], [row["flops"] / row["bytes"] for row in rows])
        self.near(points[:, 1], [row["flops"] / row["ms"] * 1e-6 for row in rows], 1e-6)
        machine = json.loads((RUN / "manifest.json").read_text(encoding="utf-8"))["machine"]
        peak = machine["flops_per_second"]["f32"]["one"] / 1e9  # the run has one thread
        self.assertEqual(len(machine["levels"]), len(names["ax"].lines))
        for level, drawn_line in zip(machine["levels"], names["ax"].lines):
            x, y = (numpy.asarray(each, float) for each in drawn_line.get_data())
            self.near(y, numpy.minimum(peak, level["read"]["one"] / 1e9 * x))
        shares = bars(names["shares"])
        roofs = {row["name"]: 100 * row["roof"] for row in rows}
        self.near(list(shares.values()), [roofs[name] for name in shares])
        self.assertGreater(max(shares.values()), 5)

    def test_fine_tune_and_export_back(self):
        names = self.drawn("fine_tune_and_export_back")
        run = names["folder"] / "run"
        x, losses = line(names["ax"])
        self.near(x, [1, 2, 3])
        self.near(losses, line(names["ax"], 1)[1], 2e-6)  # PyTorch's, of six decimals
        errors = bars(names["differences"])
        self.assertEqual(set(errors), set(names["module"]))
        self.assertEqual(len(errors), 10)
        self.assertLess(max(errors.values()), 1e-5)
        after = facts("eval", run, "--data", f"tensors:{EXPORTERS / 'reg.safetensors'}",
                      "--validation", 1)
        self.near(names["evaluated"]["loss"], after["loss"])
        self.assertLess(after["loss"], losses[-1])

    def test_they_are_small_and_hold_no_pictures(self):
        for path in NOTEBOOKS.glob("*.ipynb"):
            self.assertLess(path.stat().st_size, 30_000, path.name)
            notebook = json.loads(path.read_text(encoding="utf-8"))
            kinds = [output["output_type"] for cell in notebook["cells"]
                     for output in cell.get("outputs", [])]
            self.assertEqual(set(kinds) - {"stream"}, set(), path.name)

    def test_a_cell_that_raises_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "broken.ipynb"
            cells = [{"cell_type": "code", "source": "x = 1"},
                     {"cell_type": "markdown", "source": "#"},
                     {"cell_type": "code", "source": ["y = x\n", "z = y / 0\n"]}]
            path.write_text(json.dumps({"cells": cells}), encoding="utf-8")
            with self.assertRaisesRegex(CellFailed, "cell 2, line 2: ZeroDivisionError"):
                run_notebook(path)

    def test_zz_all_within_their_time(self):
        self.assertGreater(self.seconds, 0.0)
        self.assertLess(self.seconds, SECONDS)


if __name__ == "__main__":
    PROGRAM = str(Path(sys.argv.pop(1)).resolve())
    os.environ["TRAINSCOPE"] = PROGRAM
    unittest.main()
