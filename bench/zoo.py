#!/usr/bin/env python3
"""Architectures as PyTorch exports them, trained here and in PyTorch: are the losses the same?

    bench/zoo.py --folder DIR [--only PATTERN] [--ways ts,dynamo,plain] [--mode train|eval]
                 [--program FILE] [--out NAME]

Each architecture of zoo_models.py is exported three ways: `ts` (the TorchScript exporter), `dynamo`
(torch.onnx.export(dynamo=True)) and `plain` (that with optimize=False), in training mode with
dropout 0, and trained 5 steps of plain SGD on one batch. With `--mode eval` it is exported in eval(),
trained in eval() in PyTorch and with `--batch-norm running` here. A model is `equal` when all losses and all
parameters are those of PyTorch in f64 within 1e-5 of their norm, or within 20 times what PyTorch in
f32 is off from that; `equal by step` where the whole run is not, and each of its steps is what PyTorch makes in f64
of our parameters before it (zoo_steps.py). Exports and PyTorch's numbers are kept in
DIR: a second run measures the program alone. Needs PyTorch (1.13 or newer, whose own exporter is
`ts` alone before 2.5), torchvision, timm, transformers and onnx. With --out writes
bench/results/MONTH/DATE-NAME.md and .json.
"""
import argparse
import fnmatch
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python"))
from trainscope.tensor_file import read_tensors, write_tensors  # noqa: E402

from zoo_exports import exported, prepared_module
from zoo_report import counts, report

STEPS = 5
RATE = 0.01
WAYS = ("ts", "dynamo", "plain")
LIMIT = 1e-5
NOISE = 20
EXPORT_SECONDS = 1500
TRAIN_SECONDS = 300


def loss_of(kind, output, labels):
    from torch.nn import functional
    if kind == "mse":
        return functional.mse_loss(output, labels)
    return functional.cross_entropy(output.reshape(-1, output.shape[-1]), labels.reshape(-1))


def train_in_pytorch(module, inputs, labels, kind, order=None, steps=STEPS):
    """Losses, and the tensors after the last step."""
    import torch
    if order is not None:
        inputs = {name: value[order] for name, value in inputs.items()}
        labels = labels[order]
    optimizer = torch.optim.SGD(module.parameters(), lr=RATE)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = loss_of(kind, module(*inputs.values()), labels)
        loss.backward()
        losses.append(loss.item())
        optimizer.step()
    return losses, {name: value.detach().clone() for name, value in module.state_dict().items()}


def export_one(name, way, file, mode):
    """Runs in a process of its own: some exporters change the module."""
    import torch
    import zoo_models
    torch.manual_seed(7)
    _, make = zoo_models.ZOO[name]
    module, inputs, _, _ = make()
    prepared_module(module, mode)
    exported(module, inputs, way, file, mode)


def in_f64(module, inputs, labels, kind, steps=STEPS):
    """What train_in_pytorch gives in f64; None where the module computes in f32 regardless."""
    import torch

    def wide(value):
        return value.double() if value.is_floating_point() else value
    try:
        module = module.double()
        return train_in_pytorch(module, {k: wide(v) for k, v in inputs.items()}, wide(labels), kind,
                                steps=steps)
    except RuntimeError:
        torch.set_default_dtype(torch.float32)
        return None


