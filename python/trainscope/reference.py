"""References of your own: a folder with a torch module's numbers, for `trainscope verify FOLDER`.

    python -m trainscope.reference export my_model.py:reference --out FOLDER

reference() returns a dict: "module" (torch.nn.Module), "batches" (two of {argument of forward() or
name of the labels: tensor}, whose first dimension is examples), "loss" ({"kind": "cross_entropy",
"label": "labels"}, as in tests/data/README.md), and may have "optimizers", "output" (name),
"dynamic_axes" (as torch.onnx.export takes them), "seed" and "name". The module returns the loss's
input, or it first.
"""
import copy
import importlib.util
import json
import re
import sys
import warnings
from pathlib import Path

import numpy
import torch

from .errors import TrainscopeError
from .onnx_graph import Graph
from .reference_runs import ModuleRuns, as_f64, joined, relative
from .reference_values import GraphNumbers, digits, shape_text, values_table
from .tensor_file import write_tensors
from .torch_recorder import first_tensor

ORDERS = (0, 1, 2, 3)  # of a batch's examples, on which noise is measured
STEPS = 10
# Ops that move elements alone: an engine may have no tensor for what they make.
_MOVEMENT = ("Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Identity", "Dropout", "Cast",
             "Slice", "Split", "Concat", "Expand", "Gather")
OPTIMIZERS = {
    "adamw": {"kind": "adamw", "betas": [0.9, 0.999], "eps": 1e-8, "weight_decay": 0.01,
              "lr": [1e-3] * STEPS},
    "sgdm": {"kind": "sgd", "momentum": 0.9, "dampening": 0.0, "nesterov": False,
             "weight_decay": 5e-4, "lr": [0.02] * STEPS},
}


def load(where):
    """The dict that the function of "FILE.py:FUNCTION" or "PACKAGE.MODULE:FUNCTION" returns."""
    file, _, function = where.rpartition(":")
    if not file or not function:
        raise TrainscopeError(f"'{where}': expected FILE.py:FUNCTION or MODULE:FUNCTION", 2)
    try:
        if file.endswith(".py"):
            spec = importlib.util.spec_from_file_location(Path(file).stem, file)
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
        else:
            module = importlib.import_module(file)
        return getattr(module, function)()
    except (OSError, ImportError, AttributeError) as error:
        raise TrainscopeError(f"'{where}' cannot be called: {error}", 2) from error


def export(about, folder):
    """Writes the reference of what load() returned into a folder; meta.json's content.

    Takes about 150 forward and backward passes, on the CPU. Raises TrainscopeError for a module
    whose numbers are random (dropout), that the exporter or the interpreter refuses, or whose
    parameters are not in the file under their names.
    """
    module, batches, loss = _checked(about)
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    state = copy.deepcopy(module.state_dict())
    _export_graph(about, module, batches[0], loss, folder / "model.onnx")
    module.load_state_dict(state)
    graph = Graph(folder / "model.onnx")
    names, tied = _names(module, graph)
    runs = ModuleRuns(module, batches, loss, names)
    numbers = GraphNumbers(graph, list(names.values()), loss, batches[0])
    gradients = [(*runs.gradients("f32", order), order) for order in ORDERS]
    exact_loss, exact = runs.gradients("f64")
    noise = _noise(numbers, exact_loss, exact, gradients)
    optimizers = {**OPTIMIZERS, **about.get("optimizers", {})}
    trained = {name: _optimizer_file(runs, optimizers[name], folder / f"{name}.safetensors")
               for name in ("adamw", "sgdm")}
    start = {name: as_f64(p) for name, p in runs.parameters(module).items()}
    _write(folder / "values.tsv", values_table(numbers.rows))
    _write(folder / "params.tsv", _parameters_table(start, exact, gradients, noise, trained))
    _reference_file(folder / "reference.safetensors", batches, numbers, exact_loss, exact, gradients)
    meta = _meta(about, module, graph, batches, loss, names, tied, optimizers, noise, trained, start)
    _write(folder / "meta.json", json.dumps(meta, indent=1) + "\n")
    return meta


def _checked(about):
    missing = [key for key in ("module", "batches", "loss") if key not in about]
    if missing:
        raise TrainscopeError(f"the function's dict has no '{missing[0]}'", 2)
    module = about["module"].cpu().float().train()
    for path, each in module.named_modules():
        if isinstance(each, torch.nn.modules.dropout._DropoutNd) and each.p > 0.0:
            raise TrainscopeError(f"module '{path}' drops elements at random: set its p to 0, as a "
                                  "reference's numbers must not depend on a generator", 2)
    loss = {"label": "labels", "output": about.get("output", "output"), **about["loss"]}
    batches = [{name: torch.as_tensor(tensor) for name, tensor in batch.items()}
               for batch in about["batches"]]
    if loss["label"] not in batches[0]:
        raise TrainscopeError(f"batches have no labels '{loss['label']}'", 2)
    return module, (batches if len(batches) > 1 else batches * 2)[:2], loss


