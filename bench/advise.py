#!/usr/bin/python3
"""What `advise` predicts beside what it measures: the first levers of three steps, in bench/results.

    bench/advise.py [w3 w4 bert] [--try 3] [--name advise]

w3 and w4 are the models of `trainscope bench`; bert is `trainscope model bert --size base`, 16
examples of 128 tokens, to fit in 2 GB. Each lever's bytes must be those that were planned, and its
time within a fifth of the one predicted, where both are multiples of the step as it is, which runs in
turn with the lever. A run that others took more than --load-limit cores from is made again.
"""
import argparse
import subprocess
import tempfile
from pathlib import Path

import measure

ADAMW = ["--optimizer", "adamw", "--betas", "0.9,0.95", "--weight-decay", "0.1", "--decay", "matrices"]
STEPS = {
    "w3": (["gpt2", "--layers", "6", "--heads", "6", "--embedding", "384", "--vocab", "65",
            "--no-bias", "--activation", "gelu", "--context", "256"],
           ["--batch", "12", "--seq", "256"]),
    "w4": (["gpt2", "--size", "124M", "--vocab", "50304"], ["--batch", "4", "--seq", "64"]),
    "bert": (["bert", "--size", "base"], ["--batch", "16", "--seq", "128", "--memory", "2GB"]),
}
MOST_TIME = 0.20


def arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("steps", nargs="*", metavar="STEP", help=f"of {', '.join(STEPS)}; default: all")
    parser.add_argument("--try", dest="tried", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--name", default="advise", help="of the files: DATE-NAME.md")
    parser.add_argument("--program", type=Path,
                        default=measure.ROOT / "build/release/bin/trainscope")
    parser.add_argument("--load-limit", type=float, default=0.06)
    parser.add_argument("--out", type=Path, default=measure.RESULTS)
    options = parser.parse_args()
    options.steps = options.steps or list(STEPS)
    for name in set(options.steps) - set(STEPS):
        parser.error(f"there is no step '{name}': {', '.join(STEPS)}")
    return options


def advice(options, name, folder):
    model, flags = STEPS[name]
    file = folder / f"{name}.onnx"
    subprocess.run([options.program, "model", *model, "-o", file, "-q"], check=True,
                   stdout=subprocess.DEVNULL)
    command = [options.program, "advise", file, *flags, *ADAMW, "--threads", str(options.threads),
               "--try", str(options.tried), "--json"]
    facts = measure.until_quiet(lambda: measure.run_once(command, {}), options.load_limit)
    file.unlink()
    words = ["trainscope", "advise", file.name, *flags, *ADAMW, "--threads", str(options.threads),
             "--try", str(options.tried)]
    return {"step": name, "call": " ".join(words), **facts}


def holds(trial):
    return trial["bytes_as_planned"] and abs(trial["time_error"]) <= MOST_TIME


def section(run):
    rows = []
    for lever in run["levers"]:
        trial = lever.get("trial")
        if trial is None:
            continue
        rows.append([lever["name"], lever["arena_bytes"], trial["used_bytes"], f"{lever['ms']:.1f}",
                     f"{trial['ms']:.1f}", f"{run['ms']:.1f}", f"{trial['base_ms']:.1f}",
                     f"{trial['time_error']:+.1%}", "yes" if holds(trial) else "NO"])
    head = ["lever", "bytes predicted", "bytes used", "ms predicted", "ms measured",
            "as it is, when predicted", "as it is, meanwhile", "time predicted is off by", "holds"]
    return (f"## {run['step']}\n\n    {run['call']}\n\n{run['headline']}\n\n"
            + measure.table(head, rows) + "\n")


def main():
    options = arguments()
    with tempfile.TemporaryDirectory() as folder:
        runs = [advice(options, name, Path(folder)) for name in options.steps]
    trials = [lever["trial"] for run in runs for lever in run["levers"] if "trial" in lever]
    good = sum(holds(trial) for trial in trials)
    body = (f"{good} of {len(trials)} levers hold: bytes as planned, time within {MOST_TIME:.0%}.\n\n"
            + "".join(section(run) for run in runs))
    measure.write_report(options.name, "advise: predicted beside measured", body, {"runs": runs},
                         options.out)


if __name__ == "__main__":
    main()
