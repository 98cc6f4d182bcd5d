#!/usr/bin/python3
"""Memory budgets carried out: predicted beside measured time, bytes and losses.

    bench/recompute.py w3 w4 w2-resnet18 --name recompute

Measures each op of the workload without recomputation, then plans for budgets of the persistent
bytes plus shares of what lies above them, and runs each plan in turn with the plain step. Predicted
is what the plan says before it runs; bytes used must equal the plan's, losses the plain run's.
"""
import argparse
import statistics
import sys
import tempfile
from pathlib import Path

import measure

STEPS = {"w3": 4, "w4": 3, "w2-resnet18": 8, "w1-adamw": 400, "w2-lenet": 400, "w5": 3}
SHARES = (100, 75, 50, 35)


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


def measured_overhead(options, workload, flags):
    """Median over the rounds of the planned step's time over the plain one's, and the last run."""
    ratios = []
    for _ in range(options.rounds):
        plain = bench(options, workload)
        planned = bench(options, workload, *flags)
        if planned["loss_last"] != plain["loss_last"]:
            sys.exit(f"{workload} {flags}: another loss than without recomputation")
        if planned["used_bytes"] != planned["arena_bytes"]:
            sys.exit(f"{workload} {flags}: {planned['used_bytes']} bytes used, not as predicted")
        ratios.append(planned["step_ms"] / plain["step_ms"])
    return statistics.median(ratios) - 1, planned


def rows_of(options, workload, costs):
    plain = bench(options, workload, "--op-times", costs)
    persistent, arena = plain["persistent_bytes"], plain["arena_bytes"]
    for share in SHARES:
        budget = persistent + (arena - persistent) * share // 100
        flags = ["--memory-budget", budget, "--costs", costs]
        overhead, run = measured_overhead(options, workload, flags)
        plan = run["recompute"]
        yield {"workload": workload, "share": share, "budget_bytes": budget,
               "arena_bytes": run["arena_bytes"], "used_bytes": run["used_bytes"],
               "repeats": plan["repeats"], "predicted": plan["overhead"], "measured": overhead,
               "bound": plan.get("bound_overhead", 0.0), "peak_rss_mb": run["peak_rss_mb"]}
        print(f"{workload} {share} %: predicted {plan['overhead']:.2%}, measured {overhead:.2%}",
              file=sys.stderr)


def main():
    options = arguments()
    with tempfile.TemporaryDirectory() as folder:
        rows = [row for workload in options.workloads
                for row in rows_of(options, workload, Path(folder) / f"{workload}.csv")]
    head = ["workload", "of the bytes above the persistent", "budget MB", "arena MB = used",
            "ops again", "more time: bound", "predicted", "measured", "peak RSS MB"]
    body = measure.table(head, [
        [row["workload"], f"{row['share']} %", f"{row['budget_bytes'] / 1e6:.1f}",
         f"{row['arena_bytes'] / 1e6:.1f}", str(row["repeats"]), f"{row['bound']:.2%}",
         f"{row['predicted']:.2%}", f"{row['measured']:.2%}", f"{row['peak_rss_mb']:.0f}"]
        for row in rows])
    body += (f"\nMedian of {options.rounds} pairs (plain step, planned step), {options.threads} "
             "threads. Costs: each op measured once in the plain step; predicted before the plan "
             "runs. Losses after the timed steps equal those of the plain run bit for bit.\n"
             f"Runs with more than {options.load_limit} cores of other load were repeated.\n")
    facts = {"rounds": options.rounds, "threads": options.threads,
             "load_limit": options.load_limit, "rows": rows}
    measure.write_report(options.name, "Training steps within memory budgets", body, facts,
                         options.out)


if __name__ == "__main__":
    main()