def _export_graph(about, module, batch, loss, path):
    inputs = {name: tensor for name, tensor in batch.items() if name != loss["label"]}
    arguments = {"input_names": list(inputs), "output_names": [loss["output"]], "opset_version": 17,
                 "training": torch.onnx.TrainingMode.TRAINING, "do_constant_folding": False,
                 "dynamic_axes": about.get("dynamic_axes")}
    if tuple(int(part) for part in re.findall(r"\d+", torch.__version__)[:2]) >= (2, 5):
        arguments["dynamo"] = False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.onnx.export(module, ({**inputs},) if _takes_only_named(module, inputs) else
                              tuple(inputs.values()), str(path), **arguments)
    except Exception as error:  # the exporter's kinds of error differ between its versions
        line = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise TrainscopeError(f"torch.onnx.export refuses the module: {line}") from error


def _takes_only_named(module, inputs):
    """Whether the batch's order is another than that of forward()'s arguments."""
    code = module.forward.__code__
    return list(inputs) != list(code.co_varnames[1:1 + len(inputs)])


def _names(module, graph):
    """({name in the module: name in the file} of what is trained, {second name: first} of ties)."""
    names, tied, first = {}, {}, {}
    for name, parameter in module.state_dict(keep_vars=True).items():
        if not isinstance(parameter, torch.nn.Parameter):
            continue
        if id(parameter) in first:
            tied[name] = first[id(parameter)]
        else:
            first[id(parameter)] = name
    aliases = {}
    for second, name in tied.items():
        aliases.setdefault(name, []).append(second)
    for name, parameter in module.named_parameters():
        if not parameter.requires_grad:
            continue
        held = [each for each in (name, *aliases.get(name, [])) if each in graph.initializers]
        if not held:
            raise TrainscopeError(f"parameter '{name}' is not in the exported file: no node reads it, "
                                  "or the exporter gave it another name")
        names[name] = held[0]
    return names, {second: names.get(name, name) for second, name in tied.items()}


def _noise(numbers, exact_loss, exact, gradients):
    """The `noise` of meta.json."""
    whole = numpy.linalg.norm(joined(exact))
    each = {name: max(relative(found[name], exact[name]) for _, found, _ in gradients)
            for name in exact}
    vanishing = [name for name in exact if numpy.linalg.norm(exact[name]) <= 1e-12 * whole]
    kept = [each[name] for name in each if name not in vanishing] or [0.0]
    of_graph = max(numpy.linalg.norm(numbers.gradients[name] - exact[name]) for name in exact)
    return {
        "loss_rel": max(abs(loss / exact_loss - 1.0) for loss, _, _ in gradients),
        "grad_global_norm": float(whole),
        "grad_all_rel_l2": max(relative(joined(found), joined(exact)) for _, found, _ in gradients),
        "grad_param_rel_l2_max": max(kept),
        "grad_param_rel_l2_median": float(numpy.median(kept)),
        "vanishing_grads": vanishing,
        "value_rel_l2_max": max(relative(row.single, row.exact) for row in numbers.rows),
        "graph_vs_module_f64": {
            "loss_rel": abs(numbers.loss / exact_loss - 1.0),
            "grad_max_err_over_global_norm": float(of_graph / whole)},
        "kink_margin": numbers.kink[0] if numpy.isfinite(numbers.kink[0]) else None,
        "kink_nearest": numbers.kink[1] or None,
        "of_parameters": each}


def _optimizer_file(runs, about, path):
    """Writes ten steps; {"exact": OptimizerRun, "singles": [OptimizerRun]}."""
    exact = runs.train(about, STEPS, "f64")
    singles = [runs.train(about, STEPS, "f32", order) for order in ORDERS[:3]]
    tensors = {}
    for precision, dtype, run in (("f64", numpy.float64, exact), ("f32", numpy.float32, singles[0])):
        tensors[f"losses.{precision}:"] = numpy.array(run.losses, dtype)
        tensors[f"grad_norms.{precision}:"] = numpy.array(run.norms, dtype)
        for step, parameters in run.parameters.items():
            if step == STEPS or precision == "f64":
                tensors.update({f"param.{step}.{precision}:{name}": array.astype(dtype)
                                for name, array in parameters.items()})
        for step, statistics in run.statistics.items():
            tensors.update({f"stat.{step}.{precision}:{name}": array.astype(dtype)
                            for name, array in statistics.items()})
    write_tensors(path, tensors)
    return {"exact": exact, "singles": singles}


