#!/usr/bin/python3
"""`trainscope launch`: ranks have the bits of one process that accumulates, and end together.

Usage: launch_test.py TRAINSCOPE
"""
import json
import os
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

MODELS = Path(__file__).resolve().parents[1] / "data/models"
PROGRAM = Path(sys.argv.pop()).resolve()
# A rank that is killed is noticed within a second; the rest is for processes to end on a busy machine.
MOST_SECONDS_TO_END = 5


def tensors(file):
    """name -> (dtype, shape, bytes) of a safetensors file."""
    data = file.read_bytes()
    length, = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + length])
    header.pop("__metadata__", None)
    return {name: (row["dtype"], row["shape"],
                   data[8 + length + row["data_offsets"][0]:8 + length + row["data_offsets"][1]])
            for name, row in header.items()}


def steps(run):
    rows = map(json.loads, (run / "metrics.jsonl").read_text().splitlines())
    return [row for row in rows if "loss" in row and "learning_rate" in row]


def checkpoint(run, file):
    newest = max((run / "checkpoints").glob("step-*"))
    return tensors(newest / f"{file}.safetensors")


def children_of(process):
    listed = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
    return [int(word) for word in listed.split()]


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="trainscope-launch-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def start(self, *words, **options):
        environment = {**os.environ, "TRAINSCOPE_THREADS": "1", **options.pop("env", {})}
        return subprocess.Popen([PROGRAM, *map(str, words)], text=True, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, cwd=self.folder, env=environment, **options)

    def run_program(self, *words, code=0, **options):
        process = self.start(*words, **options)
        out, err = process.communicate(timeout=200)
        self.assertEqual(process.returncode, code, err)
        return out, err

    def train(self, run, ranks, *words, **options):
        """Ranks where `ranks` is a number, else one process."""
        launched = ["launch", "-n", ranks, "--"] if ranks else []
        return self.run_program(*launched, "train", *words, "--run-dir", self.folder / run, **options)

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


class SameBits(Case):
    MLP = (MODELS / "mlp/model.onnx", "--data", "synthetic", "--steps", 12)

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


