#!/usr/bin/env python3
"""Trainscope's own programs on a device: prints one JSON line a finding.

    ours.py STAGE --programs FOLDER [--device cuda|cpu] [--toy] [--models FOLDER] [--files FOLDER]

Stages: self_test  every example of every op that the device has a kernel for, against the CPU in f64
        verify     each model of the folder against PyTorch's numbers, in f32, bf16 and fp16, on a GPU in TF32, too
        train      the same training twice, and on the CPU: bits, losses, bytes predicted and used
        ours       step times of g1 and g2, which peers.py times too, and of the standard workloads;
                   where a step's time goes
        g3 g4 g5   step times of these; of g3 by LAMB and of its second phase, too
        profiles   steps of g1 profiled: what it costs, the longest nodes, and exports in --files
FOLDER is where scripts/bundle.sh unpacks, or build/release/bin. --models: the folder `data` of a bundle.
Exit code 1: a program failed, which a line says too; the other findings are printed all the same.
"""
import argparse
import gzip
import json
import re
import statistics
import sys
import tempfile
from pathlib import Path

from programs import Programs, tell
from workloads import sizes_of

ROW = re.compile(r"(?P<status>ok|FAIL)\s+(?P<op>\S+)\s+(?P<type>b?f\d+|u?int\d+|bool)\s+(?P<kernel>\S+)"
                 r"\s+(?P<examples>\d+)\s+(?P<failed>\d+)\s+(?P<worst>\S+)")
# Of 16 bits, attention of these widths of a head runs on tensor cores.
HEAD_WIDTHS = (64, 100, 128)
NODES_SHOWN = 20
# Formats of `trainscope export` that other tools read, and how their files' names end.
EXPORTS = (("chrome", "json.gz"), ("speedscope", "json.gz"), ("pprof", "pb.gz"))
PRECISIONS_OF_CPU = ("f32", "bf16", "fp16")
PRECISIONS = ("f32", "tf32", "bf16", "fp16")


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
        for precision in PRECISIONS if programs.args.device != "cpu" else PRECISIONS_OF_CPU:
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
    toy = programs.args.toy
    sizes = (("--batch", 2, "--seq", 24, "--steps", 2) if toy else ("--batch", 4, "--seq", 72, "--steps", 12))
    for width in HEAD_WIDTHS[:1] if toy else HEAD_WIDTHS:
        for dropout in (0.1,) if toy else (0, 0.1):
            model = programs.model("gpt2", "--layers", 2, "--heads", 2, "--embedding", 2 * width,
                                   "--vocab", 256, "--context", 128, "--dropout", dropout)
            for precision in ("f32", "bf16", "fp16"):
                tell_training(programs, f"GPT-2, heads of {width}, dropout {dropout}", model, *sizes,
                              "--precision", precision)


def named(programs, workload):
    return f"toy {workload}" if programs.args.toy else workload


def tell_time(programs, workload, precision, **changed):
    """Step times of a workload of workloads.py, with some of its sizes changed."""
    toy = programs.args.toy
    sizes = {**sizes_of(workload, toy), **changed}
    result = programs.train_workload(sizes, precision, "--steps", 4 if toy else 14)
    if result is None:
        return
    times = result["step_times"][2 if toy else 4:]
    middle = statistics.median(times)
    batch, length, accumulate = sizes["batch"], sizes.get("length"), sizes.get("accumulate", 1)
    rate = 1e3 * batch * accumulate / middle
    tell("ours", workload=named(programs, workload), precision=precision, batch=batch, length=length,
         labels=sizes.get("predictions"), optimizer=sizes["optimizer"], accumulate=accumulate,
         step_ms=middle, step_ms_min=min(times), step_ms_max=max(times), samples_per_s=round(rate, 2),
         tokens_per_s=round(rate * length, 1) if length else None,
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
    tell_time(programs, "g1", "bf16")
    if programs.args.toy:
        tell_ops(programs, "w1-sgd")
    else:
        tell_ops(programs, "w4", "--batch", 8, "--seq", 1024, "--dtype", "bf16")
    tell_time(programs, "g2", "bf16")
    tell_time(programs, "g1", "f32")
    if programs.args.toy:
        return  # the standard workloads have one size
    for workload in ("w1-adamw", "w2-resnet18", "w3", "w5"):
        for dtype in ("f32", "bf16"):
            result = programs.trainscope("bench", workload, "--device", programs.args.device,
                                         "--steps", 10, "--dtype", dtype)
            if result:
                tell("ours", workload=workload, precision=dtype, step_ms=result["step_ms"],
                     samples_per_s=result["samples_per_s"],
                     peak_mib=round(result["used_bytes"] / 2**20, 1))


def g3(programs):
    tell_time(programs, "g3", "bf16")
    tell_time(programs, "g3", "bf16", optimizer="lamb", accumulate=4)
    tell_time(programs, "g3-phase2", "bf16")


def g4(programs):
    tell_time(programs, "g4", "bf16")


def g5(programs):
    tell_time(programs, "g5", "bf16")


def tell_profile(programs, run, first, times):
    """What profiling cost and lost, and the longest nodes. Steps are profiled from the `first` on."""
    result = programs.trainscope("query", run, "--by", "node")
    if result is None:
        return
    counters = {name.replace(" ", "_"): each["greatest"] for name, each in result["counters"].items()
                if name in ("tied work", "work outside of calls", "untied work", "untimed work",
                            "dropped records", "unread bytes")}
    tell("profile", workload=named(programs, "g1"), precision="bf16", steps=result["steps"],
         step_ms=result["step_ms"], step_ms_profiled=statistics.median(times[first - 1:]),
         step_ms_before=statistics.median(times[2:first - 1]), note=result["note"],
         outside_life=len(result["outside_life"]), **counters)
    for row in result["rows"][:NODES_SHOWN]:
        tell("profile_node", workload=named(programs, "g1"), node=row["name"],
             **{name: round(row[name], 6) for name in ("ms", "median_ms", "share", "count", "gflops", "gbs")})


def trace_events(path):
    """How many events a Chrome trace has, and how many of these are a device's."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    return {"events": len(events),
            "device_events": sum(event.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset") for event in events)}


def profiles(programs):
    first, last = (4, 6) if programs.args.toy else (9, 16)
    run = programs.scratch / "profiled"
    result = programs.train_workload(sizes_of("g1", programs.args.toy), "bf16", "--steps", last, "--profile",
                                     f"steps={first}:{last}", verb="profile", run=run)
    if result is None:
        return
    tell_profile(programs, run, first, result["step_times"])
    programs.args.files.mkdir(parents=True, exist_ok=True)
    for name, ending in EXPORTS:
        path = programs.args.files / f"ours-g1.{name}.{ending}"
        if programs.call("trainscope", "export", run, "--format", name, "-o", path) is not None:
            tell("export", workload=named(programs, "g1"), format=name, file=path.name,
                 packed_bytes=path.stat().st_size, **(trace_events(path) if name == "chrome" else {}))


STAGES = {"self_test": self_test, "verify": verify, "train": train, "ours": ours, "g3": g3, "g4": g4, "g5": g5,
          "profiles": profiles}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stage", choices=STAGES)
    parser.add_argument("--programs", type=Path, required=True)
    parser.add_argument("--models", type=Path)
    parser.add_argument("--files", type=Path, default=Path("."), help="where exports go")
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
