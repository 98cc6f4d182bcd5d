#!/usr/bin/python3
"""Two builds of the program beside each other: the ratio of their step times, in turn.

    bench/pairs.py OLD NEW WORKLOAD:STEPS:PAIRS... [--threads N]

OLD and NEW are programs; each pair is one `bench` of either, the first of them alternating. Prints
for each workload the median of the ratios NEW / OLD of the median step times, the least and the
largest, and the load of the machine before and after, which must be low for the ratios to mean
anything.
"""
import argparse
import json
import os
import statistics
import subprocess


def step_ms(program, workload, steps, threads):
    done = subprocess.run([program, "bench", workload, "--steps", steps, "--threads", str(threads),
                           "--json"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["step_ms"]


def ratios_of(arguments, workload, steps, pairs):
    ratios = []
    for pair in range(int(pairs)):
        order = [arguments.old, arguments.new] if pair % 2 == 0 else [arguments.new, arguments.old]
        first, second = (step_ms(each, workload, steps, arguments.threads) for each in order)
        ratios.append(second / first if pair % 2 == 0 else first / second)
    return ratios


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("workloads", nargs="+", metavar="WORKLOAD:STEPS:PAIRS")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    for text in arguments.workloads:
        workload, steps, pairs = text.split(":")
        before = os.getloadavg()[0]
        ratios = ratios_of(arguments, workload, steps, pairs)
        print(f"{workload:<12} {pairs:>3} pairs  median {statistics.median(ratios):.4f}  "
              f"least {min(ratios):.4f}  largest {max(ratios):.4f}  "
              f"load {before:.2f} to {os.getloadavg()[0]:.2f}", flush=True)


if __name__ == "__main__":
    main()
