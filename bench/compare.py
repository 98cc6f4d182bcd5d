#!/usr/bin/python3
"""Times the workloads of `trainscope bench` beside PyTorch, in turn, and writes bench/results.

    bench/compare.py w1-sgd w1-adamw w3 --name pytorch

A round runs Trainscope, then each peer; the ratio is the peer's median step over ours in the same
round, and its median over the rounds is what counts. A run during which other programs used more
than --load-limit cores is repeated.
"""
import argparse
import shlex
import statistics
import sys
from pathlib import Path

import measure

STEPS = {"w1-sgd": 1000, "w1-adamw": 800, "w2-lenet": 1000, "w2-resnet18": 8, "w3": 5, "w4": 5,
         "w4-b1t256": 5, "w4-b4t256": 3, "w5": 5, "w6-lstm": 5}
TIER_FLAGS = {"T2c": ["--compile"], "T2b": ["--dtype", "bf16"],
              "T2cb": ["--compile", "--dtype", "bf16"]}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD",
                        help=f"of {', '.join(STEPS)}; default: all")
    parser.add_argument("--name", default="pytorch", help="of the files: DATE-NAME.md")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, help="timed steps of a run, for every workload")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--tiers", default="T0,T1",
                        help="T0: as installed, T1: tuned OpenBLAS; of --current-python T2: eager, "
                             "T2c: torch.compile, T2b and T2cb: these under autocast to bf16; f32: "
                             "Trainscope in f32, beside --dtype")
    parser.add_argument("--dtype", default="f32", help="of Trainscope: f32, bf16 or f16")
    parser.add_argument("--flags", default="", metavar="FLAGS",
                        help="more flags of `trainscope bench`: --flags='--max-overhead 1%%'")
    parser.add_argument("--current-python", help="an interpreter that has a newer PyTorch")
    parser.add_argument("--trainscope", type=Path,
                        default=measure.ROOT / "build/release/bin/trainscope")
    parser.add_argument("--peer", type=Path, default=measure.ROOT / "bench/torch_peer.py",
                        help="script that takes WORKLOAD --steps N --threads N, prints JSON")
    parser.add_argument("--python", default="/usr/bin/python3")
    parser.add_argument("--load-limit", type=float, default=0.06)
    parser.add_argument("--out", type=Path, default=measure.RESULTS)
    options = parser.parse_args()
    options.workloads = options.workloads or list(STEPS)
    if "T2" in options.tiers and not options.current_python:
        parser.error("T2 and T2c need --current-python")
    for workload in set(options.workloads) - set(STEPS):
        parser.error(f"there is no workload '{workload}': {', '.join(STEPS)}")
    return options


def commands(options, workload):
    """Name -> command and environment; ours first."""
    sizes = ["--steps", str(options.steps or STEPS[workload]), "--threads", str(options.threads)]
    ours = [options.trainscope, "bench", workload, *sizes, "--json", *shlex.split(options.flags)]
    dtype = [] if options.dtype == "f32" else ["--dtype", options.dtype]
    result = {"trainscope": (ours + dtype, {})}
    for tier in options.tiers.split(","):
        if tier == "f32":
            result[tier] = (ours, {})
            continue
        python = options.current_python if tier.startswith("T2") else options.python
        how = TIER_FLAGS.get(tier, [])
        result[tier] = ([python, options.peer, workload, *sizes, *how],
                        measure.peer_environment(tier, options.threads))
    return result


def run_rounds(options, workload):
    """Name -> its runs, in the order of the rounds."""
    runs = {}
    for number in range(1, options.rounds + 1):
        for name, (command, environment) in commands(options, workload).items():
            result = measure.until_quiet(lambda c=command, e=environment: measure.run_once(c, e),
                                         options.load_limit)
            runs.setdefault(name, []).append(result)
            print(f"{workload} round {number} {name}: {result['step_ms']:.3f} ms", file=sys.stderr)
    return runs


def median_of(runs, key):
    return statistics.median(run[key] for run in runs)


def ratio(ours, theirs):
    return statistics.median(b["step_ms"] / a["step_ms"] for a, b in zip(ours, theirs))


def row(workload, runs, roof_gflops):
    ours = runs["trainscope"]
    peers = {name: each for name, each in runs.items() if name != "trainscope"}
    cells = [workload, f"{median_of(ours, 'step_ms'):.2f}"]
    for each in peers.values():
        cells.append(f"{median_of(each, 'step_ms'):.2f} ({ratio(ours, each):.2f}x)")
    best = min(peers.values(), key=lambda each: median_of(each, "step_ms"))
    rates = [median_of(each, "gflops") for each in (ours, best)]
    cells += [" / ".join(f"{rate:.0f}" for rate in rates),
              " / ".join(f"{rate / roof_gflops:.0%}" for rate in rates),
              f"{median_of(ours, 'peak_rss_mb'):.0f} / {median_of(best, 'peak_rss_mb'):.0f}",
              f"{median_of(ours, 'arena_mb'):.1f}"]
    return cells


def main():
    options = arguments()
    roofs = measure.roofs(options.trainscope.parent, options.threads)
    runs = {workload: run_rounds(options, workload) for workload in options.workloads}
    tiers = options.tiers.split(",")
    first = next(iter(runs.values()))
    versions = ", ".join(f"{tier}: {first[tier][0].get('peer', 'Trainscope')}" for tier in tiers)
    head = ["workload", "Trainscope ms", *(f"{tier} ms (ratio)" for tier in tiers),
            "GFLOP/s ours / best", "of the roof", "peak RSS MB ours / best", "arena MiB"]
    body = measure.table(head, [row(workload, each, roofs["gflops"]) for workload, each in runs.items()])
    body += (f"\nMedian step of {options.rounds} rounds, {options.threads} threads; {versions}. "
             "Ratio: PyTorch's time over ours, median of the rounds; above 1 Trainscope is "
             "quicker. T0: PyTorch as installed; T1: OpenBLAS with OpenMP, its core type set; T2: "
             "a newer one; T2c: the same through torch.compile; T2b, T2cb: both under autocast to "
             "bf16; f32: Trainscope without --dtype.\n"
             f"Roof: {roofs['gflops']} GFLOP/s in f32, as roofs_bench beside the program says, for "
             "the FLOPs of the definition, in which every position counts.\n"
             f"Runs with more than {options.load_limit} cores of other load were repeated.\n")
    facts = {"rounds": options.rounds, "threads": options.threads,
             "load_limit": options.load_limit, "roofs": roofs, "runs": runs}
    measure.write_report(options.name, "Training steps beside PyTorch", body, facts, options.out)


if __name__ == "__main__":
    main()
