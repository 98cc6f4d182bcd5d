#!/usr/bin/python3
"""Step times of g1 to g5 on an NVIDIA H200 as a model has them: nothing is run.

    bench/gpu_model.py [g1 .. g5] [--name h200-modelled] [--programs build/release/bin]

A step is its calls one behind the other, as `trainscope inspect MODEL --calls` lists them with FLOPs
and bytes, each the longer of its FLOPs at the rate of its kind and its bytes at that of the memory, and
the launch of a node of a CUDA graph. Rates are stated beforehand, in three columns:

reached   by others' kernels on an H200 (bench/results/2026-11/2026-11-26-h200-ca04cffd.md): the matmuls
          of g1, 24.3 TFLOP in 33.5 ms; cuDNN's attention of g1, 185 GFLOP in 0.688 ms; a matmul in f32,
          for convolutions; a large array that is read; a node of a graph
expected  of ours
slow      attention as ours was measured before it was mended (2026-11-27-h200-67ed2d4c.md)

Bytes are the cost model's: each operand moves once. A fourth column, "counted", has the expected rates and
the bytes that lanes of our own kernels ask for, as the PTX interpreter counts them: of an op as many times
the cost model's as in tests/cuda/ptx/counters.tsv, the most of the op's aligned examples. That takes what is
read again for memory's, though most of it comes from L1 or L2, and sums of parts weigh more in small
examples: a step is between expected and counted. What g1 gives is held against its goal.

Kernels that wait take longer than their bytes and FLOPs.
"""
import argparse
import csv
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import measure

sys.path.insert(0, str(Path(__file__).resolve().parent / "gpu"))
from workloads import WORKLOADS, model_words, step_flags  # noqa: E402  (its folder is not a package)

# FLOP/s of matmuls in bf16, of attention on tensor cores and of convolutions in f32; bytes/s; s a call.
RATES = {
    "reached": {"matmul": 725e12, "attention": 269e12, "convolution": 51e12, "bytes": 4.68e12,
                "launch": 0.48e-6},
    "expected": {"matmul": 650e12, "attention": 150e12, "convolution": 25e12, "bytes": 4.3e12,
                 "launch": 0.65e-6},
    "slow": {"matmul": 500e12, "attention": 38e12, "convolution": 12e12, "bytes": 3.0e12,
              "launch": 2e-6},
}
KINDS = {"MatMul": "matmul", "BatchMatMul": "matmul", "Gemm": "matmul", "MatMulAdd": "matmul",
         "Attention": "attention", "AttentionGrad": "attention"}
GOALS = {"g1": 560_000}  # tokens/s
COUNTERS = measure.ROOT / "tests/cuda/ptx/counters.tsv"
MODELLED = ("g1", "g2", "g3", "g4", "g5")
OPS_SHOWN = 6


def kind_of(call):
    if call["op"].startswith("Conv"):
        return "convolution"
    return KINDS.get(call["op"])


def counted_factors(path=COUNTERS):
    """Bytes that lanes ask for over those of the cost model: the most of an op's aligned examples, by op."""
    with open(path, encoding="utf-8", newline="") as file:
        rows = csv.DictReader((line for line in file if not line.startswith("#")), delimiter="\t",
                              quoting=csv.QUOTE_NONE)
        factors = {}
        for row in rows:
            if row["shape"] != "aligned":
                continue
            asked = int(row["bytes_read"]) + int(row["bytes_written"])
            factors[row["op"]] = max(factors.get(row["op"], 0.0), asked / int(row["model_bytes"]))
    return factors


def seconds_of(call, rates, factors=None):
    """`factors`: of bytes, by op; None: each operand moves once."""
    kind = kind_of(call)
    arithmetic = call["flops"] / rates[kind] if kind else 0.0
    moved = (call["bytes_read"] + call["bytes_written"]) * (factors or {}).get(call["op"], 1.0)
    return rates["launch"] + max(arithmetic, moved / rates["bytes"])


