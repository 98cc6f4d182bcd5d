#!/usr/bin/env python3
"""One model in three engines, value by value: are all of PyTorch's and ONNX Runtime's tensors found
in Trainscope's traces, and are they within their limits?

    bench/three_engines.py --torch PYTHON [--ort PYTHON] [--ort-training PYTHON] [--out NAME]

gpt2, resnet18 and bert of tests/data/models are trained for ten steps of SGD by PyTorch, through
the interpreter of ONNX graphs (`python -m trainscope interpret`), and by Trainscope; ONNX Runtime
computes the values of step 1. mlp, llama and lenet are trained for ten steps of cross entropy by
ONNX Runtime Training, which is asked for every value of the forward pass. Trainscope trains each
twice: recorded as the step runs (`fused`), and with every value (`all`). Counted are the rows that
the other engine has in the first common step: paired with one of ours, under its own name or, of a
gradient that several values share, under another's; or with a fate in our trace
(docs/rewrites.md); or neither. PYTHON: interpreters with torch and onnx; onnxruntime;
onnxruntime-training-cpu. With --out writes bench/results/MONTH/DATE-NAME.md and .json.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import measure

sys.path.insert(0, str(measure.ROOT / "python"))
from trainscope.batches import Batches  # noqa: E402
from trainscope.summary import estimated_norm  # noqa: E402
from trainscope.tensor_file import write_tensors  # noqa: E402
from trainscope.trace import TraceReader  # noqa: E402

MODELS = measure.ROOT / "tests" / "data" / "models"
STEPS = 10
RATE = 0.01
FORWARD = ("gpt2", "resnet18", "bert")
TRAINED = ("mlp", "llama", "lenet")
RECORDED = ",".join(map(str, range(1, STEPS + 1)))


def value_of(key):
    """The key of the value of the model whose gradient, or state, a key is of."""
    kind, name = key.split(":", 1)
    return "act:" + (name.split("/", 1)[-1] if kind == "state" else name)


class Subject:
    """A model's runs, in a folder of its own."""

    def __init__(self, options, name, folder):
        self.options, self.name, self.folder = options, name, folder
        self.model = MODELS / name / "model.onnx"
        self.meta = json.loads((MODELS / name / "meta.json").read_text(encoding="utf-8"))
        self.folder.mkdir(parents=True)
        batches = Batches(MODELS / name / "reference.safetensors")
        first = next(iter(batches.of_step(1)[0].values()))
        self.batch = len(first)
        write_tensors(self.folder / "set.safetensors", batches.examples())
        (self.folder / "parameters.txt").write_text("\n".join(self.meta["trainable"]) + "\n",
                                                    encoding="utf-8")

    def checked(self, command, codes=(0,)):
        environment = {**os.environ, "PYTHONPATH": str(measure.ROOT / "python")}
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                              check=False, env=environment)
        if done.returncode not in codes:
            sys.exit(f"exit code {done.returncode}: {command}\n{done.stderr[-2000:]}")
        return done.stdout

    def loss(self, label):
        about = self.meta["loss"]
        return (f"cross_entropy:output={about['output']},{label}={about.get('label', 'labels')},"
                f"class_axis={about.get('class_axis', -1)},"
                f"ignore_index={about.get('ignore_index', -100)}")

    def ours(self, values):
        run = self.folder / f"ours-{values}"
        self.checked([self.options.build / "bin/trainscope", "train", self.model,
                      "--data", f"tensors:{self.folder / 'set.safetensors'}", "--batch", self.batch,
                      "--steps", STEPS, "--shuffle", "none", "--validation", "none",
                      "--loss", self.loss("labels"), "--optimizer", "sgd", "--lr", RATE,
                      "--parameters", self.folder / "parameters.txt",
                      "--record-numerics", "--record-steps", RECORDED, "--record-values", values,
                      "--threads", self.options.threads, "--quiet", "--run-dir", run])
        return run

    def python(self, interpreter, command, *words):
        run = self.folder / command
        self.checked([interpreter, "-m", "trainscope", command, self.model,
                      "--data", self.folder / "set.safetensors", "--batch", self.batch, *words,
                      "--run-dir", run])
        return run

    def trained_by(self, interpreter, command, *more):
        words = [*more, "--steps", STEPS, "--loss", self.loss("label"),
                 "--optimizer", f"sgd:lr={RATE}",
                 "--record-steps", RECORDED]
        if command == "interpret":
            words += ["--parameters", self.folder / "parameters.txt"]
        return self.python(interpreter, command, *words)

    def comparison(self, *runs):
        return json.loads(self.checked([self.options.build / "bin/trainscope", "compare", *runs,
                                        "--only", "tensors", "--json"], codes=(0, 9)))

    def compared(self, ours, other):
        facts = self.comparison(ours, other)
        step, alone = facts["steps"][0], facts["only_b"]
        paired = sum(row["step"] == step for row in facts["tensors"])
        fates = {name.value: name for name in TraceReader(ours).names}
        lost = [key for key in alone if not {key, value_of(key)} & set(fates)]
        others = self.by_other_names(ours, other, facts, fates)
        everything = paired + len(alone)
        return {"paired": paired, "by_other_names": len(others),
                "with_a_fate": len(alone) - len(lost) - len(others), "lost": lost,
                "paired_share": (paired + len(others)) / everything,
                "accounted_share": 1.0 - len(lost) / everything,
                "ours_alone": len(facts["only_a"]), "steps": len(facts["steps"]),
                "tensors": facts["paired"],
                "beyond": facts["faults"] + sum(over > 1.0 for over in others.values()),
                "first": facts["first"] and {key: facts["first"][key] for key in
                                             ("step", "phase", "value", "op", "error", "limit")}}

    @staticmethod
    def by_other_names(ours, other, facts, fates):
        """{key: error over limit} of their gradients of the first step that are those of other
        values too (of x + y): ours has one row for all of these, under one of their names."""
        step = facts["steps"][0]
        mine, theirs = TraceReader(ours), TraceReader(other)
        of_mine = {row.key(): at for at, row in enumerate(mine.rows) if row.step == step}
        of_theirs = {row.key(): at for at, row in enumerate(theirs.rows) if row.step == step}
        limits = {row["value"]: row["limit"] for row in facts["tensors"] if row["step"] == step}
        found = {}
        for key in facts["only_b"]:
            row = fates[key].row if key in fates and key.startswith("dact:") else ""
            if row not in of_mine or row not in limits:
                continue
            gap = estimated_norm(mine.sketch(of_mine[row]) - theirs.sketch(of_theirs[key]))
            norm = mine.rows[of_mine[row]].statistics.l2
            found[key] = gap / norm / limits[row] if norm > 0.0 else 0.0
        return found

    def in_one_table(self, ours, *others):
        """How many rows of one table have a number of each engine."""
        facts = self.comparison(ours, *others)
        of_b = {(row["step"], row["value"]) for row in facts["tensors"]}
        of_c = {(row["step"], row["value"]) for row in facts["c"]["tensors"]}
        return len(of_b & of_c)


