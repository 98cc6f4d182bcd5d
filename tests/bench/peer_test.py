#!/usr/bin/python3
"""bench/torch_peer.py does the work that `trainscope bench` does: parameters, FLOPs, first loss.

Usage: peer_test.py TRAINSCOPE. Exit code 77 (skipped) without PyTorch.
"""
import importlib.util
import json
import os
import subprocess
import sys
import unittest
from pathlib import Path

if importlib.util.find_spec("torch") is None:
    print("skipped: PyTorch is not installed")
    sys.exit(77)

PEER = Path(__file__).resolve().parents[2] / "bench" / "torch_peer.py"
PROGRAM = sys.argv.pop()


def result_of(*command):
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


class Peer(unittest.TestCase):
    def compare(self, workload, *sizes):
        words = [workload, "--batch", "2", "--steps", "1", "--threads", "1", *sizes]
        ours = result_of(PROGRAM, "bench", *words, "--json")
        theirs = result_of(sys.executable, PEER, *words)
        self.assertEqual(ours["parameters"], theirs["parameters"])
        self.assertAlmostEqual(ours["gflop_per_step"], theirs["gflop_per_step"], places=3)
        self.assertEqual(ours["batch"], theirs["batch"])
        self.assertAlmostEqual(ours["loss_first"], theirs["loss_first"], delta=1.0)
        for key in ("step_ms", "step_ms_min", "step_ms_max", "gflops", "peak_rss_mb",
                    "samples_per_s"):
            self.assertGreater(ours[key], 0.0)
            self.assertGreater(theirs[key], 0.0)

    def test_mlp(self):
        self.compare("w1-sgd")
        self.compare("w1-adamw")

    def test_convolutions(self):
        self.compare("w2-lenet")
        self.compare("w2-resnet18")

    def test_transformers(self):
        self.compare("w3", "--seq", "16")
        self.compare("w5", "--seq", "16")

    @unittest.skipUnless(os.environ.get("TRAINSCOPE_ALL_WORKLOADS"), "TRAINSCOPE_ALL_WORKLOADS: a minute")
    def test_the_large_transformer(self):
        self.compare("w4", "--seq", "8")

    def test_recurrent_layers(self):
        self.compare("w6-lstm", "--seq", "8")

    def test_the_workloads_are_the_same_everywhere(self):
        sys.path.insert(0, str(PEER.parent))
        import compare
        import torch_peer
        self.assertEqual(sorted(torch_peer.WORKLOADS), sorted(compare.STEPS))
        done = subprocess.run([PROGRAM, "bench", "none"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        listed = done.stderr.split("one of ")[1].split()
        self.assertEqual(sorted(name.strip(",.") for name in listed), sorted(compare.STEPS))


if __name__ == "__main__":
    unittest.main()
