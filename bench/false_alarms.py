#!/usr/bin/env python3
"""Correct runs beside each other: `compare` must find nothing in their losses and tensors.

    bench/false_alarms.py [--models llama,unet,..] [--steps 10] [--out NAME] [--build BUILD]

Each model is trained for 10 steps on synthetic data with SGD and with AdamW, on one thread and on two,
recorded as the step runs and with all values, steps 1, 2, 5 and 10. Each of the three others is
compared with the run on two threads as the step runs. Beside a verdict stands the tensor that came nearest to its
limit. With --out writes bench/results/MONTH/DATE-NAME.md and .json.
"""
import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import measure

MODELS = {
    "llama": ["llama", "--layers", "2", "--heads", "4", "--kv-heads", "2", "--embedding", "64",
              "--vocab", "128", "--context", "32"],
    "gpt2": ["gpt2", "--layers", "2", "--heads", "4", "--embedding", "64", "--vocab", "128",
             "--context", "32"],
    "bert": ["bert", "--layers", "2", "--heads", "4", "--embedding", "64", "--vocab", "128",
             "--context", "32"],
    "unet": ["unet", "--image", "64", "--width", "16"],
    "resnet": ["resnet", "--size", "18", "--image", "64"],
    "lenet": ["lenet"],
    "vit": ["vit", "--layers", "2", "--heads", "4", "--embedding", "64", "--feed-forward", "256",
            "--image", "32", "--patch", "8", "--classes", "10"],
}
FLAGS = {"unet": ["--batch", "4"], "resnet": ["--batch", "4"], "lenet": ["--batch", "8"],
         "vit": ["--batch", "4"]}
TEXT = ["--batch", "4", "--seq", "32"]
OPTIMIZERS = {"sgd": ["--optimizer", "sgd", "--lr", "0.01"],
              "adamw": ["--optimizer", "adamw", "--lr", "0.001"]}
BASE = ("2", "fused")
OTHERS = [("1", "fused"), ("2", "all"), ("1", "all")]


class Sweep:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder

    def program(self, *words, codes=(0,)):
        done = subprocess.run([self.options.build / "bin/trainscope", *map(str, words)],
                              capture_output=True, text=True, check=False)
        if done.returncode not in codes:
            sys.exit(f"exit code {done.returncode}: {words}\n{done.stderr}")
        return done.stdout

    def train(self, model, optimizer, threads, values):
        run = self.folder / f"{model}-{optimizer}-{threads}-{values}"
        self.program("train", self.folder / f"{model}.onnx", "--data", "synthetic", "--steps",
                     self.options.steps, *FLAGS.get(model, TEXT), "--validation", "none",
                     "--threads", threads, "--record-numerics", "--record-values", values, "--quiet",
                     "--run-dir", run, *OPTIMIZERS[optimizer])
        return run

    def compared(self, base, other):
        facts = json.loads(self.program("compare", base, other, "--json", codes=(0, 9)))
        tensors = facts["tensors"]
        near = max(tensors["tensors"], key=lambda row: row["error"] / row["limit"]
                   if row["limit"] else 0.0)
        alone = len(tensors["only_a"]) + len(tensors["only_b"])
        return {"tensors": tensors["paired"], "alarms": tensors["faults"],
                "unaccounted": alone - tensors["accounted"],
                "loss_differs": bool(facts["loss"]["differs"]),
                "first": tensors["first"] and {key: tensors["first"][key] for key in
                                               ("step", "phase", "value", "op", "error", "limit")},
                "nearest": {"step": near["step"], "value": near["value"], "op": near["op"],
                            "share": near["error"] / near["limit"] if near["limit"] else 0.0}}

    def rows(self, model):
        self.program("model", *MODELS[model], "-o", self.folder / f"{model}.onnx", "-q")
        for optimizer in OPTIMIZERS:
            base = self.train(model, optimizer, *BASE)
            for threads, values in OTHERS:
                other = self.train(model, optimizer, threads, values)
                found = self.compared(base, other)
                yield {"model": model, "optimizer": optimizer, "threads": threads, "values": values,
                       **found}


def line_of(row):
    nearest = row["nearest"]
    first = row["first"]
    return [row["model"], row["optimizer"], row["threads"], row["values"], row["tensors"],
            row["alarms"], row["unaccounted"], "yes" if row["loss_differs"] else "no",
            f"{nearest['share']:.2f} of {nearest['value']} at step {nearest['step']}",
            f"step {first['step']}, {first['value']}" if first else ""]


HEAD = ["model", "optimizer", "threads", "values", "tensors", "alarms", "without a fate",
        "losses differ", "nearest to its limit", "first alarm"]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--build", type=Path, default=measure.ROOT / "build" / "release")
    parser.add_argument("--out", help="name of the report")
    options = parser.parse_args()
    rows = []
    for model in options.models.split(","):
        with tempfile.TemporaryDirectory() as folder:
            for row in Sweep(options, Path(folder)).rows(model):
                rows.append(row)
                print(*line_of(row), flush=True)
    silent = [row for row in rows if not row["alarms"] and not row["loss_differs"]]
    body = f"{len(silent)} of {len(rows)} comparisons are silent.\n\n"
    body += measure.table(HEAD, [line_of(row) for row in rows])
    if options.out:
        measure.write_report(options.out, "Correct runs beside each other", body, {"rows": rows})
    else:
        print(body)
    sys.exit(0 if len(silent) == len(rows) else 1)


if __name__ == "__main__":
    main()