def rows_of(options, name, folder):
    subject = Subject(options, name, folder)
    ours = {values: subject.ours(values) for values in ("fused", "all")}
    peers = {}
    if name in FORWARD:
        peers["PyTorch, ten steps"] = subject.trained_by(options.torch, "interpret")
        if options.ort:
            peers["ONNX Runtime, forward"] = subject.python(options.ort, "onnxruntime")
    elif options.ort_training:
        every = dict.fromkeys(row.value for row in TraceReader(ours["all"]).rows
                              if row.kind == "act" and row.step == 1)
        run = subject.trained_by(options.ort_training, "ort-training", "--values", ",".join(every))
        peers["ONNX Runtime Training, ten steps"] = run
    for values, run in ours.items():
        for engine, peer in peers.items():
            yield {"model": name, "engine": engine, "values": values, **subject.compared(run, peer)}
        if len(peers) == 2:
            yield {"model": name, "engine": "all three", "values": values,
                   "rows_of_all": subject.in_one_table(run, *peers.values())}


def line_of(row):
    first = row["first"]
    return [row["model"], row["engine"], row["values"], row["paired"], row["by_other_names"],
            row["with_a_fate"], len(row["lost"]), f"{row['paired_share']:.1%}",
            f"{row['accounted_share']:.1%}", row["ours_alone"], row["steps"], row["tensors"], row["beyond"],
            f"step {first['step']}, {first['value']}: {first['error']:.1e}, "
            f"limit {first['limit']:.1e}" if first else ""]


HEAD = ["model", "engine", "our values", "paired", "under another name", "with a fate", "neither",
        "share paired", "share accounted for", "ours alone", "steps", "tensors of all steps",
        "beyond", "first"]


def report(rows, found):
    """Tables of pairs of engines, and of those rows that have a number of all three."""
    pairs = [row for row in rows if "paired" in row]
    three = [[row["model"], row["values"], row["rows_of_all"]] for row in rows
             if "rows_of_all" in row]
    engines = ", ".join(f"{key.replace('_', ' ')} {version}" for key, version in found.items())
    text = f"Engines: {engines}.\n\n" + measure.table(HEAD, [line_of(row) for row in pairs])
    if three:
        text += ("\nRows of one table with a number of Trainscope, PyTorch and ONNX Runtime:\n\n"
                 + measure.table(["model", "our values", "rows"], three))
    return text


def versions(options):
    """Of the engines, by the interpreter that runs them."""
    found = {}
    for key, module in (("torch", "torch"), ("ort", "onnxruntime"),
                        ("ort_training", "onnxruntime")):
        interpreter = getattr(options, key)
        if interpreter:
            script = f"import {module}; print({module}.__version__)"
            done = subprocess.run([interpreter, "-c", script], capture_output=True, text=True,
                                  check=True)
            found[key] = done.stdout.strip().splitlines()[-1]
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--torch", required=True, help="a Python with torch and onnx")
    parser.add_argument("--ort", help="a Python with onnxruntime and onnx")
    parser.add_argument("--ort-training", help="a Python with onnxruntime-training-cpu and onnx")
    parser.add_argument("--models", default=",".join((*FORWARD, *TRAINED)))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--build", type=Path, default=measure.ROOT / "build" / "release")
    parser.add_argument("--out", help="name of the report")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name in options.models.split(","):
            for row in rows_of(options, name, Path(folder) / name):
                rows.append(row)
                print(*(line_of(row) if "paired" in row else row.values()), flush=True)
    pairs = [row for row in rows if "paired" in row]
    fine = all(row["accounted_share"] == 1.0 if row["values"] == "fused"
               else row["paired_share"] >= 0.95 for row in pairs)
    found = versions(options)
    body = report(rows, found)
    if options.out:
        measure.write_report(options.out, "Three engines, value by value", body,
                             {"versions": found, "rows": rows})
    else:
        print(body)
    sys.exit(0 if fine else 1)


if __name__ == "__main__":
    main()