def reference(name, folder, mode):
    """PyTorch's numbers: losses, tensors before and after, its own noise, and the batch. In f64
    where the module can; what f32 is off from that on the batch in two orders is its noise."""
    import copy
    import torch
    import zoo_models
    torch.manual_seed(7)
    family, make = zoo_models.ZOO[name]
    module, inputs, labels, kind = make()
    prepared_module(module, mode)
    before = {k: v.detach().clone() for k, v in module.state_dict().items()}
    trained = {k for k, p in module.state_dict(keep_vars=True).items() if p.requires_grad}
    truth = in_f64(copy.deepcopy(module), inputs, labels, kind)
    other = copy.deepcopy(module)
    runs = [train_in_pytorch(module, inputs, labels, kind),
            train_in_pytorch(other, inputs, labels, kind, torch.arange(zoo_models.BATCH).flip(0))]
    losses, after = truth or runs[0]
    batch = {k: torch.cat([v, v[:1]]).contiguous() for k, v in inputs.items()}
    batch["labels"] = torch.cat([labels, labels[:1]]).contiguous()  # the last one would validate
    write_tensors(folder / "batch.safetensors", batch)
    for file, tensors in (("before", before), ("after", after)):
        write_tensors(folder / f"{file}.safetensors", tensors)
    noise = {k: max(float((run[k].double() - after[k].double()).norm()) for _, run in runs)
             for k in after}
    noise_losses = max((run[0] for run in runs),
                       key=lambda run: max(abs(a - b) for a, b in zip(run, losses)))
    facts = {"family": family, "loss": kind, "losses": losses, "noise_losses": noise_losses,
             "noise": noise, "trained": sorted(trained), "batch": zoo_models.BATCH,
             "truth": "f64" if truth else "f32"}
    (folder / "reference.json").write_text(json.dumps(facts))


def apart(work, *arguments):
    """Runs in a process of its own, without importing PyTorch again; its error, or nothing."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            signal.alarm(EXPORT_SECONDS)
            work(*arguments)
            os._exit(0)
        except BaseException as error:  # pylint: disable=broad-except
            text = (str(error).strip().splitlines() or [type(error).__name__])[0]
            os.write(write, text[:200].encode())
            os._exit(1)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        text = pipe.read().decode(errors="replace")
    status = os.waitpid(child, 0)[1]
    return None if status == 0 else text or f"ended with status {status}"


def prepare(name, ways, folder, mode):
    """Makes what is missing of the reference and the exports; notes why an export failed."""
    import torch  # pylint: disable=unused-import
    import zoo_models  # pylint: disable=unused-import
    if not (folder / "reference.json").exists():
        error = apart(reference, name, folder, mode)
        if error:
            (folder / "reference.failed").write_text(error)
            return
    for way in ways:
        file, note = folder / f"{way}.onnx", folder / f"{way}.failed"
        if file.exists() or note.exists():
            continue
        error = apart(export_one, name, way, str(file), mode)
        if error:
            file.unlink(missing_ok=True)
            note.write_text(error)


def prepared(name, ways, folder, mode):
    """The failures of the exporters by way; what was made before is not made again."""
    folder.mkdir(parents=True, exist_ok=True)
    done = [folder / f"{way}.{kind}" for way in ways for kind in ("onnx", "failed")]
    if sum(map(Path.exists, done)) < len(ways) or not (folder / "reference.json").exists():
        command = [sys.executable, __file__, "--prepare", name, ",".join(ways), folder, mode]
        subprocess.run(list(map(str, command)), stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, check=False)
    if (folder / "reference.failed").exists():
        why = (folder / "reference.failed").read_text()
        return {way: f"reference: {why}" for way in ways}
    failed = {}
    for way in ways:
        note = folder / f"{way}.failed"
        if note.exists() or not (folder / f"{way}.onnx").exists():
            failed[way] = note.read_text() if note.exists() else "no file"
    return failed


def counterparts(model, before):
    """PyTorch's name -> initializers with its elements before training, transposed or not."""
    import numpy
    import onnx
    from onnx import numpy_helper
    known = {}
    for tensor in onnx.load(model).graph.initializer:
        array = numpy_helper.to_array(tensor)
        known.setdefault((array.shape, array.tobytes()), []).append(tensor.name)
    found = {}
    for name, value in before.items():
        found[name] = [(one, False) for one in known.get((value.shape, value.tobytes()), [])]
        if value.ndim == 2:
            turned = numpy.ascontiguousarray(value.T)
            found[name] += [(one, True) for one in known.get((turned.shape, turned.tobytes()), [])]
    return found


