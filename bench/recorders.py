#!/usr/bin/env python3
"""Architectures as PyTorch exports them, recorded by module hooks and by the interpreter: do all
rows of the hooks have the right names, and are the numbers the same?

    bench/recorders.py [--only PATTERN,..] [--ways ts,plain] [--steps N] [--out NAME]

Each architecture of zoo_models.py is exported (zoo.py says how), one SGD step, or N, are recorded in
PyTorch by `trainscope.record` with the file for names, and by the interpreter on the file. Of the
rows that hooks write under names of the file all must be there, the forward ones within 1e-4 of their
norm, gradients within 1e-3 (or of a ten-thousandth of the largest; parameters that are but rounding
are measured by their step in the same way), at step N within N times that: a wrong name is off by
about 1. Needs PyTorch and onnx. With --out writes bench/results/MONTH/DATE-NAME.md and .json, which
say the version of PyTorch.
"""
import argparse
import fnmatch
import json
import os
import signal
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import measure
import zoo_report

sys.path.insert(0, str(measure.ROOT / "python"))
SECONDS = 300
RATE = 0.01
LIMITS = {"act": 1e-4, "dact": 1e-3, "grad": 1e-3, "param": 1e-4, "loss": 1e-5, "input": 0.0}


def recorded(name, way, steps, folder):
    """{"verdict": "equal", "unequal", "no export", "refused" or "not there", ..} of one
    architecture."""
    import torch
    import zoo
    import zoo_models
    torch.set_num_threads(1)
    torch.manual_seed(7)
    try:
        module, inputs, labels, kind = zoo_models.ZOO[name][1]()
    except (AttributeError, ImportError) as error:  # of another version, or a package
        return {"verdict": "not there", "why": first_line(error)}
    zoo.prepared_module(module, "train")
    state = {key: value.clone() for key, value in module.state_dict().items()}
    file = folder / "model.onnx"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            zoo.exported(module, inputs, way, str(file))
    except Exception as error:  # whatever an exporter throws
        return {"verdict": "no export", "why": first_line(error)}
    module.load_state_dict(state)
    hooks(module, inputs, labels, kind, file, steps, folder / "hooks")
    from trainscope.errors import TrainscopeError
    try:
        interpret(state, inputs, labels, kind, file, steps, folder / "nodes")
    except TrainscopeError as error:
        return {"verdict": "refused", "why": first_line(error).replace(str(file), "model.onnx")}
    return compared(folder / "hooks", folder / "nodes")


def first_line(error):
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]


def hooks(module, inputs, labels, kind, file, steps, run):
    import torch
    import trainscope
    import zoo
    optimizer = torch.optim.SGD(module.parameters(), lr=RATE)
    with trainscope.record(module, optimizer, run, names=file, steps=steps_to(steps)) as recorder:
        for _ in range(steps):
            optimizer.zero_grad()
            recorder.loss(zoo.loss_of(kind, module(*inputs.values()), labels)).backward()
            optimizer.step()


def steps_to(last):
    return range(1, last + 1)


def interpret(state, inputs, labels, kind, file, steps, run):
    from trainscope.graph_training import GraphTraining
    training = GraphTraining(file, {"kind": kind, "output": "logits", "label": "labels"},
                             {"kind": "sgd", "lr": RATE})
    held = training.interpreter.statistics
    held.update({key: state[key].clone() for key in held if key in state})
    batch = {**inputs, "labels": labels}
    training.train(lambda step: [batch], steps, run, recorded=steps_to(steps))


def compared(first, second):
    import numpy
    from trainscope.trace import TraceReader
    ours, theirs = TraceReader(first), TraceReader(second)
    places = {(row.step, row.key()): place for place, row in enumerate(theirs.rows)}
    largest = max((row.statistics.l2 for row in ours.rows if row.kind == "grad"), default=0.0)
    found = {"rows": 0, "own": 0, "steps": len({row.step for row in ours.rows} - {0}), "missing": [],
             "apart": []}
    for place, row in enumerate(ours.rows):
        if row.kind in ("own", "state"):
            found["own"] += row.kind == "own"
            continue
        at = places.get((row.step, row.key()))
        if at is None:
            found["missing"].append(row.key())
            continue
        found["rows"] += 1
        floor = {"dact": 1e-4 * largest, "grad": 1e-4 * largest,
                 "param": 1e-2 * RATE * largest}.get(row.kind, 1e-30)
        gap = numpy.linalg.norm(ours.sketch(place) - theirs.sketch(at))
        error = float(gap / max(row.statistics.l2, floor))
        if error > LIMITS[row.kind] * max(row.step, 1):
            found["apart"].append([row.key(), row.step, round(error, 6)])
    fine = not found["missing"] and not found["apart"]
    why = "" if fine else f"{found['missing'][:2]} missing, {found['apart'][:2]} apart"
    return {"verdict": "equal" if fine else "unequal", "why": why, **found}


def in_a_process(name, way, steps):
    """Some exporters change modules for good, or end the process."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, "--one", name, way, str(steps), folder]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                   text=True, start_new_session=True)
        try:
            output = process.communicate(timeout=SECONDS)[0]
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return {"verdict": "no export", "why": f"took more than {SECONDS} s"}
    lines = output.strip().splitlines()
    if process.returncode != 0 or not lines:
        return {"verdict": "failed", "why": f"exit code {process.returncode}"}
    return json.loads(lines[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="*", help="patterns of names, commas between")
    parser.add_argument("--ways", default="ts,plain")
    parser.add_argument("--steps", type=int, default=1, metavar="N")
    parser.add_argument("--out", help="name of the report")
    parser.add_argument("--one", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        name, way, steps, folder = options.one
        print(json.dumps(recorded(name, way, int(steps), Path(folder))))
        return
    import torch
    import zoo_models
    ways = options.ways.split(",")
    names = [name for name in sorted(zoo_models.ZOO)
             if any(fnmatch.fnmatch(name, pattern) for pattern in options.only.split(","))]
    rows = {}
    for name in names:
        rows[name] = {"family": zoo_models.ZOO[name][0],
                      "ways": {way: in_a_process(name, way, options.steps) for way in ways}}
        print(f"{name:<40}", *(f"{way} {each['verdict']:<10} {each['why'][:100]}"
                               for way, each in rows[name]["ways"].items()), flush=True)
    print(zoo_report.counts(rows, ways))
    if options.out:
        count = sum(each.get("rows", 0) for row in rows.values() for each in row["ways"].values())
        about = (f"PyTorch {torch.__version__}, {options.steps} "
                 f"step{'s' if options.steps > 1 else ''}, {count} rows compared\n\n")
        measure.write_report(options.out, "Recorders of PyTorch: module hooks and the interpreter",
                             about + zoo_report.report(rows, ways) + "\n",
                             {"torch": torch.__version__, "steps": options.steps, "rows": rows})


if __name__ == "__main__":
    main()