def by_op(calls, rates, factors=None):
    """Milliseconds by op, the longest first."""
    found = {}
    for call in calls:
        found[call["op"]] = found.get(call["op"], 0.0) + 1e3 * seconds_of(call, rates, factors)
    return sorted(found.items(), key=lambda item: -item[1])


def program(options, *words):
    done = subprocess.run([str(options.programs / "trainscope"), *words], capture_output=True, text=True,
                          check=False)
    if done.returncode != 0:
        raise SystemExit(f"trainscope {' '.join(words)}: {done.stderr}")
    return done.stdout


def modelled(options, name, folder):
    model = str(Path(folder) / f"{name}.onnx")
    sizes = WORKLOADS[name]
    words, flags = model_words(sizes), step_flags(sizes)
    program(options, "model", *words, "-o", model, "-q")
    found = json.loads(program(options, "inspect", model, "--calls", *flags, "--json"))
    calls = [call for call in found["calls"] if call["kind"] == "kernel"]
    factors = counted_factors()
    ms = {which: 1e3 * sum(seconds_of(call, rates) for call in calls) for which, rates in RATES.items()}
    ms["counted"] = 1e3 * sum(seconds_of(call, RATES["expected"], factors) for call in calls)
    items = 1e3 * sizes["batch"] * sizes.get("length", 1)
    return {"workload": name, "model": " ".join(words), "flags": " ".join(flags),
            "calls": len(calls), "tflop": sum(call["flops"] for call in calls) / 1e12, "ms": ms,
            "per_second": items / ms["expected"], "per_second_counted": items / ms["counted"],
            "ops": by_op(calls, RATES["expected"]),
            "ops_counted": by_op(calls, RATES["expected"], factors)}


def goal_line(result):
    """What a workload gives, held against its goal; empty where it has none."""
    goal = GOALS.get(result["workload"])
    if goal is None:
        return ""
    slower, faster = sorted((result["per_second_counted"], result["per_second"]))
    verdict = "reached" if slower >= goal else "not reached" if faster < goal else "in between"
    return (f"{result['workload']}: goal {goal} a second, modelled {slower:.0f} (counted) to {faster:.0f} "
            f"(expected): {verdict}.\n\n")


def body_of(results):
    rates = measure.table(
        ["rates", *RATES], [[what, *(f"{RATES[which][what]:.3g}" for which in RATES)]
                            for what in RATES["expected"]])
    columns = [*RATES, "counted"]
    steps = measure.table(
        ["workload", "`trainscope model`", "step", "calls", "TFLOP", *(f"{which}, ms" for which in columns),
         "tokens or images/s, expected", "counted"],
        [[r["workload"], r["model"], r["flags"], r["calls"], f"{r['tflop']:.2f}",
          *(f"{r['ms'][which]:.1f}" for which in columns), f"{r['per_second']:.0f}",
          f"{r['per_second_counted']:.0f}"] for r in results])
    goes = measure.table(
        ["workload", "where the expected milliseconds go", "and those counted"],
        [[r["workload"], *(", ".join(f"{op} {ms:.1f}" for op, ms in r[ops][:OPS_SHOWN])
                           for ops in ("ops", "ops_counted"))] for r in results])
    return ("Modelled, not run on a GPU. FLOP/s by kind of call, bytes/s of the memory, seconds a "
            f"call:\n\n{rates}\n\n{steps}\n\n{''.join(map(goal_line, results))}{goes}")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD", help=", ".join(MODELLED))
    parser.add_argument("--name", default="h200-modelled", help="of the files: DATE-NAME.md")
    parser.add_argument("--programs", type=Path, default=measure.ROOT / "build/release/bin")
    parser.add_argument("--out", type=Path, default=measure.RESULTS)
    options = parser.parse_args()
    for name in set(options.workloads) - set(MODELLED):
        parser.error(f"there is no workload '{name}': {', '.join(MODELLED)}")
    with tempfile.TemporaryDirectory() as folder:
        results = [modelled(options, name, folder) for name in options.workloads or MODELLED]
    measure.write_report(options.name, "Step times on an NVIDIA H200, as a model has them",
                         body_of(results), {"rates": RATES, "results": results}, options.out)


if __name__ == "__main__":
    main()
