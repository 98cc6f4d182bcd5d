#!/usr/bin/python3
"""However a session ends, its record says so: failures at every point, no more threads.

Usage: sessions_test.py TRAINSCOPE THROWING_FSYNC, the latter a library to preload. Root
is exempt from limits on threads: as root the cases of threads run as another user.
"""
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

MODELS = Path(__file__).resolve().parents[1] / "data/models"
THROWING_FSYNC = Path(sys.argv.pop()).resolve()
PROGRAM = Path(sys.argv.pop()).resolve()
# Of nobody, and not of a test that runs at the same time.
OTHER_USER = 1_000_000 + os.getpid()


def sessions(run_folder):
    return json.loads((run_folder / "manifest.json").read_text())["sessions"]


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
        for call in range(1, 1000, 8):
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

        return subprocess.run([self.folder / "program", *map(str, words)], capture_output=True,
                              text=True, cwd=self.folder, preexec_fn=become)

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


if __name__ == "__main__":
    unittest.main()
