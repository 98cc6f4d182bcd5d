#!/usr/bin/python3
"""`trainscope launch`: ranks end together, whatever ends one of them.

Usage: launch_ends_test.py TRAINSCOPE
"""
import json
import os
import signal
import struct
import subprocess
import sys
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from launched_runs import MODELS, Case, children_of  # noqa: E402

# A rank that is killed is noticed within a second; the rest is for processes to end on a busy machine.
MOST_SECONDS_TO_END = 5


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

    def test_who_has_the_standard_error_of_a_rank_is_not_waited_for(self):
        process = self.start_long(2)
        with open(f"/proc/{children_of(process)[1]}/fd/2", "w") as standard_error:
            print("the last line", file=standard_error, flush=True)
            process.send_signal(signal.SIGINT)
            process.wait(timeout=20)
        self.assertEqual(process.returncode, 130)
        self.assertIn("rank 1: the last line", process.communicate()[1])

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
