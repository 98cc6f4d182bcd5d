#!/usr/bin/python3
"""scripts/check_plan.py finds no fault in the plans of runs, and finds those that are planted.

Plans that the other tests make are checked by tests/support/kept_plans.py.

Usage: plan_checker_test.py TRAINSCOPE. Exit code 77 (skipped) without python3-onnx or numpy.
"""
import json
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

try:
    import numpy  # noqa: F401  (the checker needs both)
    import onnx  # noqa: F401
except ImportError:
    print("skipped: python3-onnx or python3-numpy is not installed")
    sys.exit(77)

ROOT = Path(__file__).resolve().parents[2]
MODELS = ROOT / "tests/data/models"
PROGRAM = Path(sys.argv.pop()).resolve()


class PlanChecker(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def train(self, model, *flags, threads=1):
        run = self.folder / f"run-{len(list(self.folder.iterdir()))}"
        file = model if isinstance(model, Path) else MODELS / model / "model.onnx"
        done = subprocess.run(
            [PROGRAM, "train", file, "--data", "synthetic", "--steps", "1",
             "--threads", str(threads), "-q", "--run-dir", run, *flags], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return run

    def check(self, *words):
        done = subprocess.run(["/usr/bin/python3", ROOT / "scripts/check_plan.py", *words],
                              capture_output=True, text=True)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        self.assertEqual(done.stderr, "")  # 1 is also how Python ends with a traceback
        return done.stdout

    def arena(self, run):
        return json.loads((run / "plan.json").read_text())["arena_bytes"]

    def test_sound_plans(self):
        runs = []
        for model in ("mlp", "lenet", "resnet18", "gpt2", "bert", "llama", "gpt2-dropout"):
            for flags in ([], ["--accumulate", "2", "--clip", "1"], ["--recompute", "1"],
                          ["--op-order", "given"], ["--recompute", "2"],
                          ["--max-overhead", "10%"], ["--optimizer-in-backward"],
                          ["--max-overhead", "30%", "--optimizer", "sgd"],
                          ["--precision", "bf16"],
                          ["--max-overhead", "5%", "--offload", "--link-rate", "10TB"]):
                runs.append(self.train(model, *flags))
        self.assertEqual(self.check(*runs), "".join(f"{run}: 0 faults\n" for run in runs))

    def unet(self, *flags):
        """A run in which values lie inside others."""
        model = self.folder / "unet.onnx"
        subprocess.run([PROGRAM, "model", "unet", "--depth", "2", "--width", "8", "--image", "32",
                        "-q", "--out", model], check=True, capture_output=True)
        return self.train(model, "--batch", "1", "--loss", "cross_entropy:class_axis=1", *flags)

    def test_values_inside_others(self):
        for flags in ([], ["--recompute", "2"], ["--max-overhead", "10%", "--offload"]):
            with self.subTest(flags=flags):
                run = self.unet(*flags)
                plan = json.loads((run / "plan.json").read_text())
                self.assertTrue(any(row["parts"] for row in plan["buffers"]))
                self.assertIn(" 0 faults", self.check(run))

    def test_planted_faults_in_parts(self):
        def parts(plan):
            """Of results that a Concat finds in place."""
            rows = [row for row in plan["buffers"] if len(row["parts"]) > 1]
            return rows[0]["parts"]

        def moved(plan):
            parts(plan)[0]["offset"] += 64

        def exchanged(plan):
            one, other = parts(plan)[0], parts(plan)[-1]
            one["offset"], other["offset"] = other["offset"], one["offset"]

        def outside(plan):
            parts(plan)[-1]["offset"] = plan["arena_bytes"] - 64

        def short(plan):
            parts(plan)[0]["bytes"] -= 64

        def left_out(plan):
            parts(plan).pop()

        for change in (moved, exchanged, outside, short, left_out):
            with self.subTest(change=change.__name__):
                self.assertNotIn(" 0 faults", self.spoil(self.unet(), change))

    def test_batch_tiles(self):
        """Every tile is replayed: what another one does with its bytes is found."""
        def tile(plan, number, kind="kernel", slice_of="examples", key="writes"):
            """The first operand of a call of this tile that is such a slice."""
            return next(o for row in plan["calls"] if row.get("tile") == number
                        and row["kind"] == kind for o in row[key] if o and o["slice"] == slice_of)

        def another_tiles_bytes(plan):
            tile(plan, 1)["offset"] -= tile(plan, 1)["offset"]

        def misplaced(plan):
            tile(plan, 1)["offset"] += 4

        def reads_another_tiles(plan):
            tile(plan, 1, key="reads")["offset"] = 0

        def smaller(plan):
            tile(plan, 1)["shape"][0] -= 1

        def partial_in_the_result(plan):
            first, other = (tile(plan, t, slice_of="partial") for t in (0, 1))
            other["buffer"], other["offset"] = first["buffer"], first["offset"]

        def sum_of_other_elements(plan):
            tile(plan, 0, "add_partials", "partial", "reads")["offset"] += 4

        def sum_elsewhere(plan):
            tile(plan, 1, "add_partials", "elements")["offset"] = 0

        def no_sum(plan):
            last = max(i for i, row in enumerate(plan["calls"]) if row["kind"] == "add_partials")
            plan["calls"][last]["kind"] = "kernel"

        def workspaces_overlap(plan):
            rows = [row for row in plan["calls"] if row.get("tile") == 1 and row["workspace_bytes"]
                    and row["tile_workspace_bytes"]]
            if not rows:  # no tile has one of its own: as if one had
                rows = [row for row in plan["calls"] if row.get("tile") == 1][:1]
                place = rows[0]["writes"][0]
                buffer = plan["buffers"][place["buffer"]]
                rows[0]["workspace_offset"] = buffer["offset"]
                rows[0]["tile_workspace_bytes"] = 64
            rows[0]["tile_workspace_offset"] = 0

        def exchanged_tiles(plan):
            begin = plan["sections"][0]["begin"]
            for row, number in zip(plan["calls"][begin:begin + 2], (1, 0)):
                row["tile"] = number

        run = self.train("mlp", "--batch-tiles", "auto", threads=2)
        text = (run / "plan.json").read_text()
        self.assertGreater(len(json.loads(text)["sections"]), 1)
        self.assertIn(" 0 faults", self.check(run))
        for change in (another_tiles_bytes, misplaced, reads_another_tiles, smaller,
                       partial_in_the_result, sum_of_other_elements, sum_elsewhere, no_sum,
                       workspaces_overlap, exchanged_tiles):
            with self.subTest(change=change.__name__):
                (run / "plan.json").write_text(text)
                self.assertNotIn(" 0 faults", self.spoil(run, change))

    def test_bodies(self):
        """A body's calls are replayed trip by trip in the call's workspace."""
        def inner(plan):
            return plan["bodies"][0]["plan"]

        def overlap(plan):
            rows = inner(plan)["buffers"]
            for row in rows:
                row["offset"] = rows[0]["offset"]

        def misread(plan):
            call = inner(plan)["calls"][1]
            call["reads"][0], call["reads"][1] = call["reads"][1], call["reads"][0]
            call["reads"][0]["offset"] += 64

        def exchanged(plan):
            """The sum reads x after the product has taken its place: of the trip before."""
            calls = inner(plan)["calls"]
            calls[1]["reads"][1] = dict(calls[0]["writes"][0], value=calls[1]["reads"][1]["value"])

        def overwritten_input(plan):
            body = inner(plan)
            product, x = body["calls"][0]["writes"][0], body["inputs"][0]
            rows = {row["id"]: row for row in body["buffers"]}
            place = next(v["buffer"] for v in body["values"] if v["id"] == x)
            rows[product["buffer"]]["offset"] = rows[place]["offset"]

        def too_large(plan):
            inner(plan)["arena_bytes"] += 64

        def missing(plan):
            inner(plan)["calls"].pop()

        run = self.folder / "body"
        shutil.copytree(ROOT / "tests/data/plan-with-body", run)
        text = (run / "plan.json").read_text()
        self.assertIn(" 0 faults", self.check(run))
        for change in (overlap, misread, exchanged, overwritten_input, too_large, missing):
            with self.subTest(change=change.__name__):
                (run / "plan.json").write_text(text)
                self.assertIn("in its body" if change is not too_large else "its body needs more",
                              self.spoil(run, change))

    def test_budget(self):
        plain = self.arena(self.train("gpt2"))
        budget = plain - plain // 20
        run = self.train("gpt2", "--memory-budget", str(budget))
        self.assertLessEqual(self.arena(run), budget)
        self.assertIn(" 0 faults", self.check(run, "--budget", str(budget)))
        self.assertIn("above the budget", self.check(run, "--budget", str(self.arena(run) - 1)))
        path = run / "plan.json"
        plan = json.loads(path.read_text())
        self.assertEqual(plan["recompute"]["budget_bytes"], budget)
        plan["recompute"]["budget_bytes"] = plan["arena_bytes"] - 1
        path.write_text(json.dumps(plan))
        self.assertIn("above the budget", self.check(run))

    def test_run_format_1(self):
        """Runs from before calls had their name are read as they are."""
        run = self.folder / "format-1"
        shutil.copytree(ROOT / "tests/data/run-format-1/run", run)
        self.assertEqual(self.check(run), f"{run}: 0 faults\n")

        def left_out(plan):
            del plan["instructions"][3]

        self.assertNotIn(" 0 faults", self.spoil(run, left_out))

    def test_states_that_are_copied(self):
        """A copy is a call: without it the state's new value is lost."""
        def values(name, dims):
            return onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, dims)

        def numbers(name, value):
            return onnx.helper.make_tensor(name, onnx.TensorProto.FLOAT, [3], 3 * [value])

        nodes = [onnx.helper.make_node("BatchNormalization", ["x", "s", "b", "mean", "var"],
                                       ["n", "m", "v"], training_mode=1),
                 onnx.helper.make_node("Add", ["n", "mean"], ["logits"])]  # the mean once more
        graph = onnx.helper.make_graph(
            nodes, "g", [values("x", [4, 3])], [values("logits", [4, 3])],
            [numbers("s", 1), numbers("b", 0), numbers("mean", 0), numbers("var", 1)])
        opset = onnx.helper.make_opsetid("", 17)
        model = self.folder / "copied.onnx"
        onnx.save(onnx.helper.make_model(graph, opset_imports=[opset], ir_version=8), model)
        run = self.train(model)

        def no_copies(plan):
            rows = [row for row in plan["calls"] if row["kind"] != "state_copy"]
            self.assertLess(len(rows), len(plan["calls"]))
            plan["calls"] = [{**row, "id": i} for i, row in enumerate(rows)]

        self.assertIn(" 0 faults", self.check(run))
        self.assertIn("is lost", self.spoil(run, no_copies))

    def spoil(self, run, change):
        path = run / "plan.json"
        plan = json.loads(path.read_text())
        change(plan)
        path.write_text(json.dumps(plan))
        return self.check(run)

    def test_planted_faults(self):
        def renumbered(plan, change):
            """The ids are right again: something else has to find the fault."""
            change(plan)
            ids = {row["id"]: i for i, row in enumerate(plan["calls"])}
            for i, row in enumerate(plan["calls"]):
                row["id"] = i
            for row in plan["buffers"]:
                if "call" in (row["owner"] or {}):
                    row["owner"]["call"] = ids.get(row["owner"]["call"])

        def values(plan):
            return [row for row in plan["buffers"] if row["kind"] == "value" and row["bytes"] > 64]

        def overlap(plan):
            rows = values(plan)
            for row in rows:
                row["offset"] = rows[0]["offset"]

        def outside(plan):
            values(plan)[0]["offset"] = plan["arena_bytes"]

        def short_life(plan):
            row = max(values(plan), key=lambda r: r["death"] - r["birth"])
            row["death"] = row["birth"] + 1

        def left_out(plan):
            del plan["calls"][3]

        def exchanged(plan):
            rows = plan["calls"]
            rows[1], rows[2] = rows[2], rows[1]

        def bound(plan):
            plan["lower_bound_bytes"] //= 2

        def no_workspace(plan):
            plan["buffers"] = [row for row in plan["buffers"] if row["kind"] != "workspace"]

        def nothing(plan):
            plan["calls"][3]["outputs"] = []

        def unknown(plan):
            plan["calls"][3]["outputs"] = ["no such value"]

        def other_owner(plan):
            row = next(row for row in plan["buffers"] if row["kind"] == "workspace")
            row["owner"]["call"] += 1

        def other_time(plan):
            plan["calls"][3]["time"] += 1

        for change in (overlap, outside, short_life, left_out, exchanged, bound, no_workspace,
                       nothing, unknown, other_owner, other_time):
            with self.subTest(change=change.__name__):
                run = self.train("gpt2", "--recompute", "2")
                self.assertNotIn(" 0 faults", self.spoil(run, lambda plan: renumbered(plan, change)))

        def ids(plan):
            plan["calls"][3]["id"] = 4

        self.assertEqual(self.spoil(self.train("gpt2"), ids).count("the ids are not"), 1)

    def test_waits(self):
        model = self.folder / "offload.onnx"
        subprocess.run([PROGRAM, "model", "gpt2", "--layers", "4", "--heads", "4", "--embedding", "64",
                        "--vocab", "65", "--context", "64", "-o", model], check=True,
                       stdout=subprocess.DEVNULL)
        run = self.train(model, "--batch", "16", "--seq", "64", "--max-overhead", "20%", "--offload",
                         "--link-rate", "100000GB")
        plan = (run / "plan.json").read_text()
        waiting = [row["id"] for row in json.loads(plan)["calls"] if row["waits"]]
        self.assertGreater(len(waiting), 20)
        self.assertIn(" 0 faults", self.spoil(run, lambda plan: None))
        for call in waiting[:: len(waiting) // 5]:
            def forget(plan):
                plan["calls"][call]["waits"] = []

            (run / "plan.json").write_text(plan)
            with self.subTest(call=call):
                self.assertIn(f"call {call} does not wait for", self.spoil(run, forget))

    def worlds(self, *flags):
        """The plans of the devices of worlds, in the order of their names."""
        plans = self.folder / f"plans-{len(list(self.folder.iterdir()))}"
        subprocess.run([PROGRAM, "plan", MODELS / "gpt2/model.onnx", "--threads", "1",
                        "--target", "a100-40", "--plans", plans, *flags],
                       check=True, capture_output=True)
        return sorted(plans.glob("*/*"))

    def test_worlds(self):
        plans = [*self.worlds("--world", "1,2,4", "--zero", "3"),
                 *self.worlds("--world", "2", "--tensor-parallel", "2"),
                 *self.worlds("--world", "2", "--pipeline", "2", "--accumulate", "4")]
        self.assertEqual(len(plans), 6)
        self.assertEqual(self.check(*plans), "".join(f"{plan}: 0 faults\n" for plan in plans))

    def test_planted_fault_in_what_is_held(self):
        def overlap(plan):
            held = [row for row in plan["buffers"] if row["kind"] == "held"]
            self.assertEqual(len(held), 1)
            value = max((row for row in plan["buffers"] if row["kind"] == "value"),
                        key=lambda row: row["bytes"])
            held[0]["offset"] = min(value["offset"], plan["arena_bytes"] - held[0]["bytes"])

        first, last = self.worlds("--world", "2", "--pipeline", "2", "--accumulate", "4")
        self.assertIn("held for others", self.spoil(first, overlap))
        self.assertIn(f"{last}: 0 faults", self.check(last))  # one micro-batch at a time

    def test_recompute_that_computes_something_else(self):
        run = self.train("gpt2", "--recompute", "2")
        rows = json.loads((run / "stages/stages.json").read_text())["stages"]
        path = run / "stages" / rows[-1]["file"]
        model = onnx.load(path, load_external_data=False)
        second = next(n for n in model.graph.node
                      if n.name.endswith("/rematerialized") and len(n.input) > 1)
        second.input[0], second.input[1] = second.input[1], second.input[0]
        onnx.save(model, path)
        self.assertIn("the stage recompute changes", self.check(run))

    def test_files_that_are_something_else(self):
        def unreadable(change):
            run = self.train("mlp")
            change(run)
            done = subprocess.run(["/usr/bin/python3", ROOT / "scripts/check_plan.py", run],
                                  capture_output=True, text=True)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertTrue(done.stderr.startswith("cannot read"), done.stderr)

        def garbage_stage(run):
            rows = json.loads((run / "stages/stages.json").read_text())["stages"]
            (run / "stages" / rows[-1]["file"]).write_bytes(b"\xff garbage")

        unreadable(garbage_stage)
        for text in ("[]", "{}", "1", "null", "", '{"buffers": 3}'):
            with self.subTest(plan=text):
                unreadable(lambda run: (run / "plan.json").write_text(text))
        for text in ("[]", '{"stages": []}', '{"stages": [1]}'):
            with self.subTest(stages=text):
                unreadable(lambda run: (run / "stages/stages.json").write_text(text))

    def test_several_runs(self):
        sound, wrong = self.train("mlp"), self.train("lenet")
        self.spoil(wrong, lambda plan: plan["calls"].pop())
        command = ["/usr/bin/python3", ROOT / "scripts/check_plan.py"]
        done = subprocess.run([*command, wrong, sound], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertNotIn(f"{wrong}: 0 faults", done.stdout)
        self.assertIn(f"{sound}: 0 faults", done.stdout)
        done = subprocess.run([*command, self.folder / "none", sound], capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn(f"{sound}: 0 faults", done.stdout)

    def test_kept_plans(self):
        """What the test plans.check does with the plans that other tests have made."""
        kept = self.folder / "kept"

        def kept_plans(verb):
            return subprocess.run(["/usr/bin/python3", ROOT / "tests/support/kept_plans.py", verb,
                                   kept], capture_output=True, text=True)

        self.assertEqual(kept_plans("check").returncode, 1)
        self.assertEqual(kept_plans("begin").returncode, 0)
        none = kept_plans("check")
        self.assertEqual(none.returncode, 1)
        self.assertIn("no test has left a plan", none.stdout)
        self.train("gpt2", "--recompute", "2").rename(kept / "sound")
        self.assertEqual(kept_plans("check").returncode, 0)
        self.train("gpt2", "--recompute", "2").rename(kept / "wrong")
        self.spoil(kept / "wrong", lambda plan: plan["calls"].pop())
        wrong = kept_plans("check")
        self.assertEqual(wrong.returncode, 1)
        self.assertIn("1 of 2 plans are sound", wrong.stdout)
        self.assertEqual(kept_plans("begin").returncode, 0)
        self.assertEqual(list(kept.iterdir()), [])

    def test_no_run(self):
        done = subprocess.run(["/usr/bin/python3", ROOT / "scripts/check_plan.py", self.folder],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("cannot read", done.stderr)


if __name__ == "__main__":
    unittest.main()