def _parameters_table(start, exact, gradients, noise, trained):
    """The text of params.tsv."""
    columns = ["param", "shape", "elements", "grad_l2", "grad_max", "grad_f32_rel_l2",
               "grad_noise_rel_l2", "grad_noise_over_global"]
    columns += [f"{name}{step}_{what}" for name in trained for step in (1, STEPS)
                for what in ("move_l2", "f32_err_l2")]
    lines = ["\t".join(columns)]
    for name, array in start.items():
        norm = numpy.linalg.norm(exact[name])
        worst = noise["of_parameters"][name]
        cells = [name, shape_text(array.shape), array.size, digits(norm),
                 digits(numpy.abs(exact[name]).max()),
                 digits(relative(gradients[0][1][name], exact[name])), digits(worst),
                 digits(worst * norm / noise["grad_global_norm"])]
        for runs in trained.values():
            for step in (1, STEPS):
                after = runs["exact"].parameters[step][name]
                errors = [numpy.linalg.norm(single.parameters[step][name] - after)
                          for single in runs["singles"]]
                cells += [digits(numpy.linalg.norm(after - array)), digits(max(errors))]
        lines.append("\t".join(str(cell) for cell in cells))
    return "\n".join(lines) + "\n"


def _reference_file(path, batches, numbers, exact_loss, exact, gradients):
    tensors = {f"batch.{place}:{name}": tensor for place, batch in enumerate(batches)
               for name, tensor in batch.items()}
    tensors["loss.f64:0"] = numpy.float64(exact_loss)
    tensors["loss.f32:0"] = numpy.float32(gradients[0][0])
    for name, array in exact.items():
        tensors[f"grad.f64:{name}"] = array
        tensors[f"grad.f32:{name}"] = gradients[0][1][name].astype(numpy.float32)
    rows = [row for row in numbers.rows if row.gradient is not None and row.op not in _MOVEMENT]
    for place in sorted({round(i * (len(rows) - 1) / 9) for i in range(10)}):
        row = rows[place]
        for kind, precise, single in (("act", row.exact, row.single),
                                      ("dact", row.gradient, row.single_gradient)):
            tensors[f"{kind}.f64:{row.value}"] = precise
            tensors[f"{kind}.f32:{row.value}"] = single.astype(numpy.float32)
    write_tensors(path, tensors)


def _meta(about, module, graph, batches, loss, names, tied, optimizers, noise, trained, start):
    trainable = list(names.values())
    inputs = [{"name": name, "dtype": str(tensor.dtype)[6:], "shape": list(tensor.shape)}
              for name, tensor in batches[0].items()]
    ops = {}
    for node in graph.nodes:
        ops[node.op] = ops.get(node.op, 0) + 1
    noise = {key: value for key, value in noise.items()
             if key != "of_parameters" and value is not None}
    return {
        "format": 1, "name": about.get("name", type(module).__name__),
        "producer": f"pytorch {torch.__version__}", "opset": 17, "seed": about.get("seed", 0),
        "parameters": {"tensors": len(trainable), "elements": sum(a.size for a in start.values())},
        "inputs": [each for each in inputs if each["name"] != loss["label"]],
        "outputs": [{"name": loss["output"]}],
        "labels": next(each for each in inputs if each["name"] == loss["label"]),
        "loss": {"ignore_index": -100, "reduction": "mean", **loss},
        "trainable": trainable, "tied": tied,
        "frozen": [name for name in graph.initializers if name not in trainable],
        "optimizers": {name: optimizers[name] for name in trained},
        "batches": len(batches), "nodes": len(graph.nodes), "ops": ops,
        "optimizer_noise": {name: _optimizer_noise(runs, start) for name, runs in trained.items()},
        "noise": noise}


def _optimizer_noise(runs, start):
    exact, losses = runs["exact"], numpy.array(runs["exact"].losses)
    found = {f"step{step}_all_rel_l2": max(
        numpy.linalg.norm(joined(single.parameters[step]) - joined(exact.parameters[step]))
        / max(numpy.linalg.norm(joined(exact.parameters[step]) - joined(start)), 1e-300)
        for single in runs["singles"]) for step in (1, STEPS)}
    return {**found, "loss_curve_max_rel": max(
        float(numpy.abs(numpy.array(single.losses) / losses - 1.0).max())
        for single in runs["singles"]), "loss_first_last": [losses[0], losses[-1]]}


def _write(path, text):
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise TrainscopeError(f"'{path}' cannot be written: {error.strerror}", 6) from error


if __name__ == "__main__":
    from .__main__ import main
    sys.exit(main(["reference", *sys.argv[1:]]))
