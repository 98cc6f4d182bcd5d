#!/usr/bin/python3
"""The CUDA back end as it ships trains on a simulated GPU: training_test.py BUILD_FOLDER CASE

The programs in BUILD_FOLDER/simulated/bin load it with a simulated CUDA runtime below it. CASE is a function of
this file, or empty for all of them. Exit code 77: the back end is not built.
"""
import csv
import json
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from simulated_gpu import MODELS, call, expect, program, run_cases

NAMES = ("gpt2", "bert", "resnet18", "lstm")
VERIFIED = (*NAMES, "gru", "rnn")
STEPS = 20
# Of the loss of a step, against that of the CPU's own kernels: in f32, and where activations have two bytes.
FURTHEST = 2e-4
FURTHEST_OF = {"bf16": 2e-3, "fp16": 5e-4}
# Who computes these ops, by model and precision. BERT's heads have 12 elements, which cuDNN refuses.
ATTENTION = ("Attention", "AttentionGrad")
CONVOLUTIONS = ("Conv", "ConvGradInput", "ConvGradWeight")
CHOSEN = {("gpt2", "bf16"): (ATTENTION, ".cudnn"), ("gpt2", "fp16"): (ATTENTION, ".cudnn"),
          ("llama", "bf16"): (ATTENTION, ".cudnn"), ("bert", "bf16"): (ATTENTION, ".tensor"),
          ("resnet18", "f32"): (CONVOLUTIONS, ".cudnn"), ("resnet18", "bf16"): (CONVOLUTIONS, ".cudnn"),
          ("resnet18", "fp16"): (CONVOLUTIONS, ".cudnn")}


class Training:
    """A run of `trainscope train`, with what the simulated runtime counted."""

    def __init__(self, build, scratch, model, *words, device="cuda", steps=STEPS, before=(), **environment):
        folder = Path(tempfile.mkdtemp(dir=scratch))
        command = [program(build), *before, "train", MODELS / model / "model.onnx", "--data", "synthetic",
                   "--seed", 3, "--device", device, "--steps", steps, "--validation", "none",
                   "--run-dir", folder / "run", *words, "--json"]
        if not before:  # several processes would write one file
            environment["TRAINSCOPE_SIMULATED_REPORT"] = folder / "report"
        self.result = json.loads(call(command, **environment).stdout)
        with open(folder / "run/metrics.csv", encoding="utf-8") as file:
            self.losses = [row["loss"] for row in csv.DictReader(file) if row["kind"] == "step"]
        report = folder / "report"
        self.counts = json.loads(report.read_text()) if report.is_file() else {}


def verified(build, _):
    """PyTorch's numbers, within the limits that the CPU's kernels have."""
    for name in VERIFIED:
        result = json.loads(call([program(build), "verify", MODELS / name, "--device", "cuda", "--json"]).stdout)
        rows = [row for reference in result["references"] for row in reference["rows"]]
        expect(f"{name}: verify", len(rows) > 0 and all(row["ok"] for row in rows), f"{len(rows)} rows")


def trained(build, scratch):
    """Twenty steps: losses of the CPU, the bytes that were predicted, and no wait within a step."""
    for name in NAMES:
        cuda = Training(build, scratch, name)
        cpu = Training(build, scratch, name, device="cpu")
        furthest = max(abs(float(a) - float(b)) for a, b in zip(cuda.losses, cpu.losses))
        expect(f"{name}: losses", len(cuda.losses) == STEPS and furthest <= FURTHEST, f"{furthest:.2g}")
        expect(f"{name}: bytes", cuda.result["predicted_bytes"] == cuda.result["used_bytes"])
        expect(f"{name}: graphs", cuda.counts["graph_launches"] > STEPS, str(cuda.counts))


def ordered(build, scratch):
    """Whatever order CUDA allows, and whether a step is replayed or queued call by call: the same bits."""
    for name in NAMES:
        first = Training(build, scratch, name, steps=4)
        for seed in (1, 2, 3):
            other = Training(build, scratch, name, steps=4, TRAINSCOPE_SIMULATED_SEED=seed)
            expect(f"{name}: seed {seed}", first.losses == other.losses)
        eager = Training(build, scratch, name, steps=4, CUDA_LAUNCH_BLOCKING=1)
        expect(f"{name}: without graphs", first.losses == eager.losses and eager.counts["graphs"] == 0)


