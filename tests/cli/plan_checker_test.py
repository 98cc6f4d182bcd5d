#!/usr/bin/python3
"""scripts/check_plan.py finds no fault in the plans of runs; tests/cli/plan_faults_test.py plants some.

Plans that the other tests make are checked by tests/support/kept_plans.py.

Usage: plan_checker_test.py TRAINSCOPE. Exit code 77 (skipped) without python3-onnx or numpy.
"""
import json
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from checked_plans import ROOT, CheckedPlans  # noqa: E402

import onnx  # noqa: E402

sys.path.insert(0, str(ROOT / "scripts"))
from plan_file import PlanFile  # noqa: E402


class PlanChecker(CheckedPlans):
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
        sound = "".join(f"{run}: 0 faults\n" for run in runs)
        self.assertEqual(self.check(*runs), sound)
        for run in runs:  # the other file says the same: what is found in one is found in both
            with self.subTest(run=run):
                record = PlanFile((run / "plan.bin").read_bytes()).plan()
                self.assertEqual(record, json.loads((run / "plan.json").read_text()))
            (run / "plan.json").unlink()
        self.assertEqual(self.check(*runs[:10]), "".join(sound.splitlines(True)[:10]))

    def test_batch_tiles(self):
        run = self.train("mlp", "--batch-tiles", "auto", threads=2)
        record = PlanFile((run / "plan.bin").read_bytes()).plan()
        self.assertEqual(record, json.loads((run / "plan.json").read_text()))
        self.assertIn(" 0 faults", self.check(run))

    def test_values_inside_others(self):
        for flags in ([], ["--recompute", "2"], ["--max-overhead", "10%", "--offload"]):
            with self.subTest(flags=flags):
                run = self.unet(*flags)
                plan = json.loads((run / "plan.json").read_text())
                self.assertTrue(any(row["slices"] for row in plan["buffers"]))
                self.assertIn(" 0 faults", self.check(run))

    def test_budget(self):
        plain = self.arena(self.train("gpt2"))
        budget = plain - plain // 20
        run = self.train("gpt2", "--memory-budget", str(budget))
        self.assertLessEqual(self.arena(run), budget)
        self.assertIn(" 0 faults", self.check(run, "--budget", str(budget)))
        self.assertIn("above the budget", self.check(run, "--budget", str(self.arena(run) - 1)))

        def smaller(plan):
            self.assertEqual(plan["recompute"]["budget_bytes"], budget)
            plan["recompute"]["budget_bytes"] = plan["arena_bytes"] - 1

        self.assertIn("above the budget", self.spoil(run, smaller))

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

    def test_worlds(self):
        plans = [*self.worlds("--world", "1,2,4", "--zero", "3"),
                 *self.worlds("--world", "2", "--tensor-parallel", "2"),
                 *self.worlds("--world", "2", "--pipeline", "2", "--accumulate", "4")]
        self.assertEqual(len(plans), 6)
        self.assertEqual(self.check(*plans), "".join(f"{plan}: 0 faults\n" for plan in plans))

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

        def plan_json(run, text):
            (run / "plan.bin").unlink()
            (run / "plan.json").write_text(text)

        def cut(run, size):
            data = (run / "plan.bin").read_bytes()
            (run / "plan.bin").write_bytes(data[:size])

        unreadable(garbage_stage)
        for text in ("[]", "{}", "1", "null", "", '{"buffers": 3}'):
            with self.subTest(plan=text):
                unreadable(lambda run: plan_json(run, text))
        for size in (0, 5, 31, 100, 2000, -1):
            with self.subTest(bytes=size):
                unreadable(lambda run: cut(run, size))
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
