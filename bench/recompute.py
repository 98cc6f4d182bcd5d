#!/usr/bin/python3
"""Memory budgets carried out: predicted beside measured time, bytes and losses.

    bench/recompute.py w3 w4-b4t256 w2-resnet18 --name recompute

Measures each op of the workload without recomputation, then plans for budgets of the persistent
bytes (parameters, gradients, states) plus shares of what lies above them, and runs each plan in
turn with the plain step, step by step in one process. Predicted is what the plan says before it
runs; bytes used must equal the plan's, losses the plain step's.
"""
import argparse
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import measure

STEPS = {"w3": 8, "w4": 6, "w4-b4t256": 4, "w2-resnet18": 16, "w1-adamw": 400, "w2-lenet": 400, "w5": 5}
SHARES = (100, 75, 50, 35)
NOTHING = 0.001  # of the arena: with so little above the persistent bytes there is nothing to trade


def arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workloads", nargs="+", choices=STEPS)
    parser.add_argument("--name", default="recompute", help="of the files: DATE-NAME.md")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--trainscope", type=Path,
                        default=measure.ROOT / "build/release/bin/trainscope")
    parser.add_argument("--load-limit", type=float, default=0.06)
    parser.add_argument("--out", type=Path, default=measure.RESULTS)
    return parser.parse_args()


def bench(options, workload, *flags):
    command = [options.trainscope, "bench", workload, "--steps", str(STEPS[workload]), "--threads",
               str(options.threads), "--json", *map(str, flags)]
    return measure.until_quiet(lambda: measure.run_once(command, {}), options.load_limit)


def has_plan(options, workload, flags):
    """Whether any fits: otherwise the program ends with exit code 5 and says what would."""
    command = [options.trainscope, "bench", workload, "--steps", "1", "--threads",
               options.threads, *flags[:-1]]
    return subprocess.run(list(map(str, command)), stdout=subprocess.DEVNULL,
                          check=False).returncode != 5


def cells(row):
    start = [row["workload"], f"{row['share']} %", f"{row['budget_bytes'] / 1e6:.1f}"]
    if "arena_bytes" not in row:
        return start + ["no plan fits"] + [""] * 5
    return start + [
        f"{row['arena_bytes'] / 1e6:.1f}", str(row["repeats"]),
        "-" if row["bound"] is None else f"{row['bound']:.2%}", f"{row['predicted']:.2%}",
        f"{row['measured']:.2%}",
        ", ".join(f"{each:.2%}" for each in row["measured_of_runs"])]


def rows_of(options, workload, costs):
    plain = bench(options, workload, "--op-times", costs)
    gradients = 4 * plain["parameters"]  # they are all there when the update begins
    persistent, arena = plain["persistent_bytes"] + gradients, plain["arena_bytes"]
    shares = SHARES if arena - persistent > NOTHING * arena else SHARES[:1]
    for share in shares:
        budget = persistent + (arena - persistent) * share // 100
        flags = ["--memory-budget", budget, "--costs", costs, "--paired"]
        if not has_plan(options, workload, flags):
            print(f"{workload} {share} %: no plan", file=sys.stderr)
            yield {"workload": workload, "share": share, "budget_bytes": budget}
            continue
        runs = [bench(options, workload, *flags) for _ in range(options.rounds)]
        for run in runs:
            if run["used_bytes"] != run["arena_bytes"]:
                sys.exit(f"{workload} {share} %: {run['used_bytes']} bytes used, not as predicted")
        overheads = [run["measured_overhead"] for run in runs]
        run, plan = runs[-1], runs[-1]["recompute"]
        yield {"workload": workload, "share": share, "budget_bytes": budget,
               "arena_bytes": run["arena_bytes"], "used_bytes": run["used_bytes"],
               "repeats": plan["repeats"], "predicted": plan["overhead"],
               "measured": statistics.median(overheads), "measured_of_runs": overheads,
               "bound": plan.get("bound_overhead")}
        print(f"{workload} {share} %: predicted {plan['overhead']:.2%}, measured "
              f"{', '.join(f'{each:.2%}' for each in overheads)}", file=sys.stderr)


def main():
    options = arguments()
    with tempfile.TemporaryDirectory() as folder:
        rows = [row for workload in options.workloads
                for row in rows_of(options, workload, Path(folder) / f"{workload}.csv")]
    head = ["workload", "of the bytes above the persistent", "budget MB", "arena MB = used",
            "ops again", "more time: bound", "predicted", "measured", "of each run"]
    body = measure.table(head, [cells(row) for row in rows])
    body += (f"\nBelow 100 % only where the plain step needs more than {NOTHING:.1%} of its arena above "
             "the persistent bytes.\n")
    body += (f"\nMedian of {options.rounds} runs, each the median of its pairs of steps (plain, "
             f"planned), {options.threads} threads. Costs: each op measured once in the plain step; "
             "predicted before the plan runs. Losses after the last step equal those of the plain "
             "step bit for bit.\n"
             f"Runs with more than {options.load_limit} cores of other load were repeated.\n")
    facts = {"rounds": options.rounds, "threads": options.threads,
             "load_limit": options.load_limit, "rows": rows}
    measure.write_report(options.name, "Training steps within memory budgets", body, facts,
                         options.out)


if __name__ == "__main__":
    main()
