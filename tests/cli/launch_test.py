#!/usr/bin/python3
"""`trainscope launch`: ranks have the bits of one process that accumulates, and its records.

Usage: launch_test.py TRAINSCOPE
"""
import json
import sys
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from launched_runs import MODELS, Case, checkpoint, children_of, steps  # noqa: E402


class SameBits(Case):
    MLP = (MODELS / "mlp/model.onnx", "--data", "synthetic", "--steps", 12)

    def check_same_bits(self, model, ranks, *words, accumulate=1, states=(), name=""):
        """`states`: those of a rank's own, which need not be those of one process. `name`: of the
        runs, where there are several of as many ranks."""
        one = f"one-{ranks}{name}"
        many = f"many-{ranks}{name}"
        self.train(one, None, model, *words, "--accumulate", ranks * accumulate)
        self.train(many, ranks, model, *words, "--accumulate", accumulate)
        expected, got = steps(self.folder / one), steps(self.folder / many)
        self.assertGreaterEqual(len(got), 10)
        for key in ("loss", "learning_rate", "gradient_norm", "samples", "tokens"):
            self.assertEqual([row.get(key) for row in got], [row.get(key) for row in expected], key)
        for file in ("model", "optimizer"):
            expected_tensors = checkpoint(self.folder / one, file)
            got_tensors = checkpoint(self.folder / many, file)
            self.assertEqual(got_tensors.keys(), expected_tensors.keys())
            self.assertTrue(got_tensors or file == "optimizer")
            for name, tensor in expected_tensors.items():
                if any(state in name for state in states):
                    continue
                self.assertEqual(got_tensors[name], tensor, name)

    def test_mlp_adamw_clipped(self):
        for ranks in (2, 3, 4):
            self.check_same_bits(self.MLP[0], ranks, *self.MLP[1:], "--optimizer", "adamw", "--clip",
                                 0.5, "--lr", 1e-2)

    def test_gpt2_dropout_ignored_and_weighted_labels(self):
        for ranks in (2, 4):
            self.check_same_bits(MODELS / "gpt2-dropout/model.onnx", ranks, "--data", "synthetic",
                                 "--steps", 10, "--clip", 1, "--loss",
                                 "cross_entropy:ignore_index=3,label_smoothing=0.1")

    def test_resnet(self):
        self.check_same_bits(MODELS / "resnet18/model.onnx", 2, "--data", "synthetic", "--steps", 10,
                             "--optimizer", "sgd", "--momentum", 0.9, "--lr", 1e-2,
                             states=("running_mean", "running_var"))

    def test_whatever_kernels_are_preferred(self):
        for kernels in ("reference", "direct"):
            with self.subTest(kernels=kernels):
                self.check_same_bits(self.MLP[0], 2, *self.MLP[1:], "--kernels", kernels,
                                     name=kernels)

    def test_two_byte_precisions(self):
        for precision in ("bf16", "fp16"):
            with self.subTest(precision=precision):
                self.check_same_bits(self.MLP[0], 2, *self.MLP[1:], "--precision", precision, "--clip",
                                     1, name=precision)

    def test_class_weights(self):
        self.check_same_bits(self.MLP[0], 3, *self.MLP[1:], "--loss",
                             "cross_entropy:weights=1:2:3:4:5:6:7:8:9:0", name="weights")

    def test_accumulation_in_each_rank(self):
        """Sums of two levels are added in another order: the losses of step 1 are the same."""
        words = (*self.MLP, "--optimizer", "sgd")
        self.train("one", None, *words, "--accumulate", 4)
        self.train("many", 2, *words, "--accumulate", 2)
        expected, got = steps(self.folder / "one"), steps(self.folder / "many")
        self.assertEqual(got[0]["loss"], expected[0]["loss"])
        self.assertEqual([row["samples"] for row in got], [4 * 16] * 12)
        for a, b in zip(got, expected):
            self.assertAlmostEqual(a["loss"], b["loss"], places=5)

    def test_one_rank_is_a_plain_run(self):
        self.train("plain", None, *self.MLP)
        self.train("launched", 1, *self.MLP)
        self.assertEqual(checkpoint(self.folder / "launched", "model"),
                         checkpoint(self.folder / "plain", "model"))
        stages = [sorted(p.name for p in (self.folder / run / "stages").glob("*.onnx"))
                  for run in ("plain", "launched")]
        self.assertEqual(stages[0], stages[1])

    def test_a_resumed_run_goes_on_with_the_same_bits(self):
        words = (*self.MLP, "--clip", 1, "--eval-every", 3, "--save-every", 4)
        self.train("whole", 2, *words)
        self.train("parts", 2, *words, "--session-steps", 5)
        self.train("parts", 2, *words, "--resume", "auto")
        self.assertEqual([row["loss"] for row in steps(self.folder / "parts")],
                         [row["loss"] for row in steps(self.folder / "whole")])
        for file in ("model", "optimizer"):
            self.assertEqual(checkpoint(self.folder / "parts", file),
                             checkpoint(self.folder / "whole", file))

    def test_one_process_does_not_go_on_with_the_run_of_two(self):
        self.train("two", 2, *self.MLP, "--session-steps", 3)
        _, err = self.train("two", None, *self.MLP, "--resume", "auto", code=2)
        self.assertIn("ranks", err)

    def test_a_step_of_ranks_is_not_replayed(self):
        self.train("two", 2, *self.MLP, "--save-every", 4)
        for step in (2, 6):  # from the begin, and from a checkpoint
            for more in ((), ("--not-bitwise",)):
                _, err = self.run_program("at", self.folder / "two", "--step", step, "--value",
                                          "logits", *more, code=2)
                self.assertIn("the run had 2 ranks", err)


