#!/usr/bin/python3
"""nanoGPT's small CPU recipe on a text, by Trainscope and by PyTorch; writes bench/results.

    bench/recipe.py --text FILE

4 layers, 4 heads, width 128, no biases, exact GELU, 64 characters, batch 12, 2000 steps of AdamW
(1e-3 after 100 warm-up steps, cosine to 1e-4, betas 0.9 and 0.99, decay 0.1 of matrices, clip 1).
The loss is that of the last 10 % of the text in windows that do not overlap.
"""
import argparse
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import measure


def arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", type=Path, required=True)
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--peer", choices=("none", "T0", "T1"), default="T1")
    parser.add_argument("--name", default="recipe", help="of the files: DATE-NAME.md")
    parser.add_argument("--trainscope", type=Path,
                        default=measure.ROOT / "build/release/bin/trainscope")
    parser.add_argument("--python", default="/usr/bin/python3")
    parser.add_argument("--load-limit", type=float, default=0.06)
    parser.add_argument("--out", type=Path, default=measure.RESULTS)
    return parser.parse_args()


def characters(path):
    with open(path, encoding="utf-8", newline="") as file:
        return len(set(file.read()))


def train(options, seed):
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model.onnx"
        subprocess.run([options.trainscope, "model", "gpt2", "--layers", "4", "--heads", "4",
                        "--embedding", "128", "--context", "64", "--no-bias", "--activation",
                        "gelu", "--vocab", str(characters(options.text)), "--seed", str(seed),
                        "-o", model], check=True, stdout=subprocess.DEVNULL)
        command = [options.trainscope, "train", model, "--data", f"text:{options.text}",
                   "--batch", "12", "--seq", "64", "--steps", str(options.steps),
                   "--optimizer", "adamw", "--lr", "1e-3", "--min-lr", "1e-4",
                   "--schedule", "cosine", "--warmup", "100", "--betas", "0.9,0.99",
                   "--weight-decay", "0.1", "--decay", "matrices", "--clip", "1.0",
                   "--seed", str(seed), "--threads", str(options.threads), "--quiet",
                   "--progress", "none", "--run-dir", Path(folder) / "run", "--json"]
        result = measure.run_once(command, {})
    del result["run"], result["model"]  # paths of the temporary folder
    return {"seed": seed, "validation_loss": result["validation"]["loss"],
            "training_s": result["training_ms"] / 1e3, **result}


def train_peer(options, seed):
    command = [options.python, measure.ROOT / "bench/torch_recipe.py", "--text", options.text,
               "--seed", str(seed), "--steps", str(options.steps),
               "--threads", str(options.threads)]
    return measure.run_once(command, measure.peer_environment(options.peer, options.threads))


def row(name, runs):
    losses = [run["validation_loss"] for run in runs]
    times = [run["training_s"] for run in runs]
    return [name, f"{statistics.mean(losses):.4f}", " ".join(f"{loss:.4f}" for loss in losses),
            f"{statistics.median(times):.1f}", " ".join(f"{t:.1f}" for t in times)]


def main():
    options = arguments()
    kinds = {"Trainscope": train}
    if options.peer != "none":
        kinds[f"PyTorch {options.peer}"] = train_peer
    runs = {name: [] for name in kinds}
    for seed in map(int, options.seeds.split(",")):
        for name, run in kinds.items():
            result = measure.until_quiet(lambda r=run, s=seed: r(options, s), options.load_limit)
            runs[name].append(result)
            print(f"seed {seed} {name}: {result['validation_loss']:.4f} nats/character, "
                  f"{result['training_s']:.1f} s", file=sys.stderr)
    head = ["", "validation loss (mean)", "by seed", "training s (median)", "by seed"]
    body = measure.table(head, [row(name, each) for name, each in runs.items()])
    peers = {run["peer"] for each in runs.values() for run in each if "peer" in run}
    body += (f"\n{options.steps} steps, {options.threads} threads, {options.text.name}"
             f"{''.join(', ' + peer for peer in sorted(peers))}. Nats a character over the last "
             "10 % of the text in windows of 64 that do not overlap. Time of the training steps "
             "alone.\n")
    measure.write_report(options.name, "nanoGPT's small CPU recipe", body,
                         {"threads": options.threads, "steps": options.steps, "runs": runs},
                         options.out)


if __name__ == "__main__":
    main()