def relative(error, norm):
    return error / norm if norm > 0 else error


def rows_error(ours, before, truth):
    """Of an embedding of which the file has only the rows that are read: the error of these. They
    are the ones that PyTorch's training changes, in their order."""
    import numpy
    if ours.ndim != 2 or truth.ndim != 2 or ours.shape[1] != truth.shape[1]:
        return []
    changed = [i for i in range(len(truth)) if (truth[i] != before[i]).any()]
    if len(changed) != len(ours):
        return []
    return [numpy.linalg.norm(ours.astype("f8") - truth[changed])]


def worst_parameter(run, model, folder, facts):
    """The largest error over its limit of a trained parameter, and those that were not found."""
    import numpy
    before, after = (read_tensors(folder / f"{file}.safetensors") for file in ("before", "after"))
    ours = read_tensors(sorted(run.glob("checkpoints/*/model.safetensors"))[-1])
    counterpart = counterparts(model, before)
    worst, missing = (0.0, ""), []
    for target in facts["trained"]:
        truth = after[target].astype("f8")
        moved = numpy.linalg.norm(truth - before[target].astype("f8"))
        own = [(name, False) for name in (target, f"module.{target}") if name in ours]
        errors = []
        for name, turned in own or counterpart[target]:
            if name in ours and ours[name].size == truth.size:
                mine = (ours[name].T if turned else ours[name]).astype("f8")
                errors.append(numpy.linalg.norm(mine.reshape(truth.shape) - truth))
        if not errors and target in ours:
            errors = rows_error(ours[target], before[target], truth)
        if not errors and moved > 0:
            missing.append(target)
        if errors:
            limit = max(LIMIT * numpy.linalg.norm(truth), NOISE * facts["noise"][target], 1e-7)
            worst = max(worst, (float(min(errors) / limit), target))
    return worst, missing


def what_the_file_lacks(way, folder, facts):
    """Flags for float buffers and single numbers among the initializers of the TorchScript exporter's
    files, which do not tell them from parameters and constants: who exported the model can."""
    import onnx
    if way != "ts":
        return []
    before = read_tensors(folder / "before.safetensors")
    model = onnx.load(folder / f"{way}.onnx", load_external_data=False)
    own = {tensor.name for tensor in model.graph.initializer}
    names = [name for name, value in before.items() if value.dtype.kind == "f" and name in own
             and name not in facts["trained"] and "running_" not in name]
    single = [name for name, value in before.items()
              if value.ndim == 0 and name in own and name in facts["trained"]]
    return ([word for name in names for word in ("--freeze", name)] +
            [word for name in single for word in ("--train", name)])


def trained_run(way, folder, program, facts, mode="train", steps=STEPS):
    """Trains the export; the run's folder and no verdict, or no folder and why there is none."""
    run = folder / f"run-{way}"
    shutil.rmtree(run, ignore_errors=True)
    loss = f"{facts['loss']}:output=logits,labels=labels"
    command = [program, "train", folder / f"{way}.onnx", "--data",
               f"tensors:{folder / 'batch.safetensors'}", "--loss", loss, "--optimizer", "sgd",
               "--lr", str(RATE), "--steps", str(steps), "--batch", str(facts["batch"]),
               "--run-dir", run, "--save-every", "0", "--quiet",
               "--batch-norm", {"train": "batch", "eval": "running"}[mode],
               *what_the_file_lacks(way, folder, facts)]
    try:
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True,
                              timeout=TRAIN_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return None, {"verdict": "crash", "why": f"no answer in {TRAIN_SECONDS} s"}
    if done.returncode < 0 or done.returncode > 64:
        return None, {"verdict": "crash", "why": f"exit {done.returncode}"}
    if done.returncode != 0:
        text = " | ".join(line.strip() for line in done.stderr.strip().splitlines())
        text = text.replace(f"{folder}/", "")
        kind = "not finite" if "the loss is" in text else "refused"
        return None, {"verdict": kind, "why": text[:600]}
    return run, None


