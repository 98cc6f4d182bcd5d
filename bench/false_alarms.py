#!/usr/bin/env python3
"""Correct runs beside each other: `compare` must find nothing in their losses and tensors.

    bench/false_alarms.py [--models llama,unet,..] [--steps 10] [--out NAME] [--build BUILD]

Each model is trained for 10 steps on synthetic data with SGD and with AdamW: as usual, by the reference
kernels, without fusions where there are any, and where Winograd's form may be taken without that. Each of
the others is compared with the first, with all elements of steps 1, 2, 5 and 10 and of the steps before,
from which compare runs later steps again. A comparison in which all tensors are equal shows nothing, and
fails as an alarm does. Beside a verdict stand how many tensors differ and the one that came nearest to
its limit. With --out writes bench/results/MONTH/DATE-NAME.md and .json.
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
REFERENCE = ["--kernels", "reference"]
DIRECT = ["--kernels", "direct"]
FUSIONS = ["fuse_transpose", "fuse_gelu", "fuse_silu", "fuse_layer_norm", "fuse_rms_norm", "fuse_softmax",
           "fuse_rotary", "fuse_attention", "fuse_bias", "fuse_norm_relu", "merge_matmuls",
           "fuse_norm_grad_add", "fuse_matmul_add"]
UNFUSED = [word for name in FUSIONS for word in ("--disable", name)]
WINOGRAD = ["unet", "resnet"]  # convolutions of 3 x 3 with 64 channels
PLAIN = ["lenet"]  # in which nothing is fused


def others_of(model):
    """[(name, flags)] of the runs that are compared with the usual one."""
    unfused = [] if model in PLAIN else [("unfused", UNFUSED)]
    direct = [("direct", DIRECT)] if model in WINOGRAD else []
    return [("reference", REFERENCE), *unfused, *direct]


class Sweep:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder

    def program(self, *words, codes=(0,)):
        done = subprocess.run([self.options.build / "bin/trainscope", *map(str, words)],
                              capture_output=True, text=True, check=False)
        if done.returncode not in codes:
            sys.exit(f"exit code {done.returncode}: {words}\n{done.stderr}")
        return done.stdout

    def train(self, model, optimizer, name, flags):
        run = self.folder / f"{model}-{optimizer}-{name}"
        last = self.options.steps
        recorded = sorted({each for step in (1, 2, 5, last) if step <= last
                           for each in (step - 1, step) if each > 0})
        self.program("train", self.folder / f"{model}.onnx", "--data", "synthetic", "--steps",
                     self.options.steps, *FLAGS.get(model, TEXT), "--validation", "none",
                     "--threads", "2", "--record-numerics", "--record-steps",
                     ",".join(map(str, recorded)), "--record-full", "*", "--quiet",
                     "--run-dir", run, *OPTIMIZERS[optimizer], *flags)
        return run

    def compared(self, base, other):
        facts = json.loads(self.program("compare", base, other, "--json", codes=(0, 9)))
        tensors = facts["tensors"]
        near = max(tensors["tensors"], key=lambda row: row["error"] / row["limit"]
                   if row["limit"] else 0.0)
        alone = len(tensors["only_a"]) + len(tensors["only_b"])
        return {"tensors": tensors["paired"], "alarms": tensors["faults"],
                "differ": sum(row["verdict"] != "same" for row in tensors["tensors"]),
                "run_again": [each["step"] for each in tensors["limits"] if each["replayed"]],
                "unaccounted": alone - tensors["accounted"],
                "loss_differs": bool(facts["loss"]["differs"]),
                "first": tensors["first"] and {key: tensors["first"][key] for key in
                                               ("step", "phase", "value", "op", "error", "limit")},
                "nearest": {"step": near["step"], "value": near["value"], "op": near["op"],
                            "share": near["error"] / near["limit"] if near["limit"] else 0.0}}

    def rows(self, model):
        self.program("model", *MODELS[model], "-o", self.folder / f"{model}.onnx", "-q")
        for optimizer in OPTIMIZERS:
            base = self.train(model, optimizer, "usual", [])
            for name, flags in others_of(model):
                found = self.compared(base, self.train(model, optimizer, name, flags))
                yield {"model": model, "optimizer": optimizer, "other": name, **found}


def line_of(row):
    nearest = row["nearest"]
    first = row["first"]
    return [row["model"], row["optimizer"], row["other"], row["tensors"], row["differ"],
            row["alarms"], row["unaccounted"], "yes" if row["loss_differs"] else "no",
            f"{nearest['share']:.2f} of {nearest['value']} at step {nearest['step']}",
            f"step {first['step']}, {first['value']}" if first else ""]


HEAD = ["model", "optimizer", "the other", "tensors", "differ", "alarms", "without a fate",
        "losses differ", "nearest to its limit", "first alarm"]


def is_silent(row):
    return row["differ"] > 0 and not row["alarms"] and not row["loss_differs"]


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
    silent = [row for row in rows if is_silent(row)]
    body = f"{len(silent)} of {len(rows)} comparisons have tensors that differ, and are silent.\n\n"
    body += measure.table(HEAD, [line_of(row) for row in rows])
    if options.out:
        measure.write_report(options.out, "Correct runs beside each other", body, {"rows": rows})
    else:
        print(body)
    sys.exit(0 if len(silent) == len(rows) else 1)


if __name__ == "__main__":
    main()
