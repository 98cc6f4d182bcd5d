#!/usr/bin/python3
"""What the program computes and plans, as a table: losses, trained tensors, arenas and layouts.

    scripts/behaviour_table.py build/release/bin/trainscope --out before.json
    scripts/behaviour_table.py build/release/bin/trainscope --compare before.json

A change that is to change nothing is made between the two. The numbers belong to one machine: its
instructions, its libraries, its number of threads. Rows:

- train: a few steps of each model in each mode. `losses` and `tensors` are SHA-256 of the losses
  as written (17 digits) and of every tensor of the last checkpoint (parameters, states, moments);
  the arena's bytes, lower bound, persistent and workspace bytes; `layout` is SHA-256 of the sorted
  (offset, bytes) of all buffers.
- plan: models too large to train here, with budgets.
- world: plans for devices that are not here (`plan --target`), as the program prints them.

Exit code 1 where a row is an error, or one of the earlier table is missing or differs, each with
its fields.
"""
import argparse
import datetime
import hashlib
import json
import os
import platform
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "bench"))
import measure  # noqa: E402

STEPS = 5

# Name -> words for `model`; the loss where it is not the default.
MODELS = {
    "mlp": ["mlp", "--dims", "33,40,40,7"],
    "mlp-wide": ["mlp", "--dims", "300,520,520,10"],
    "lenet": ["lenet"],
    "resnet": ["resnet", "--image", "32", "--stem", "cifar", "--width", "8", "--classes", "10"],
    "resnet-50": ["resnet", "--image", "32", "--width", "8", "--classes", "10", "--bottleneck",
                  "--blocks", "1,2,1,1"],
    "gpt2": ["gpt2", "--layers", "2", "--heads", "4", "--embedding", "32", "--vocab", "65",
             "--context", "24"],
    "gpt2-dropout": ["gpt2", "--layers", "2", "--heads", "4", "--embedding", "48", "--vocab", "97",
                     "--context", "40", "--dropout", "0.1"],
    "bert": ["bert", "--layers", "2", "--heads", "4", "--embedding", "32", "--feed-forward", "64",
             "--vocab", "99", "--context", "20", "--mask"],
    "llama": ["llama", "--layers", "2", "--heads", "4", "--kv-heads", "2", "--embedding", "32",
              "--feed-forward", "64", "--vocab", "96", "--context", "22"],
    "vit": ["vit", "--layers", "2", "--heads", "4", "--embedding", "32", "--feed-forward", "64",
            "--image", "32", "--patch", "8", "--classes", "10"],
    "unet": ["unet", "--image", "32", "--width", "8", "--depth", "2"],
}
# Exports of PyTorch, from tests/data/models.
REFERENCE_MODELS = ("mlp", "lenet", "resnet18", "gpt2", "gpt2-dropout", "bert", "llama")
REFERENCE_MODES = ("default", "one-thread", "strict", "bf16", "chains", "recompute-2", "overhead",
                   "offload", "accumulate", "no-passes")
TRANSFORMERS = ("gpt2", "gpt2-dropout", "bert", "llama", "vit")
TOKENS = {"gpt2": 24, "gpt2-dropout": 37, "bert": 20, "llama": 22}  # of a sequence

# Name -> flags of `train`, and the models that have it; None: all.
MODES = {
    "default": ([], None),
    "one-thread": (["--threads", "1"], None),
    "three-threads": (["--threads", "3"], None),
    "strict": (["--deterministic", "strict"], None),
    "reference-kernels": (["--kernels", "reference"], None),
    "direct-kernels": (["--kernels", "direct"], ("lenet", "resnet", "unet")),
    "bf16": (["--precision", "bf16"], None),
    "fp16": (["--precision", "fp16"], None),
    "chains": (["--op-chains", "auto"], None),
    "given-order": (["--op-order", "given"], None),
    "recompute-1": (["--recompute", "1"], None),
    "recompute-2": (["--recompute", "2"], None),
    "overhead": (["--max-overhead", "20%"], None),
    "offload": (["--max-overhead", "20%", "--offload"], None),
    "offload-bf16": (["--max-overhead", "20%", "--offload", "--precision", "bf16"], TRANSFORMERS),
    "accumulate": (["--accumulate", "3"], None),
    "early-update": (["--optimizer-in-backward"], None),
    "sgd": (["--optimizer", "sgd", "--momentum", "0.9"], None),
    "lamb": (["--optimizer", "lamb", "--clip", "1"], None),
    "loss-chunks": (["--loss-chunks", "4"], TOKENS),
    "skip-ignored": (["--skip-ignored"], TOKENS),
    "sparse-embeddings": (["--sparse-embeddings"], TOKENS),
    # Without three passes, two of them under their former names, which earlier programs know.
    "no-passes": (["--disable", "fuse_attention", "--disable", "merge_products",
                   "--disable", "summed_products"], None),
}

