"""Runs of `trainscope launch` and of one process, in a folder of their own, for tests."""
import json
import os
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

MODELS = Path(__file__).resolve().parents[1] / "data/models"
PROGRAM = Path(sys.argv.pop()).resolve()  # the last word of the test's command line


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