class Ends(Case):
    LONG = (MODELS / "mlp/model.onnx", "--data", "synthetic", "--steps", 1_000_000)

    def start_long(self, ranks=3, *words, more=()):
        """`words`: of launch; `more`: of train."""
        process = self.start("launch", "-n", ranks, *words, "--", "train", *self.LONG, "--run-dir",
                             self.folder / "run", *more)
        metrics = self.folder / "run/metrics.jsonl"
        deadline = time.monotonic() + 100
        while not (metrics.exists() and metrics.stat().st_size > 0):
            self.assertIsNone(process.poll())
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)
        return process

    def fill(self, pipe):
        """Whoever writes next into it waits for a reader."""
        end = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
        for size in (4096, 1):
            try:
                while True:
                    os.write(end, b"\n" * size)
            except BlockingIOError:
                pass
        os.close(end)

    def session(self):
        return json.loads((self.folder / "run/manifest.json").read_text())["sessions"][-1]

    def test_a_killed_rank_ends_all_with_one_line(self):
        for victim in (0, 1, 2):
            with self.subTest(victim=victim):
                process = self.start_long()
                children = children_of(process)
                os.kill(children[victim], signal.SIGKILL)
                start = time.monotonic()
                out, err = process.communicate(timeout=100)
                self.assertLess(time.monotonic() - start, MOST_SECONDS_TO_END)
                self.assertEqual(process.returncode, 8, err)
                self.assertEqual(out, "")
                errors = [line for line in err.splitlines() if "error" in line]
                self.assertEqual(errors, [f"error: rank {victim} was ended by signal 9 (Killed)"])
                for child in children:
                    self.assertFalse(Path(f"/proc/{child}").exists())
                if victim > 0:
                    self.assertEqual(self.session()["status"], "failed")
                    self.assertEqual(self.session()["exit_code"], 8)
                    self.assertIn(f"rank {victim} has ended", self.session()["message"])
                subprocess.run(["rm", "-r", self.folder / "run"], check=True)

    def test_a_killed_rank_is_one_error_of_json(self):
        process = self.start_long(2, "--json")
        os.kill(children_of(process)[1], signal.SIGKILL)
        out, _ = process.communicate(timeout=100)
        self.assertEqual(json.loads(out)["error"]["code"], 8)

    def test_signals_stop_all_after_the_same_step(self):
        for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            process = self.start_long(2)
            process.send_signal(number)
            out, err = process.communicate(timeout=100)
            self.assertEqual(process.returncode, code, err)
            self.assertIn("stopped after step", out)
            self.assertEqual(self.session()["status"], "interrupted")
            subprocess.run(["rm", "-r", self.folder / "run"], check=True)

    def test_a_stop_waits_for_rank_0_to_save(self):
        """Rank 0 tells of its checkpoint, before it writes the model, into a pipe that is full, for
        longer than a rank that fails leaves the others."""
        process = self.start_long(2, more=("--verbose", "--progress", "none"))
        rank_0 = children_of(process)[0]
        self.fill(f"/proc/{process.pid}/fd/2")
        process.send_signal(signal.SIGINT)
        deadline = time.monotonic() + 60
        while children_of(process) != [rank_0]:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)
        time.sleep(2)
        model = self.folder / "run/model.onnx"
        self.assertFalse(model.exists())
        out, err = process.communicate(timeout=100)
        self.assertEqual(process.returncode, 130, err)
        self.assertIn("saved a checkpoint", err)
        self.assertIn("stopped after step", out)
        self.assertEqual(self.session()["exit_code"], 130)
        self.assertTrue(model.exists())

    def test_launch_that_is_killed_takes_its_ranks_along(self):
        process = self.start_long(2)
        children = children_of(process)
        process.kill()
        process.communicate(timeout=100)
        deadline = time.monotonic() + 60
        while any(Path(f"/proc/{child}").exists() for child in children):
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)
        self.assertEqual(self.session()["status"], "interrupted")

    def check_bad_loss(self, rank):
        """An example of the rank's first batch of 16 has an element that is no number."""
        bad = (16 * rank + 4) * 33
        x = [float("nan") if i == bad else i % 7 - 3.0 for i in range(64 * 33)]
        header = {"x": {"dtype": "F32", "shape": [64, 33], "data_offsets": [0, 4 * len(x)]},
                  "labels": {"dtype": "I64", "shape": [64],
                             "data_offsets": [4 * len(x), 4 * len(x) + 8 * 64]}}
        text = json.dumps(header).encode()
        data = self.folder / "data.safetensors"
        data.write_bytes(struct.pack("<Q", len(text)) + text + struct.pack(f"<{len(x)}f", *x) +
                         struct.pack("<64q", *(i % 10 for i in range(64))))
        words = (MODELS / "mlp/model.onnx", "--data", f"tensors:{data}", "--steps", 4, "--shuffle",
                 "none", "--validation", 0)
        _, err = self.train(f"run-{rank}", 2, *words, code=7)
        self.assertIn(f"the loss of rank {rank} is", err)
        self.assertIn("rank 1: error: ", err)
        self.assertNotIn("--first-nan", err)

    def test_a_bad_loss_is_named_with_its_rank(self):
        """Its batch is kept where it is rank 0's; the step cannot be run again."""
        for rank in (0, 1):
            self.check_bad_loss(rank)
        failure = json.loads((self.folder / "run-0/failure/failure.json").read_text())
        self.assertEqual(failure["step"], 1)
        self.assertNotIn("command", failure)
        self.assertFalse((self.folder / "run-1/failure").exists())

    def test_what_all_ranks_refuse(self):
        _, err = self.train("run", 2, MODELS / "missing.onnx", "--data", "synthetic", "--steps", 1,
                            code=6)
        self.assertIn("error: ", err)
        for flag, text in ((("--record-numerics",), "--record-numerics"),
                           (("--optimizer-in-backward",), "2 ranks"),
                           (("--worker-fd", 0), "--worker-fd")):
            _, err = self.train("run", 2, *self.LONG, *flag, code=2)
            self.assertIn(text, err)
        self.assertFalse((self.folder / "run").exists())

    def test_a_folder_that_rank_0_does_not_get(self):
        (self.folder / "run").mkdir()
        (self.folder / "run/file").write_text("x")
        _, err = self.train("run", 2, *self.LONG, code=2)
        self.assertEqual(err.count("error: "), 1, err)

    def test_bad_calls(self):
        for words, text in ((("launch", "-n", 2), "launch needs"),
                            (("launch", "--", "train"), "-n N"),
                            (("launch", "-n", 2, "--", "plan", "m.onnx"), "train or profile"),
                            (("launch", "-n", 0, "--", "train"), "--ranks"),
                            (("launch", "-n", 65, "--", "train"), "--ranks")):
            _, err = self.run_program(*words, code=2)
            self.assertIn(text, err)
        for place in ("1/2", "2/2@3", "-1/2@3", "0/2@x", "0/65@3", "a"):
            _, err = self.run_program("train", *self.LONG, "--ranks-fd", place, code=2)
            self.assertIn("expected R/N@FD", err)
        _, err = self.run_program("train", *self.LONG, "--ranks-fd", "0/2@0", code=2)
        self.assertIn("descriptor 0 is no memory of 2 ranks", err)


if __name__ == "__main__":
    unittest.main()