PLANS = {
    "gpt2-124M": ["gpt2:124M", "--batch", "4", "--seq", "64"],
    "gpt2-124M-budget": ["gpt2:124M", "--batch", "8", "--seq", "256", "--memory-budget", "2.5GiB"],
    "gpt2-355M-offload": ["gpt2:355M", "--batch", "4", "--seq", "256", "--memory-budget", "5.6GiB",
                          "--offload"],
    "bert-base": ["bert:base", "--batch", "8", "--seq", "128"],
    "resnet-18": ["resnet:18-cifar", "--batch", "32"],
    "resnet-50-budget": ["resnet:50", "--batch", "16", "--memory-budget", "1300MiB"],
    "llama-1.1B": ["llama:1.1B", "--batch", "1", "--seq", "128"],
    "vit-base": ["vit:base", "--batch", "8"],
    "unet": ["unet", "--batch", "2"],
}

WORLDS = {
    "zero-1": ["gpt2:124M", "--batch", "8", "--seq", "256", "--world", "1,8,64", "--zero", "1"],
    "zero-2": ["gpt2:355M", "--batch", "8", "--seq", "256", "--world", "8,512", "--zero", "2"],
    "zero-3": ["gpt2:355M", "--batch", "8", "--seq", "256", "--world", "8", "--zero", "3"],
    "tensor": ["gpt2:355M", "--batch", "8", "--seq", "256", "--world", "8", "--tensor-parallel",
               "4"],
    "pipeline": ["gpt2:355M", "--batch", "4", "--seq", "256", "--world", "8", "--pipeline", "4",
                 "--accumulate", "8"],
    "all": ["llama:1.1B", "--batch", "4", "--seq", "256", "--world", "16", "--pipeline", "2",
            "--tensor-parallel", "2", "--zero", "1", "--accumulate", "4", "--precision", "bf16"],
    "bert": ["bert:base", "--batch", "8", "--seq", "128", "--world", "4", "--zero", "2"],
    "resnet": ["resnet:50", "--batch", "16", "--world", "8", "--zero", "1"],
}

PLAN_FIELDS = ("arena_bytes", "host_arena_bytes", "lower_bound_bytes", "persistent_bytes",
               "workspace_bytes")


def sha(data):
    return hashlib.sha256(data).hexdigest()[:24]


class Program:
    def __init__(self, path):
        self.path = path
        self.environment = {name: value for name, value in os.environ.items()
                            if not name.startswith("TRAINSCOPE_")}

    def run(self, *words):
        """The JSON that a verb prints, or its exit code and last line."""
        done = subprocess.run([self.path, *words, "--json", "-q"], capture_output=True, text=True,
                              env=self.environment, check=False)
        if done.returncode != 0:
            lines = [line for line in done.stderr.splitlines() if "error" in line]
            return {"exit_code": done.returncode, "error": lines[0] if lines else ""}
        return json.loads(done.stdout)


def tensors_hash(run):
    """Of all tensors of the newest checkpoint, by name."""
    folder = max((run / "checkpoints").iterdir())
    rows = []
    for path in sorted(folder.glob("*.safetensors")):
        data = path.read_bytes()
        head_bytes = int.from_bytes(data[:8], "little")
        head = json.loads(data[8:8 + head_bytes])
        for name, about in sorted(head.items()):
            if name == "__metadata__":
                continue
            begin, end = (8 + head_bytes + at for at in about["data_offsets"])
            rows.append(f"{name} {about['dtype']} {about['shape']} {sha(data[begin:end])}")
    return sha("\n".join(rows).encode())


def layout_hash(plan):
    buffers = [(buffer["offset"], buffer["bytes"]) for buffer in plan["buffers"]]
    host = [(buffer["offset"], buffer["bytes"]) for buffer in plan["host_buffers"]]
    return sha(repr((sorted(buffers), sorted(host))).encode())


def train_row(program, model, flags, folder):
    run = folder / "run"
    result = program.run("train", str(model), "--data", "synthetic", "--steps", str(STEPS),
                         "--run-dir", str(run), *flags)
    if "exit_code" in result:
        return result
    lines = (run / "metrics.jsonl").read_text("utf-8").splitlines()
    losses = [repr(json.loads(line)["loss"]) for line in lines]
    plan = json.loads((run / "plan.json").read_text("utf-8"))
    return {"losses": sha("\n".join(losses).encode()), "last_loss": losses[-1],
            "tensors": tensors_hash(run), "layout": layout_hash(plan),
            **{name: plan[name] for name in PLAN_FIELDS}}