class Records(Case):
    WORDS = (MODELS / "mlp/model.onnx", "--data", "synthetic", "--steps", 12)

    def test_the_plan_and_the_profile_have_the_calls(self):
        self.train("run", 2, *self.WORDS, "--profile", "steps=3:8")
        plan = json.loads((self.folder / "run/plan.json").read_text())
        reduces = [call for call in plan["calls"] if call["op"] == "AllReduce"]
        parameters = checkpoint(self.folder / "run", "model")
        self.assertEqual(len(reduces), len(parameters))
        self.assertEqual({(call["phase"], call["kernel"]) for call in reduces},
                         {("update", "all_reduce.ranks")})
        out, _ = self.run_program("query", self.folder / "run", "op == 'AllReduce'", "--by", "call",
                                  "--json")
        rows = json.loads(out)["rows"]
        self.assertEqual({row["name"].split()[0] for row in rows},
                         {str(call["id"]) for call in reduces})
        self.assertEqual(sorted(row["bytes"] for row in rows),  # read and written
                         sorted(2 * len(data) for _, _, data in parameters.values()))
        for row in rows:
            self.assertGreater(row["ns"], 0)

    def test_profile_is_launched_as_train_is(self):
        self.run_program("launch", "-n", 2, "--", "profile", *self.WORDS, "--profile", "steps=3:8",
                         "--run-dir", self.folder / "run")
        out, _ = self.run_program("query", self.folder / "run", "op == 'AllReduce'", "--by", "call",
                                  "--json")
        parameters = checkpoint(self.folder / "run", "model")
        self.assertEqual(len(json.loads(out)["rows"]), len(parameters))

    def test_predicted_bytes_are_used_bytes(self):
        out, _ = self.run_program("launch", "-n", 2, "--", "train", *self.WORDS, "--json")
        facts = json.loads(out)
        self.assertEqual(facts["command"], "train")
        self.assertEqual(facts["used_bytes"], facts["predicted_bytes"])
        out, _ = self.run_program("train", *self.WORDS, "--accumulate", 2, "--json")
        self.assertLess(facts["used_bytes"], json.loads(out)["used_bytes"])

    def test_flags_of_launch_are_those_of_the_ranks(self):
        for words, variables in ((("--json",), {}), ((), {"TRAINSCOPE_JSON": "1"})):
            out, _ = self.run_program("launch", "-n", 2, *words, "--", "train", *self.WORDS,
                                      env=variables)
            self.assertEqual(json.loads(out)["command"], "train")
        self.run_program("launch", "-n", 2, "--seed", 5, "--", "train", *self.WORDS, "--run-dir", "a")
        self.run_program("launch", "-n", 2, "--seed", 5, "--", "train", *self.WORDS, "--run-dir", "b",
                         "--seed", 6)
        seeds = [json.loads((self.folder / run / "manifest.json").read_text())["seed"]
                 for run in ("a", "b")]
        self.assertEqual(seeds, ["5", "6"])

    def test_help_of_the_verb_that_is_launched(self):
        out, _ = self.run_program("launch", "-n", 2, "--", "train", "--help")
        expected, _ = self.run_program("train", "--help")
        self.assertEqual(out, expected)
        out, _ = self.run_program("launch", "--help", "--", "train")
        self.assertIn("--ranks", out)

    def test_rank_0_alone_speaks(self):
        out, err = self.train("run", 3, *self.WORDS)
        self.assertEqual(out.count("memory  "), 1)
        self.assertNotIn("rank 1: ", err)
        self.assertEqual([p.name for p in self.folder.iterdir()], ["run"])

    def test_the_environment_of_each_rank(self):
        """As torchrun has it."""
        process = self.start("launch", "-n", 2, "--", "train", *self.WORDS[:3], "--steps", 1_000_000,
                             "--run-dir", self.folder / "run")
        found = {}
        deadline = time.monotonic() + 60
        while len(found) < 2 and time.monotonic() < deadline and process.poll() is None:
            for child in children_of(process):
                try:
                    entries = Path(f"/proc/{child}/environ").read_text().split("\0")
                except OSError:
                    continue
                variables = dict(entry.split("=", 1) for entry in entries if "=" in entry)
                if "TRAINSCOPE_RANKS_FD" in variables:
                    found[variables["RANK"]] = variables
            time.sleep(0.01)
        process.terminate()
        process.communicate(timeout=100)
        self.assertEqual(sorted(found), ["0", "1"])
        for rank, variables in found.items():
            self.assertEqual([variables[name] for name in ("WORLD_SIZE", "LOCAL_RANK",
                                                           "LOCAL_WORLD_SIZE")], ["2", rank, "2"])
            self.assertTrue(variables["TRAINSCOPE_RANKS_FD"].startswith(f"{rank}/2@"))


if __name__ == "__main__":
    unittest.main()