def waits(build, scratch):
    """The host waits for its own copies alone: a step's inputs, and the loss. Nothing is allocated."""
    for name in NAMES:
        few, many = (Training(build, scratch, name, steps=steps).counts for steps in (4, 12))
        waits_a_step, copies_a_step = ((many[what] - few[what]) / 8 for what in ("host_waits", "copies"))
        expect(f"{name}: waits", waits_a_step <= copies_a_step + 1 <= 8, f"{waits_a_step} a step")
        expect(f"{name}: allocations", many["allocations"] == few["allocations"])


def calls_of(build, model, precision, **environment):
    """The step's calls, as they are planned."""
    command = [program(build), "inspect", MODELS / model / "model.onnx", "--calls", "--device", "cuda",
               "--precision", precision, "--json"]
    return json.loads(call(command, **environment).stdout)["calls"]


def chosen(build, _):
    """Attention of two bytes and convolutions are cuDNN's, own kernels' where it has no engine and where it is off."""
    if not (build / "simulated/lib/libcudnn.so.9").is_file():
        print("skipped: this build has no cuDNN")
        return
    for (name, precision), (ops, ending) in CHOSEN.items():
        calls = [each for each in calls_of(build, name, precision) if each["op"] in ops]
        kernels = sorted({each["kernel"] for each in calls})
        expect(f"{name} {precision}: kernels", {each["op"] for each in calls} == set(ops) and
               all(kernel.endswith(ending) for kernel in kernels), ", ".join(kernels))
        if ending != ".cudnn":
            reasons = {refusal["reason"] for each in calls for refusal in each["refused"]}
            expect(f"{name} {precision}: why not cuDNN", any("cuDNN has no engine" in why for why in reasons),
                   "; ".join(sorted(reasons)))
        without = calls_of(build, name, precision, TRAINSCOPE_CUDNN="off")
        expect(f"{name} {precision}: without it", not any("cudnn" in each["kernel"] for each in without))


def low_precision(build, scratch):
    """Two bytes an activation: the CPU's losses, the bytes that were predicted, the same bits each time."""
    for name, precision in CHOSEN:
        if precision == "f32":
            continue
        words = ("--precision", precision)
        cuda = Training(build, scratch, name, *words, steps=4)
        cpu = Training(build, scratch, name, *words, device="cpu", steps=4)
        furthest = max(abs(float(a) - float(b)) for a, b in zip(cuda.losses, cpu.losses))
        expect(f"{name} {precision}: losses", len(cuda.losses) == 4 and furthest <= FURTHEST_OF[precision],
               f"{furthest:.2g}")
        expect(f"{name} {precision}: bytes", cuda.result["predicted_bytes"] == cuda.result["used_bytes"])
        other = Training(build, scratch, name, *words, steps=4, TRAINSCOPE_SIMULATED_SEED=1)
        expect(f"{name} {precision}: another order", cuda.losses == other.losses)
        eager = Training(build, scratch, name, *words, steps=4, CUDA_LAUNCH_BLOCKING=1)
        expect(f"{name} {precision}: without graphs", cuda.losses == eager.losses and eager.counts["graphs"] == 0)


def interpreted(build, scratch):
    """A step through the PTX that nvcc made of own kernels: the emulator's bits."""
    texts = build / "tests/ptx/strict"
    for name in NAMES:
        words = ("--disable", "fuse_attention")  # there is no text of attention in f32
        own = {"steps": 1, "TRAINSCOPE_CUDNN": "off"}
        emulated = Training(build, scratch, name, *words, **own)
        through_ptx = Training(build, scratch, name, *words, **own, TRAINSCOPE_SIMULATED_PTX=texts)
        expect(f"{name}: PTX", emulated.losses == through_ptx.losses)


def ranks(build, scratch):
    """Data-parallel ranks, each with a GPU, through NCCL."""
    for count in (2, 4):
        one = Training(build, scratch, "gpt2", "--accumulate", count, steps=4)
        several = Training(build, scratch, "gpt2", steps=4, before=("launch", "-n", count, "--"))
        expect(f"{count} ranks", one.losses == several.losses)


run_cases(verified, trained, ordered, waits, chosen, low_precision, interpreted, ranks)
