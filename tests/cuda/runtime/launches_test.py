#!/usr/bin/python3
"""How often an optimizer's step launches kernels on a simulated GPU: launches_test.py BUILD_FOLDER

The norm of all gradients is two launches, an update of all parameters one, of LAMB three, however many tensors there
are. Exit code 77: the back end is not built.
"""
import csv
import json
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from simulated_gpu import call, expect, program, run_cases

STEPS = 3
FURTHEST = 2e-4  # the loss of a step from that of the CPU's kernels
# Parts of the names of kernels that a step launches once: of the norm, and by optimizer of the update.
NORM, ONE_UPDATE = ("sums_of_squares", "finish_norm"), ("update_tensors",)
LAMB = ("lamb_moments", "lamb_ratios", "lamb_move")
UPDATES = {"sgd": ONE_UPDATE, "adam": ONE_UPDATE, "adamw": ONE_UPDATE, "lamb": LAMB}
# By layers, of a weight and a bias each: of 40 tensors and of 318.
OPTIMIZERS = {20: tuple(UPDATES), 159: ("adamw", "lamb")}


def train(build, scratch, model, optimizer, device, **environment):
    """Losses and norms of the steps, and how often each kernel was launched or captured, by its mangled name."""
    folder = Path(tempfile.mkdtemp(dir=scratch))
    call([program(build), "train", model, "--data", "synthetic", "--seed", 3, "--steps", STEPS, "--validation", "none",
          "--clip", 0.01, "--optimizer", optimizer, "--device", device, "--run-dir", folder / "run"],
         TRAINSCOPE_SIMULATED_REPORT=folder / "report", **environment)
    with open(folder / "run/metrics.csv", encoding="utf-8") as file:
        rows = [(row["loss"], row["gradient_norm"]) for row in csv.DictReader(file) if row["kind"] == "step"]
    report = folder / "report"
    return rows, json.loads(report.read_text(encoding="utf-8"))["launches_of"] if report.is_file() else {}


def launches_of(counts, kernels):
    return [sum(count for name, count in counts.items() if kernel in name) for kernel in kernels]


def launches(build, scratch):
    """In a graph as by themselves, to the same bits, with the losses of the CPU."""
    for layers, optimizers in OPTIMIZERS.items():
        model = Path(scratch) / f"{layers}.onnx"
        call([program(build), "model", "mlp", "--dims", ",".join(["4"] * (layers + 1)), "--activation", "tanh",
              "--out", model])
        for optimizer in optimizers:
            own = UPDATES[optimizer]
            what = f"{2 * layers} tensors, {optimizer}"
            replayed, captured = train(build, scratch, model, optimizer, "cuda")
            alone, launched = train(build, scratch, model, optimizer, "cuda", CUDA_LAUNCH_BLOCKING=1)
            found = launches_of(captured, NORM + own)
            expect(f"{what}: kernels of a graph", found == [1] * len(found), str(found))
            found = launches_of(launched, NORM + own)
            expect(f"{what}: launches", found == [STEPS] * len(found), str(found))
            found = launches_of(launched, [kernel for kernel in ONE_UPDATE + LAMB if kernel not in own])
            expect(f"{what}: no other update", not any(found), str(found))
            expect(f"{what}: without graphs", len(replayed) == STEPS and replayed == alone)
            cpu, _ = train(build, scratch, model, optimizer, "cpu")
            apart = max(abs(float(a[0]) - float(b[0])) for a, b in zip(replayed, cpu))
            expect(f"{what}: losses of the CPU", len(cpu) == STEPS and apart <= FURTHEST, f"{apart:.2g}")


run_cases(launches)