def rows_of(program, wanted):
    """(name, row) of every case whose name holds `wanted`."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        for model, words in MODELS.items():
            path = root / f"{model}.onnx"
            made = program.run("model", *words, "-o", str(path))
            if "exit_code" in made:
                sys.exit(f"model {model}: {made['error']} (exit code {made['exit_code']})")
            for mode, (flags, models) in MODES.items():
                case = f"train/{model}/{mode}"
                if (models is None or model in models) and wanted in case:
                    with tempfile.TemporaryDirectory(dir=root) as folder:
                        sizes = ["--seq", str(TOKENS[model])] if model in TOKENS else []
                        yield case, train_row(program, path, [*sizes, *flags], Path(folder))
        for model in REFERENCE_MODELS:
            path = ROOT / "tests/data/models" / model / "model.onnx"
            loss = ["--loss", "nll:output=log_probs"] if model == "lenet" else []
            for mode in REFERENCE_MODES:
                case = f"train/reference-{model}/{mode}"
                if wanted in case:
                    with tempfile.TemporaryDirectory(dir=root) as folder:
                        yield case, train_row(program, path, [*loss, *MODES[mode][0]], Path(folder))
    for plan, words in PLANS.items():
        if wanted in f"plan/{plan}":
            result = program.run("plan", *words)
            yield f"plan/{plan}", ({key: result[key] for key in PLAN_FIELDS}
                                   if "arena_bytes" in result else result)
    for world, words in WORLDS.items():
        if wanted in f"world/{world}":
            result = program.run("plan", *words, "--target", "h200")
            yield f"world/{world}", result if "exit_code" in result else {
                "plan": sha(json.dumps(result, sort_keys=True).encode()),
                "peaks": [row["peak_bytes"] for row in result["worlds"]]}


def machine():
    first = {}
    for line in Path("/proc/cpuinfo").read_text("ascii").splitlines():
        key, _, value = line.partition(":")
        first.setdefault(key.strip(), value.strip())
    return (f"{first.get('model name', platform.machine())}, family {first.get('cpu family')}, "
            f"model {first.get('model')}, {len(os.sched_getaffinity(0))} threads, "
            f"ONEDNN_MAX_CPU_ISA={os.environ.get('ONEDNN_MAX_CPU_ISA', '')}")


def write_table(path, rows):
    """A line for each row, so that tables can be compared by eye too."""
    about = {"command": shlex.join(["scripts/behaviour_table.py", *sys.argv[1:]]),
             "date": f"{datetime.date.today()}", "commit": measure.commit(), "machine": machine(),
             "steps": STEPS}
    head = json.dumps(about)[:-1]
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(row)}" for name, row in rows.items())
    path.write_text(f'{head}, "rows": {{{lines}}}}}\n', encoding="utf-8")


def differences(before, now):
    for name, row in before.items():
        if name not in now:
            yield f"{name}: missing"
            continue
        fields = [f"{key} {row.get(key)} -> {now[name].get(key)}"
                  for key in sorted({*row, *now[name]}) if row.get(key) != now[name].get(key)]
        if fields:
            yield f"{name}: {'; '.join(fields)}"


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="trainscope")
    parser.add_argument("--out", type=Path, help="write the table here")
    parser.add_argument("--compare", type=Path, metavar="TABLE", help="an earlier table")
    parser.add_argument("--only", default="", metavar="TEXT", help="cases whose name holds it")
    options = parser.parse_args()
    rows = {}
    for name, row in rows_of(Program(options.program), options.only):
        rows[name] = row
        print(name, row.get("last_loss", row.get("error", "")), flush=True)
    if options.out:
        write_table(options.out, rows)
    errors = [name for name, row in rows.items() if "exit_code" in row]
    for name in errors:
        print(f"{name}: {rows[name]['error']} (exit code {rows[name]['exit_code']})")
    if options.compare:
        before = json.loads(options.compare.read_text("utf-8"))
        if before["machine"] != machine():
            print(f"note: that table is of another machine: {before['machine']}")
        earlier = {name: row for name, row in before["rows"].items() if options.only in name}
        found = list(differences(earlier, rows))
        print("\n".join(found))
        print(f"{len(earlier)} rows, {len(found)} differ")
        sys.exit(1 if found or errors else 0)
    sys.exit(1 if errors else 0)


if __name__ == "__main__":
    main()
