#!/usr/bin/python3
"""How near the ops of the standard workloads come to the machine's roofs, in bench/results.

    bench/roof_shares.py [w1-sgd w1-adamw lenet resnet18 w3 w4 w5] [--steps 20] [--machine FILE]

The machine is measured before each workload and after the last (`doctor --roofs`, of each number the best),
unless a file of it is given. Each workload is profiled; an op's share of its roof is by the median of
the steps. None may be above 105 %: the kernel would be quicker than the machine, so FLOPs, bytes or the
machine would be wrong.
"""
import argparse
import json
import subprocess
import tempfile
from pathlib import Path

import measure

MOST = 1.05
ADAMW = ["--optimizer", "adamw", "--betas", "0.9,0.95", "--weight-decay", "0.1", "--decay", "matrices",
         "--lr", "3e-4"]
WORKLOADS = {
    "w1-sgd": (["mlp", "--dims", "784,512,512,10"],
               ["--batch", "128", "--optimizer", "sgd", "--momentum", "0.9", "--lr", "0.01"]),
    "w1-adamw": (["mlp", "--dims", "784,512,512,10"], ["--batch", "128", *ADAMW]),
    "lenet": (["lenet"], ["--batch", "32", *ADAMW]),
    "resnet18": (["resnet", "--size", "18-cifar"], ["--batch", "32", *ADAMW]),
    "w3": (["gpt2", "--layers", "6", "--heads", "6", "--embedding", "384", "--vocab", "65", "--no-bias",
            "--activation", "gelu", "--context", "256"], ["--batch", "12", "--seq", "256", *ADAMW]),
    "w4": (["gpt2", "--size", "124M", "--vocab", "50304"], ["--batch", "4", "--seq", "64", *ADAMW]),
    "w5": (["bert", "--layers", "4", "--context", "512", "--dropout", "0.1"],
           ["--batch", "8", "--seq", "128", *ADAMW]),
}


def arguments(about, name, own):
    """Of a script that profiles these workloads; `own` adds what that script alone takes to the parser."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD", help=", ".join(WORKLOADS))
    parser.add_argument("--steps", type=int, default=20, help="that are profiled")
    parser.add_argument("--threads", type=int, default=2)
    own(parser)
    parser.add_argument("--name", default=name, help="of the files: DATE-NAME.md")
    parser.add_argument("--program", type=Path, default=measure.ROOT / "build/release/bin/trainscope")
    parser.add_argument("--out", type=Path, default=measure.RESULTS)
    options = parser.parse_args()
    options.workloads = options.workloads or list(WORKLOADS)
    for name in set(options.workloads) - set(WORKLOADS):
        parser.error(f"there is no workload '{name}': {', '.join(WORKLOADS)}")
    return options


def run(options, *words):
    return subprocess.run([options.program, *map(str, words)], capture_output=True, text=True,
                          check=True).stdout


def best_of(first, second):
    """Of two measurements of one machine what is quicker, by each number: other programs, and other
    machines on the same processor, make both slower at times, never quicker."""
    if isinstance(first, dict):
        return {key: min(first[key], second[key]) if key.startswith("seconds_")
                else best_of(first[key], second[key]) for key in first}
    if isinstance(first, list):
        return [best_of(*pair) for pair in zip(first, second)]
    return max(first, second) if isinstance(first, float) else first


def measured_machine(options, before, folder):
    file = folder / "measured.json"
    run(options, "doctor", "--roofs", "--out", file, "--threads", options.threads)
    machine = json.loads(file.read_text())
    return machine if before is None else best_of(before, machine)


def profile_of(options, workload, folder):
    model, flags = WORKLOADS[workload]
    file, profile = folder / f"{workload}.onnx", folder / workload
    run(options, "model", *model, "-o", file, "-q")
    run(options, "profile", file, *flags, "--data", "synthetic", "--validation", "none", "--steps",
        options.steps + 5, "--profile", f"steps=6:{options.steps + 5}", "--threads", options.threads,
        "--run-dir", profile, "-q")
    return profile


def shares_of(options, profile, machine):
    rows = json.loads(run(options, "query", profile, "--by", "op", "--machine", machine, "--json"))["rows"]
    return [{"op": row["name"], "share": row["share"], "median_ms": row["median_ms"],
             "gflops": row["gflops"], "gbs": row["gbs"],
             "roof": row["roof"] * row["ms"] / row["median_ms"]}
            for row in rows if row["is_call"] and row["median_ms"] > 0]


def main():
    options = arguments(__doc__, "roof-shares", lambda parser: parser.add_argument("--machine", type=Path))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        machine = None if options.machine is None else json.loads(options.machine.read_text())
        profiles = {}
        for workload in options.workloads:
            if options.machine is None:
                machine = measured_machine(options, machine, folder)
            profiles[workload] = profile_of(options, workload, folder)
        if options.machine is None:
            machine = measured_machine(options, machine, folder)
        file = folder / "machine.json"
        file.write_text(json.dumps(machine))
        results = {each: shares_of(options, profile, file) for each, profile in profiles.items()}
        facts = {"roofs": machine, "results": results}
    rows = [[workload, row["op"], f"{row['share']:.1%}", f"{row['median_ms']:.4f}",
             f"{row['gflops']:.1f}", f"{row['gbs']:.1f}", f"{row['roof']:.0%}",
             "yes" if row["roof"] <= MOST else "NO"]
            for workload, ops in results.items() for row in ops if row["share"] >= 0.005 or row["roof"] > MOST]
    above = sum(row["roof"] > MOST for ops in results.values() for row in ops)
    body = (f"{above} ops are above {MOST:.0%} of their roof. Ops of half a percent of a step and more:\n\n"
            + measure.table(["workload", "op", "of the step", "ms (median)", "GFLOP/s", "GB/s", "of its roof",
                             "at most 105 %"], rows))
    measure.write_report(options.name, "Ops and their roofs", body, facts, options.out)


if __name__ == "__main__":
    main()
