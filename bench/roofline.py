#!/usr/bin/python3
"""Where a step's time goes: each kind of op beside the machine's roofs, in bench/results.

    bench/roofline.py w3 w4-b4t256 --name roofline

First the roofs are measured (build/release/bin/roofs_bench): multiply-adds in registers, traffic to
memory. An op's roof is the longer of its FLOPs and its bytes at these rates (Williams, Waterman,
Patterson 2009); "of roof" is that over what it took. Values that stay in a cache can be quicker
than the roof of memory. The times of ops are medians; "beyond medians" is what all of them took more in
the median step. What is in no op is in one of the gaps, and all rows add up to the step.
"""
import argparse
import tempfile
from pathlib import Path

import measure

STEPS = {"w1-sgd": 300, "w1-adamw": 300, "w2-lenet": 300, "w2-resnet18": 5, "w3": 3, "w4": 3,
         "w4-b1t256": 3, "w4-b4t256": 3, "w5": 3}
KINDS_SHOWN = 12


def arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD",
                        help=f"of {', '.join(STEPS)}; default: all")
    parser.add_argument("--name", default="roofline", help="of the files: DATE-NAME.md")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--build", type=Path, default=measure.ROOT / "build/release/bin")
    parser.add_argument("--load-limit", type=float, default=0.06)
    parser.add_argument("--out", type=Path, default=measure.RESULTS)
    options = parser.parse_args()
    options.workloads = options.workloads or list(STEPS)
    for workload in set(options.workloads) - set(STEPS):
        parser.error(f"there is no workload '{workload}': {', '.join(STEPS)}")
    return options


def measured(options, workload):
    with tempfile.TemporaryDirectory() as folder:
        command = [options.build / "trainscope", "bench", workload, "--steps",
                   str(STEPS[workload]), "--threads", str(options.threads), "--json",
                   "--op-times", Path(folder) / "times.csv"]
        return measure.until_quiet(lambda: measure.run_once(command, {}), options.load_limit)


def by_kind(ops, roofs):
    """Rows of (name, calls, ms, FLOPs, bytes, ms at the roof), the longest first."""
    kinds = {}
    for op in ops:
        key = f"{op['op']}, {op['phase']} ({op['kernel']})"
        row = kinds.setdefault(key, [0, 0.0, 0, 0, 0.0])
        roof_ms = max(op["flops"] / roofs["gflops"], op["bytes"] / roofs["gbps"]) * 1e-6
        for i, value in enumerate((1, op["ms"], op["flops"], op["bytes"], roof_ms)):
            row[i] += value
    return sorted(([key, *row] for key, row in kinds.items()), key=lambda row: -row[2])


def section(run, roofs):
    step = run["measured_step_ms"]
    rows = by_kind(run["ops"], roofs)
    rest = rows[KINDS_SHOWN:]
    if rest:
        rows = rows[:KINDS_SHOWN] + [["others"] + [sum(row[i] for row in rest) for i in range(1, 6)]]
    cells = [[name, calls, f"{ms:.3f}", f"{ms / step:.1%}", f"{flops / ms * 1e-6:.1f}",
              f"{moved / ms * 1e-6:.1f}", f"{roof / ms:.0%}"]
             for name, calls, ms, flops, moved, roof in rows if ms > 0]
    beyond = run["ops_ms"] - sum(op["ms"] for op in run["ops"])
    gaps = {"beyond medians": beyond} | {
        name.replace("_", " "): ms for name, ms in run["gaps_ms"].items()}
    cells += [[name, "", f"{ms:.3f}", f"{ms / step:.1%}", "", "", ""] for name, ms in gaps.items()]
    head = ["op", "calls", "ms", "of step", "GFLOP/s", "GB/s", "of roof"]
    return (f"## {run['workload']}: {step:.3f} ms a step\n\n" + measure.table(head, cells) + "\n")


def main():
    options = arguments()
    roofs = measure.roofs(options.build, options.threads)
    runs = [measured(options, workload) for workload in options.workloads]
    body = (f"Roofs with {roofs['threads']} threads: {roofs['gflops']} GFLOP/s, {roofs['gbps']} GB/s.\n\n"
            + "".join(section(run, roofs) for run in runs))
    measure.write_report(options.name, "Where a step's time goes", body,
                         {"roofs": roofs, "runs": runs}, options.out)


if __name__ == "__main__":
    main()
