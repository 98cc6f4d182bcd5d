#!/usr/bin/python3
"""However a session ends, its record says so: failures at every point, signals, no more threads.

Usage: sessions_test.py TRAINSCOPE THROWING_FSYNC, the latter a library to preload. Root
is exempt from limits on threads: as root the cases of threads run as another user.
"""
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

MODELS = Path(__file__).resolve().parents[1] / "data/models"
THROWING_FSYNC = Path(sys.argv.pop()).resolve()
PROGRAM = Path(sys.argv.pop()).resolve()
# Of nobody, and not of a test that runs at the same time.
OTHER_USER = 1_000_000 + os.getpid()
EXIT_CODES = {signal.SIGINT: 130, signal.SIGTERM: 143}


def sessions(run_folder):
    return json.loads((run_folder / "manifest.json").read_text())["sessions"]


def wait_until(is_so, process):
    """False when the process ended first."""
    while not is_so():
        if process.poll() is not None:
            return False
        time.sleep(0.002)
    return True


def catches(process, number):
    """Whether the process has a handler for the signal."""
    try:
        status = Path(f"/proc/{process.pid}/status").read_text()
    except FileNotFoundError:
        return False
    caught = next(line for line in status.splitlines() if line.startswith("SigCgt:"))
    return int(caught.split()[1], 16) >> (number - 1) & 1 == 1


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="trainscope-sessions-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def run_program(self, *words, **options):
        return subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True,
                              cwd=self.folder, **options)

    def check_one_error(self, done, code, message):
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual(done.stderr.count("error: "), 1, done.stderr)
        self.assertIn(f"error: {message}", done.stderr)

    def check_last_session(self, run_folder, **wanted):
        last = sessions(run_folder)[-1]
        self.assertEqual({key: last[key] for key in wanted}, wanted)
        self.assertNotEqual(last["end_time"], "")


class Failures(Case):
    def words(self, steps, model="mlp"):
        return ["train", MODELS / model / "model.onnx", "--data", "synthetic", "--steps", steps,
                "--threads", "1", "-q", "--run-dir", "r", "--resume", "auto"]

    def run_with_file_limit(self, size_bytes, words):
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, size_bytes))
        return self.run_program(*words, preexec_fn=limit)

    def check_failed_write(self, done, **wanted):
        self.check_one_error(done, 6, "cannot write ")
        self.check_last_session(self.folder / "r", status="failed", exit_code=6, **wanted)
        message = sessions(self.folder / "r")[-1]["message"]
        self.assertIn(message, done.stderr)
        self.assertIn("File too large", message)

    def test_as_the_session_begins(self):
        """Its first line of metrics.jsonl, after the manifest says that it has begun."""
        self.assertEqual(self.run_program(*self.words(100)).returncode, 0)
        metrics_bytes = (self.folder / "r/metrics.jsonl").stat().st_size
        self.assertGreater(metrics_bytes, 2 * (self.folder / "r/manifest.json").stat().st_size)
        done = self.run_with_file_limit(metrics_bytes, self.words(101))
        self.check_failed_write(done, from_step=100)

    def test_before_the_first_step(self):
        """The stages: the manifest is smaller."""
        self.check_failed_write(self.run_with_file_limit(5000, self.words(2, "lenet")), last_step=0)

    def test_what_is_no_error_of_ours(self):
        """Thrown from writes of the session's begin, its steps and its end."""
        options = os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"
        failed = 0
        for call in [*range(1, 13), *range(13, 1000, 8)]:
            shutil.rmtree(self.folder / "r", ignore_errors=True)
            done = self.run_program(*self.words(2), "--save-every", "1", env={
                **os.environ, "LD_PRELOAD": str(THROWING_FSYNC), "THROW_AT": str(call),
                "ASAN_OPTIONS": options})
            if done.returncode == 0:
                break
            self.check_one_error(done, 1, "thrown by fsync")
            if (self.folder / "r/manifest.json").exists():
                self.check_last_session(self.folder / "r", status="failed", exit_code=1,
                                        message="thrown by fsync")
                failed += 1
        self.assertEqual(done.returncode, 0)
        self.assertGreater(failed, 5)