def losses_of(run):
    lines = (run / "metrics.jsonl").read_text().splitlines()
    return [r["loss"] for r in map(json.loads, lines) if "loss" in r and "step" in r][:STEPS]


def verdict(name, way, folder, program, mode):
    """Of one export. Where whole runs part, as at an element on a kink, each step is held against PyTorch
    on its own."""
    facts = json.loads((folder / "reference.json").read_text())
    result = whole_run(way, folder, program, mode, facts)
    if result["verdict"] != "differs" or mode != "train":
        return result
    import zoo_steps
    why = zoo_steps.verdict(name, way, folder, program, facts)
    if why:
        return result | {"why": f"{result['why']}; {why}"}
    return result | {"verdict": "equal by step", "why": f"each step is right from our own parameters: {result['why']}"}


def whole_run(way, folder, program, mode, facts):
    run, failure = trained_run(way, folder, program, facts, mode)
    if failure:
        return failure
    losses = losses_of(run)
    error = max(relative(abs(a - b), abs(b)) for a, b in zip(losses, facts["losses"]))
    noise = max(relative(abs(a - b), abs(b))
                for a, b in zip(facts["noise_losses"], facts["losses"]))
    result = {"loss_error": error, "loss_noise": noise}
    (worst, at), missing = worst_parameter(run, folder / f"{way}.onnx", folder, facts)
    result |= {"worst_parameter": worst, "at": at, "missing": missing[:5]}
    shutil.rmtree(run, ignore_errors=True)
    if error > max(LIMIT, NOISE * noise):
        return result | {"verdict": "differs", "why": f"losses {losses} not {facts['losses']}"}
    if missing or worst > 1.0:
        return result | {"verdict": "differs", "why": f"parameters: {missing[:3]} {at} {worst:.3g}"}
    return result | {"verdict": "equal", "why": ""}


def main():
    if sys.argv[1:2] == ["--prepare"]:
        return prepare(sys.argv[2], sys.argv[3].split(","), Path(sys.argv[4]), sys.argv[5])
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, required=True, help="kept between runs")
    parser.add_argument("--only", default="*", help="architectures by name, * for any text")
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--mode", choices=("train", "eval"), default="train")
    parser.add_argument("--program", default="build/release/bin/trainscope")
    parser.add_argument("--out", help="name of a report in bench/results")
    arguments = parser.parse_args()
    import zoo_models
    ways = arguments.ways.split(",")
    rows = {}
    for name in sorted(zoo_models.ZOO):
        if not any(fnmatch.fnmatch(name, each) for each in arguments.only.split(",")):
            continue
        folder = arguments.folder / arguments.mode / name
        start = time.monotonic()
        failed = prepared(name, ways, folder, arguments.mode)
        row = {"family": zoo_models.ZOO[name][0], "ways": {}}
        for way in ways:
            row["ways"][way] = ({"verdict": "no export", "why": failed[way]} if way in failed else
                                verdict(name, way, folder, arguments.program, arguments.mode))
        rows[name] = row
        cells = "  ".join(f"{way} {row['ways'][way]['verdict']:<10}" for way in ways)
        print(f"{name:<40} {cells} {time.monotonic() - start:6.1f} s", flush=True)
        for way in ways:
            if row["ways"][way]["verdict"] not in ("equal", "equal by step", "no export"):
                print(f"    {way}: {row['ways'][way]['why'][:260]}", flush=True)
    for way, of_way in counts(rows, ways).items():
        print(f"{way}: " + ", ".join(f"{n} {what}" for what, n in sorted(of_way.items())))
    if arguments.out:
        import measure
        title = f"Architectures as PyTorch exports them in {arguments.mode} mode"
        measure.write_report(arguments.out, title, report(rows, ways),
                             {"rows": rows})
    return 0


if __name__ == "__main__":
    sys.exit(main())
