#!/usr/bin/env python3
"""Trainscope's own programs on a device: prints one JSON line a finding.

    ours.py STAGE --programs FOLDER [--device cuda|cpu] [--toy] [--models FOLDER]

Stages: self_test  every example of every op that the device has a kernel for, against the CPU in f64
        verify     each model of the folder against PyTorch's numbers, in f32, bf16 and fp16
        train      the same training twice, and on the CPU: bits, losses, bytes predicted and used
        ours       step times of the workloads that peers.py times, and where a step's time goes
FOLDER is where scripts/bundle.sh unpacks, or build/release/bin. --models: the folder `data` of a bundle.
Exit code 1: a program failed, which a line says too; the other findings are printed all the same.
"""
import argparse
import csv
import json
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from workloads import WORKLOADS

ROW = re.compile(r"(?P<status>ok|FAIL)\s+(?P<op>\S+)\s+(?P<type>b?f\d+|u?int\d+|bool)\s+(?P<kernel>\S+)"
                 r"\s+(?P<examples>\d+)\s+(?P<failed>\d+)\s+(?P<worst>\S+)")
# Of 16 bits, attention of these widths of a head runs on tensor cores.
HEAD_WIDTHS = (64, 100, 128)


class Programs:
    """The programs of a bundle, and a folder for what they write."""

    def __init__(self, args, scratch):
        self.args, self.scratch, self.failed = args, scratch, False
        self.runs = 0

    def printed_by(self, program, *words):
        """What the program printed, and whether it did well; if not, a line says so."""
        command = [str(self.args.programs / program), *map(str, words)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return done.stdout, True
        self.failed = True
        tell("error", what=" ".join([program, *map(str, words)]),
             error=f"exit code {done.returncode}: {(done.stderr or done.stdout)[-600:]}")
        return done.stdout, False

    def call(self, program, *words):
        """What the program printed; None where it failed."""
        printed, well = self.printed_by(program, *words)
        return printed if well else None

    def trainscope(self, *words):
        printed = self.call("trainscope", *words, "--json")
        return None if printed is None else json.loads(printed)

    def model(self, name, *words):
        path = self.scratch / f"{name}-{'-'.join(str(w).strip('-') for w in words)}.onnx"
        if not path.exists() and self.call("trainscope", "model", name, *words, "-o", path) is None:
            return None
        return path

    def train(self, model, *words, device=None):
        """A training: its JSON, with the steps' times in ms and losses beside."""
        self.runs += 1
        run = self.scratch / f"run-{self.runs}"
        result = self.trainscope("train", model, "--data", "synthetic", "--seed", 1, "--device",
                                 device or self.args.device, "--run-dir", run, "--validation", "none", *words)
        if result is None:
            return None
        with open(run / "metrics.csv", encoding="utf-8") as file:
            steps = [row for row in csv.DictReader(file) if row["kind"] == "step"]
        result["step_times"] = [float(row["step_ms"]) for row in steps]
        result["losses"] = [row["loss"] for row in steps]
        return result


def tell(kind, **values):
    print(json.dumps({"kind": kind, **values}), flush=True)


def self_test(programs):
    printed, _ = programs.printed_by("device_self_test", "--device", programs.args.device,
                                     *(("--op", "Gelu") if programs.args.toy else ()))
    rows = [match.groupdict() for match in map(ROW.match, printed.splitlines()) if match]
    if not rows:
        programs.failed = True
        tell("error", what="device_self_test", error=f"no row in what it printed: {printed[-600:]}")
        return
    tell("self_test", rows=len(rows), examples=sum(int(row["examples"]) for row in rows),
         failed=sum(int(row["failed"]) for row in rows),
         worst_of_limit=max(float(row["worst"]) for row in rows))
    for row in rows:
        if row["failed"] != "0" or row["op"].startswith("Attention"):
            tell("self_test_row", op=row["op"], type=row["type"], kernel=row["kernel"],
                 examples=int(row["examples"]), failed=int(row["failed"]),
                 worst_of_limit=float(row["worst"]))


def verify(programs):
    folders = sorted(path.parent for path in programs.args.models.glob("*/meta.json"))
    if not folders:
        tell("absent", what="verify", why=f"no model in {programs.args.models}")
    for folder in folders[:1] if programs.args.toy else folders:
        for precision in ("f32", "bf16", "fp16"):
            result = programs.trainscope("verify", folder, "--device", programs.args.device,
                                         "--precision", precision)
            if result is None:
                continue
            rows = [row for reference in result["references"] for row in reference["rows"]]
            tell("verify", model=folder.name, precision=precision, rows=len(rows),
                 beyond=sum(not row["ok"] for row in rows),
                 worst_of_limit=max(row["error"] / row["limit"] for row in rows if row["limit"]))


def tell_training(programs, what, model, *words):
    """Twice on the device, once on the CPU."""
    if model is None:
        return
    first = programs.train(model, *words)
    again = programs.train(model, *words)
    cpu = programs.train(model, *words, device="cpu")
    if first and again and cpu:
        tell("training", what=what, precision=words[-1], same_bits=first["losses"] == again["losses"],
             last_loss=first["last_loss"], last_loss_cpu=cpu["last_loss"],
             furthest=max(abs(float(a) - float(b)) for a, b in zip(first["losses"], cpu["losses"])),
             predicted_bytes=first["predicted_bytes"], used_bytes=first["used_bytes"])


def train(programs):
    sizes = ("--batch", 4, "--seq", 72, "--steps", 3 if programs.args.toy else 12, "--precision")
    for width in HEAD_WIDTHS[:1] if programs.args.toy else HEAD_WIDTHS:
        for dropout in (0, 0.1):
            model = programs.model("gpt2", "--layers", 2, "--heads", 2, "--embedding", 2 * width,
                                   "--vocab", 256, "--context", 128, "--dropout", dropout)
            for precision in ("f32", "bf16", "fp16"):
                tell_training(programs, f"GPT-2, heads of {width}, dropout {dropout}", model, *sizes,
                              precision)


# A workload of workloads.py: the model by `trainscope model`, its batch and precisions.
def gpt2(sizes, layers, heads):
    return ("gpt2", "--layers", layers, "--heads", heads, "--embedding", sizes["width"], "--vocab",
            sizes["vocab"], "--context", sizes["context"])


def tell_time(programs, workload, words, batch, length, precision):
    toy = programs.args.toy
    model = programs.model(*words)
    if model is None:
        return
    shape = ("--batch", batch, *(("--seq", length) if length else ()))
    result = programs.train(model, *shape, "--steps", 4 if toy else 14, "--precision", precision)
    if result is None:
        return
    times = result["step_times"][2 if toy else 4:]
    middle = statistics.median(times)
    tell("ours", workload=f"toy {workload}" if toy else workload, precision=precision, batch=batch, length=length,
         step_ms=middle, step_ms_min=min(times), step_ms_max=max(times),
         samples_per_s=round(1e3 * batch / middle, 2),
         tokens_per_s=round(1e3 * batch * length / middle, 1) if length else None,
         peak_mib=round(result["used_bytes"] / 2**20, 1), predicted_bytes=result["predicted_bytes"],
         used_bytes=result["used_bytes"], loss_first=result["first_loss"],
         loss_last=result["last_loss"])


def tell_ops(programs, workload, *words):
    """Time by op and phase of a bench workload, the longest first."""
    result = programs.trainscope("bench", workload, "--device", programs.args.device, "--steps", 4,
                                 "--op-times", programs.scratch / f"{workload}.csv", *words)
    if result is None:
        return
    groups = {}
    for row in result["ops"]:
        groups.setdefault((row["op"], row["phase"], row["kernel"]), []).append(row)
    for (name, phase, kernel), rows in sorted(groups.items(), key=lambda g: -sum(r["ms"] for r in g[1])):
        ms = sum(row["ms"] for row in rows)
        tell("ours_op", workload=" ".join(map(str, (workload, *words))), op=name, phase=phase,
             kernel=kernel, calls=len(rows), ms=round(ms, 4),
             tflops=round(sum(row["kernel_flops"] for row in rows) / max(ms, 1e-6) / 1e9, 2),
             gb_per_s=round(sum(row["kernel_bytes"] for row in rows) / max(ms, 1e-6) / 1e6, 1))


def ours(programs):
    if programs.args.toy:
        small = ("gpt2", "--layers", 2, "--heads", 4, "--embedding", 64, "--vocab", 128, "--context", 64)
        tell_time(programs, "g1", small, 2, 32, "bf16")
        tell_ops(programs, "w1-sgd")
        return
    g1, g2 = WORKLOADS["g1"], WORKLOADS["g2"]
    tell_time(programs, "g1", gpt2(g1, 12, 12), g1["batch"], g1["length"], "bf16")
    tell_ops(programs, "w4", "--batch", 8, "--seq", 1024, "--dtype", "bf16")
    tell_time(programs, "g2", gpt2(g2, g2["layers"], g2["heads"]), g2["batch"], g2["length"], "bf16")
    tell_time(programs, "g1", gpt2(g1, 12, 12), g1["batch"], g1["length"], "f32")
    for workload in ("w1-adamw", "w2-resnet18", "w3", "w5"):
        for dtype in ("f32", "bf16"):
            result = programs.trainscope("bench", workload, "--device", programs.args.device,
                                         "--steps", 10, "--dtype", dtype)
            if result:
                tell("ours", workload=workload, precision=dtype, step_ms=result["step_ms"],
                     samples_per_s=result["samples_per_s"],
                     peak_mib=round(result["used_bytes"] / 2**20, 1))


STAGES = {"self_test": self_test, "verify": verify, "train": train, "ours": ours}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stage", choices=STAGES)
    parser.add_argument("--programs", type=Path, required=True)
    parser.add_argument("--models", type=Path)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--toy", action="store_true", help="the same path at a size for a CPU")
    args = parser.parse_args()
    args.programs = args.programs.resolve()
    args.models = args.models or args.programs / "data"
    with tempfile.TemporaryDirectory() as scratch:
        programs = Programs(args, Path(scratch))
        STAGES[args.stage](programs)
    sys.exit(1 if programs.failed else 0)


if __name__ == "__main__":
    main()
