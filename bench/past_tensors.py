#!/usr/bin/env python3
"""`at`: are the tensors of past steps that it makes again those of a run that recorded them, bit for
bit?

    bench/past_tensors.py [--pairs 200] [--seed 1] [--out NAME] [--build BUILD]

Three models (a GPT with dropout, a ResNet with batch norms, LeNet) are trained twice for 20 steps with
the same words: once as a user does, with checkpoints but without a trace, once with
--record-numerics of every step. (Step, value) pairs are drawn from what the second recorded; `at`
makes each from the first, and the hashes of all bytes must be the same. Half of the pairs are of
names of the model that a fused node has swallowed too, which come from the step without fusions:
these are held against a third run, with --record-values all, and `at` must mark them.
With --out writes bench/results/MONTH/DATE-NAME.md and .json.
"""
import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import measure

sys.path.insert(0, str(measure.ROOT / "python"))
MODELS = measure.ROOT / "tests" / "data" / "models"
STEPS = 20
RUNS = {  # flags besides the common ones
    "gpt2-dropout": ["--lr", "0.001"],
    "resnet18": ["--lr", "0.001"],
    "lenet": ["--optimizer", "sgd", "--lr", "0.01"],
}


class Subject:
    """A model's three runs."""

    def __init__(self, options, name, folder):
        self.options, self.name, self.folder = options, name, folder
        self.train("plain")
        every = ["--record-numerics", "--record-steps", ",".join(map(str, range(1, STEPS + 1)))]
        self.train("fused", *every)
        self.train("all", *every, "--record-values", "all")
        self.fused, self.all = self.hashes("fused"), self.hashes("all")
        # What the step as it ran has no row of.
        renamed = self.renamed()
        self.swallowed = {place: value for place, value in self.all.items()
                          if place[1].startswith(("act:", "dact:")) and place not in self.fused
                          and place[1] not in renamed}

    def program(self, *words):
        return subprocess.run([self.options.build / "bin/trainscope", *map(str, words)],
                              capture_output=True, text=True, check=True).stdout

    def train(self, run, *flags):
        self.program("train", MODELS / self.name / "model.onnx", "--data", "synthetic", "--steps",
                     STEPS, "--save-every", 5, "--keep", 99, "--validation", "none", "--quiet",
                     "--threads", self.options.threads, "--run-dir", self.folder / run,
                     *RUNS[self.name], *flags)

    def trace(self, run):
        from trainscope.trace import TraceReader
        return TraceReader(self.folder / run)

    def hashes(self, run):
        """{(step, key): hash} of the first micro-batch's rows that have a name in the model."""
        return {(row.step, row.key()): row.hash for row in self.trace(run).rows
                if row.step > 0 and row.micro_batch == 0 and row.kind != "own"}

    def renamed(self):
        """Keys that are rows of other names in the step as it ran."""
        return {name.value for name in self.trace("fused").names if name.row}

    def check(self, place, expected, unfused):
        """Whether `at` gives the bits, and says truly where they come from."""
        step, key = place
        start = time.monotonic()
        facts = json.loads(self.program("at", self.folder / "plain", "--step", step, "--value", key,
                                        "--json"))
        equal = (int(facts["hash"], 16) == expected and facts["bitwise"]
                 and facts["unfused"] == unfused)
        return {"model": self.name, "step": step, "value": key, "unfused": unfused, "equal": equal,
                "seconds": round(time.monotonic() - start, 2)}


def pairs_of(subject, count, chance):
    """Half of what ran, half of what was swallowed, if there is so much."""
    places = [(place, value, False) for place, value in subject.fused.items()]
    swallowed = [(place, value, True) for place, value in subject.swallowed.items()]
    chosen = chance.sample(swallowed, min(count // 2, len(swallowed)))
    return chosen + chance.sample(places, count - len(chosen))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--build", type=Path, default=measure.ROOT / "build" / "release")
    parser.add_argument("--out", help="name of the report")
    options = parser.parse_args()
    chance = random.Random(options.seed)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for place, name in enumerate(RUNS):
            subject = Subject(options, name, Path(folder) / name)
            count = (place + 1) * options.pairs // len(RUNS) - place * options.pairs // len(RUNS)
            for pair in pairs_of(subject, count, chance):
                rows.append(subject.check(*pair))
                if not rows[-1]["equal"]:
                    print("OTHER BITS", rows[-1], flush=True)
    body = measure.table(
        ["model", "pairs", "the run's bits", "of these from the step without fusions", "seconds each"],
        [[name, len(own), sum(row["equal"] for row in own), sum(row["unfused"] for row in own),
          f"{sum(row['seconds'] for row in own) / max(1, len(own)):.2f}"]
         for name in RUNS for own in [[row for row in rows if row["model"] == name]]])
    print(body)
    if options.out:
        measure.write_report(options.out, "Tensors of past steps, made again", body, {"rows": rows})
    sys.exit(0 if all(row["equal"] for row in rows) else 1)


if __name__ == "__main__":
    main()
