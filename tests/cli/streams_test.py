#!/usr/bin/python3
"""Standard streams that the caller closed: runs are whole, and no file gets what is meant for them.

Usage: streams_test.py TRAINSCOPE.
"""
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

MODEL = Path(__file__).resolve().parents[1] / "data/models/lenet/model.onnx"
PROGRAM = Path(sys.argv.pop()).resolve()
CLOSINGS = ["<&-", ">&-", "2>&-"]


def files_of(run_folder):
    """Bytes of the files that do not hold times, by name."""
    timed = {"manifest.json", "log.jsonl", "metrics.jsonl", "metrics.csv", "stages.json"}
    return {path.relative_to(run_folder): path.read_bytes()
            for path in run_folder.rglob("*") if path.is_file() and path.name not in timed
            and path.parent.parent.name != "checkpoints"}


class Streams(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="trainscope-streams-")
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)

    def run_with(self, closings, *words):
        script = f'exec "$@" {" ".join(closings)}'
        return subprocess.run(["sh", "-c", script, "sh", PROGRAM, *map(str, words)],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              cwd=self.folder)

    def train(self, closings, run_folder):
        done = self.run_with(closings, "train", MODEL, "--data", "synthetic", "--steps", "3",
                             "--eval-every", "2", "--save-every", "1", "--threads", "1",
                             "--progress", "plain", "--run-dir", run_folder)
        self.assertEqual(done.returncode, 0, (closings, done.stderr))
        return done

    def lines(self, path):
        return [json.loads(line) for line in path.read_text().splitlines()]

    def test_every_combination(self):
        whole = self.folder / "run-open"
        self.train([], whole)
        for closed in range(1, 8):
            closings = [text for bit, text in enumerate(CLOSINGS) if closed >> bit & 1]
            with self.subTest(closings=closings):
                run_folder = self.folder / f"run-{closed}"
                done = self.train(closings, run_folder)
                self.assertEqual(done.stdout == "", ">&-" in closings)
                self.assertEqual(done.stderr == "", "2>&-" in closings)
                self.check_same(run_folder, whole)
                done = self.run_with(closings, "inspect", run_folder, "--json")
                self.assertEqual(done.returncode, 0, done.stderr)
                if ">&-" not in closings:
                    json.loads(done.stdout)

    def check_same(self, run_folder, whole):
        self.assertEqual(files_of(run_folder), files_of(whole))
        for name in ("log.jsonl", "metrics.jsonl"):
            records = self.lines(run_folder / name)
            self.assertEqual(len(records), len(self.lines(whole / name)))
        self.assertEqual([path.name for path in sorted((run_folder / "checkpoints").iterdir())],
                         [path.name for path in sorted((whole / "checkpoints").iterdir())])
        for name in ("model", "optimizer"):
            state = f"checkpoints/step-00000003/{name}.safetensors"
            self.assertEqual((run_folder / state).read_bytes(), (whole / state).read_bytes())
        sessions = json.loads((run_folder / "manifest.json").read_text())["sessions"]
        self.assertEqual([session["status"] for session in sessions], ["finished"])

    def test_errors_keep_their_codes(self):
        for closings in (["2>&-"], [">&-", "2>&-"], CLOSINGS):
            done = self.run_with(closings, "inspect", "absent.onnx", "--json")
            self.assertEqual(done.returncode, 6, closings)
            if ">&-" not in closings:
                self.assertEqual(json.loads(done.stdout)["error"]["code"], 6)


if __name__ == "__main__":
    unittest.main()