class Threads(Case):
    """The limit counts the processes and threads of a user."""

    def setUp(self):
        super().setUp()
        shutil.copy(PROGRAM, self.folder / "program")
        shutil.copy(MODELS / "mlp/model.onnx", self.folder / "model.onnx")
        self.folder.chmod(0o777)

    def run_limited(self, limit, *words):
        def become():
            if os.geteuid() == 0:
                os.setgid(OTHER_USER)
                os.setuid(OTHER_USER)
            resource.setrlimit(resource.RLIMIT_NPROC, (limit, limit))

        # The leak checker of a sanitizer build would want a thread of its own.
        options = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
        return subprocess.run([self.folder / "program", *map(str, words)], capture_output=True,
                              text=True, cwd=self.folder, preexec_fn=become,
                              env={**os.environ, "ASAN_OPTIONS": options})

    def train(self, limit, threads, run_folder):
        return self.run_limited(limit, "train", "model.onnx", "--data", "synthetic", "--steps", "2",
                                "--threads", threads, "-q", "--run-dir", run_folder)

    def test_no_pool(self):
        done = self.train(1, 4, "r")
        self.check_one_error(done, 5, "cannot start 4 threads: Resource temporarily unavailable")
        self.assertIn("  try: --threads 1", done.stderr)
        self.assertFalse((self.folder / "r").exists())

    def test_no_pool_in_other_verbs(self):
        shutil.copytree(MODELS / "mlp", self.folder / "mlp")
        for words in (["eval", "model.onnx", "--data", "synthetic"], ["verify", "mlp"]):
            done = self.run_limited(1, *words, "--threads", "4")
            self.check_one_error(done, 5, "cannot start 4 threads: ")

    def test_no_thread_to_read_batches(self):
        done = self.train(1, 1, "r")
        self.check_one_error(done, 5, "cannot start the thread that reads batches: ")
        self.check_last_session(self.folder / "r", status="failed", exit_code=5, last_step=0)

    def test_a_plan_is_made_without_helpers(self):
        done = self.run_limited(1, "plan", "model.onnx", "--threads", "4")
        self.assertEqual(done.returncode, 0, done.stderr)

    @unittest.skipUnless(os.geteuid() == 0, "the limit counts this user's other processes too")
    def test_every_limit(self):
        enough = 5  # the pool of four and the thread that reads batches
        for limit in range(1, enough + 1):
            run_folder = self.folder / f"r{limit}"
            done = self.train(limit, 4, run_folder)
            if limit >= enough:
                self.assertEqual(done.returncode, 0, done.stderr)
                continue
            self.check_one_error(done, 5, "cannot start ")
            if run_folder.exists():
                self.check_last_session(run_folder, status="failed", exit_code=5)


class Signals(Case):
    def setUp(self):
        super().setUp()
        dims = ",".join(["4"] * 1500)
        done = self.run_program("model", "mlp", "--dims", dims, "-o", "deep.onnx")
        self.assertEqual(done.returncode, 0, done.stderr)

    def start(self, *words):
        self.out = tempfile.TemporaryFile("w+")  # a pipe that nobody reads would fill
        self.addCleanup(self.out.close)
        process = subprocess.Popen([PROGRAM, *map(str, words)], stdout=self.out, stderr=self.out,
                                   cwd=self.folder)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.assertTrue(wait_until(lambda: catches(process, signal.SIGTERM), process))
        return process

    def stop(self, process, number):
        """Seconds from the signal to the end, and what the program wrote."""
        begin = time.monotonic()
        process.send_signal(number)
        code = process.wait()
        seconds = time.monotonic() - begin
        self.out.seek(0)
        out = self.out.read()
        self.assertEqual(code, EXIT_CODES[number], out)
        return seconds, out

    def test_at_once_in_every_long_verb(self):
        train = ["train", "deep.onnx", "--data", "synthetic", "--steps", "1", "-q", "--run-dir", "r"]
        for number in EXIT_CODES:
            for words in (["check", "deep.onnx"], ["plan", "deep.onnx"], train,
                          [*train, "--max-overhead", "10%"]):
                self.stop(self.start(*words), number)
                self.assertEqual(os.listdir(self.folder), ["deep.onnx"])

    def test_before_the_first_step(self):
        """At several moments of importing, planning and writing the stages."""
        words = ["train", "deep.onnx", "--data", "synthetic", "--steps", "1", "--threads", "1", "-q",
                 "--run-dir"]
        run_folder = self.folder / "whole"
        begin = time.monotonic()
        process = self.start(*words, run_folder)
        self.assertTrue(wait_until((run_folder / "manifest.json").exists, process))
        planned_s = time.monotonic() - begin
        self.assertTrue(wait_until((run_folder / "stages/stages.json").exists, process))
        _, out = self.stop(process, signal.SIGTERM)
        self.assertTrue(out.startswith("stopped after step 0 of 1; "), out)
        self.assertNotIn("\nmodel ", out)
        self.check_stopped_before_a_step(run_folder)
        stages = json.loads((run_folder / "stages/stages.json").read_text())["stages"]
        self.assertNotIn("optimizer_step", [stage["name"] for stage in stages])
        for part in (0.2, 0.6):
            run_folder = self.folder / f"part-{part}"
            process = self.start(*words, run_folder)
            time.sleep(part * planned_s)
            seconds, _ = self.stop(process, signal.SIGINT)
            self.assertLess(seconds, 0.5 * planned_s)  # at 0.2 the rest takes longer
            if run_folder.exists():  # planning was faster this time
                self.check_stopped_before_a_step(run_folder)

    def check_stopped_before_a_step(self, run_folder):
        self.check_last_session(run_folder, status="interrupted", last_step=0)
        self.assertEqual(os.listdir(run_folder / "checkpoints"), [])
        self.assertFalse((run_folder / "model.onnx").exists())


if __name__ == "__main__":
    unittest.main()
