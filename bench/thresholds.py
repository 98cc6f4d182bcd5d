#!/usr/bin/python3
"""How well thresholds hold on shapes that they were not chosen on: a table in bench/results.

    bench/thresholds.py                  some four minutes on a machine that does nothing else
    bench/thresholds.py --quick          half a minute: whether it works, no figures

Kernel choice: build/release/bin/kernel_choices_bench times each case with the kernel that is chosen
and with those that a threshold alone leaves out. Batch tiles: steps of small models without tiles,
and with tiles of ops up to a quarter, once and four times the built-in length, by machine files
whose forks cost as much. A choice loses where another one takes less than 1 / 1.05 of its time.
"""
import argparse
import json
import statistics
import subprocess
import tempfile
from pathlib import Path

import measure

LOSES = 1.05
WORST_SHOWN = 8
FORKS = {"a quarter": 0.25, "as built in": 1.0, "four times": 4.0}
# None of them a standard workload.
MODELS = {
    "mlp 300-200-100-10, batch 40": (["mlp", "--dims", "300,200,100,10"], 40, 0),
    "mlp 64-96-96-96-5, batch 400": (["mlp", "--dims", "64,96,96,96,5"], 400, 0),
    "mlp 1500-700-300-20, batch 64": (["mlp", "--dims", "1500,700,300,20"], 64, 0),
    "lenet 28 x 28, batch 12": (["lenet", "--image", "28"], 12, 0),
    "lenet 44 x 44, batch 96": (["lenet", "--image", "44"], 96, 0),
    "resnet 1,1 of 8 channels, batch 16":
        (["resnet", "--blocks", "1,1", "--width", "8", "--image", "20", "--stem", "cifar",
          "--classes", "7"], 16, 0),
    "gpt2 2 layers of 48, batch 6, 24 tokens":
        (["gpt2", "--layers", "2", "--heads", "3", "--embedding", "48", "--vocab", "50",
          "--context", "24"], 6, 24),
    "gpt2 3 layers of 128, batch 8, 80 tokens":
        (["gpt2", "--layers", "3", "--heads", "4", "--embedding", "128", "--vocab", "90",
          "--context", "80"], 8, 80),
    "vit 2 layers of 64, batch 10":
        (["vit", "--layers", "2", "--heads", "4", "--embedding", "64", "--image", "24", "--patch",
          "6", "--classes", "9", "--feed-forward", "160"], 10, 0),
}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--name", default="thresholds", help="of the files: DATE-NAME.md")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="too short for figures; written nowhere")
    parser.add_argument("--build", type=Path, default=measure.ROOT / "build/release/bin")
    parser.add_argument("--load-limit", type=float, default=0.06)
    parser.add_argument("--out", type=Path, default=measure.RESULTS)
    return parser.parse_args()


def kernel_rows(options):
    """Cases of kernel choice, each with what was chosen and what was quickest."""
    seconds = 0.001 if options.quick else 0.05
    command = [options.build / "kernel_choices_bench", str(options.threads), str(seconds)]
    limit = 99 if options.quick else options.load_limit
    return measure.until_quiet(lambda: measure.run_once(command, {}), limit)["rows"]


def machine_file(options, folder, forks):
    """The built-in machine, whose forks cost so many times as much. Only a plan with --machine reads
    it, and of its numbers these alone matter to tiles."""
    path = Path(folder) / f"machine-{forks}.json"
    rate = {"one": 1e10, "all": 2e10}
    path.write_text(json.dumps({
        "format": "trainscope-machine", "version": 1, "name": f"forks times {forks}", "cores": 2,
        "levels": [{"name": "memory", "bytes": 1 << 34, "read": rate, "write": rate, "copy": rate}],
        "flops_per_second": {"f32": {"one": 5e10, "all": 1.8e11}}, "seconds_per_call": 1e-6,
        "seconds_per_fork": forks * 3e-4 / 128}), encoding="ascii")
    return path


def step_ms(options, model, chains, batch, sequence):
    """The median step of one run, without its first half."""
    steps = 8 if options.quick else 160
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        command = [options.build / "trainscope", "train", model, "--data", "synthetic", "--batch",
                   str(batch), "--steps", str(steps), "--threads", str(options.threads), "--quiet",
                   "--run-dir", run, *chains]
        if sequence:
            command += ["--seq", str(sequence)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        lines = (run / "metrics.jsonl").read_text("utf-8").splitlines()
    times = [row["step_ms"] for row in map(json.loads, lines) if row["kind"] == "step"]
    return statistics.median(times[len(times) // 2:])


def tile_rows(options):
    """Models with the median step of each variant, of runs in turn."""
    rows = []
    rounds = 1 if options.quick else 3
    with tempfile.TemporaryDirectory() as folder:
        variants = {"none": ["--batch-tiles", "none"]}
        for name, forks in FORKS.items():
            variants[name] = ["--batch-tiles", "auto", "--machine",
                              machine_file(options, folder, forks)]
        for name, (words, batch, sequence) in MODELS.items():
            model = Path(folder) / "model.onnx"
            subprocess.run([options.build / "trainscope", "model", *words, "--out", model,
                            "--quiet"], check=True, stdout=subprocess.DEVNULL)
            times = {variant: [] for variant in variants}
            for _ in range(rounds):
                for variant, chains in variants.items():
                    times[variant].append(step_ms(options, model, chains, batch, sequence))
            rows.append({"model": name,
                         "ms": {variant: statistics.median(all_) for variant, all_ in times.items()}})
    return rows


def loss_of(row):
    """How many times as long as the quickest kernel the chosen one takes."""
    return row["chosen_ms"] / row["best_ms"]


def kernel_section(rows):
    """A row for each threshold: how often and by how much the choice loses."""
    thresholds = {}
    for row in rows:
        thresholds.setdefault(row["threshold"], []).append(row)
    cells = []
    for threshold, cases in thresholds.items():
        losses = sorted(map(loss_of, cases), reverse=True)
        lost = [loss for loss in losses if loss > LOSES]
        time_lost = sum(row["chosen_ms"] for row in cases) / sum(row["best_ms"] for row in cases)
        cells.append([threshold, len(cases), len(lost), f"{statistics.median(losses):.2f}",
                      f"{losses[0]:.2f}", f"{time_lost:.3f}"])
    head = ["threshold", "cases", "loses", "median", "worst", "all cases, time over the best"]
    worst = sorted(rows, key=loss_of, reverse=True)[:WORST_SHOWN]
    shown = [[row["case"], row["chosen"], f"{row['chosen_ms']:.3f}", row["best"],
              f"{row['best_ms']:.3f}", f"{loss_of(row):.2f}"] for row in worst]
    return ("## Kernels\n\n" + measure.table(head, cells) + "\nThe worst cases, milliseconds:\n\n"
            + measure.table(["case", "chosen", "ms", "quickest", "ms", "ratio"], shown))


def tile_section(rows):
    """A row for each model: the time of each variant over that without tiles."""
    head = ["model", "ms without", *(f"tiles, {name}" for name in FORKS)]
    cells = [[row["model"], f"{row['ms']['none']:.3f}",
              *(f"{row['ms'][name] / row['ms']['none']:.2f}" for name in FORKS)] for row in rows]
    ratios = [row["ms"]["as built in"] / row["ms"]["none"] for row in rows]
    lost = sum(ratio > LOSES for ratio in ratios)
    return ("## Batch tiles\n\n" + measure.table(head, cells)
            + f"\nAs built in, `--batch-tiles auto` loses on {lost} of {len(rows)}; median "
              f"{statistics.median(ratios):.2f} of the time without tiles.\n")


def main():
    options = arguments()
    kernels = kernel_rows(options)
    tiles = tile_rows(options)
    body = kernel_section(kernels) + "\n" + tile_section(tiles)
    if options.quick:
        print(body + "\n(--quick: too short for figures)")
        return
    measure.write_report(options.name, "Thresholds on other shapes", body,
                         {"kernels": kernels, "tiles": tiles}, options.out)


if __name__ == "__main__":
    main()
