#!/usr/bin/env python3
"""From PyTorch to ONNX, trained here, and back by load_state_dict: are both the same module then?

    bench/state_dict.py --folder DIR [--only PATTERN] [--ways ts,dynamo,plain] [--program FILE] [--out NAME]

Trains the exports of zoo.py (DIR is its folder) for its 5 steps, writes the trained tensors with
`export --format safetensors --names torch` and loads them into a new module, whose every tensor was
filled with other numbers before. Then every tensor of its state_dict, and its outputs in training
and in eval mode, are compared with those of the module that PyTorch trained: equal are 1e-5 of the
norm or 20 times what PyTorch in f32 is off itself, as in zoo.py. Tensors that the forward pass does
not need, and the counters num_batches_tracked, are not in the file.

Verdicts: `equal`: load_state_dict(strict=True) took the file; `equal, N unread`: strict=False, and the
N tensors that it missed are those that the program had named as not needed (or other names of what
was loaded); `lost`: the program said what it lost; `refused`: the program does not train the export;
`differs`: anything else. Needs what zoo.py needs.
"""
import argparse
import copy
import fnmatch
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import zoo

COUNTER = "num_batches_tracked"


def fresh(name):
    """The module as zoo.py makes it, its inputs, labels and loss."""
    import torch
    import zoo_models
    torch.manual_seed(7)
    module, inputs, labels, kind = zoo_models.ZOO[name][1]()
    return zoo.prepared_module(module, "train"), inputs, labels, kind


def outputs(module, inputs):
    """In training mode (without changing the running statistics) and in eval mode."""
    import torch
    module = copy.deepcopy(module)
    with torch.no_grad():
        trained = module.train()(*inputs.values()).double()
    module = copy.deepcopy(module)
    with torch.no_grad():
        return trained, module.eval()(*inputs.values()).double()


def tensors_in(file):
    import torch
    return {name: torch.from_numpy(array) for name, array in zoo.read_tensors(file).items()}


class Peer:
    """PyTorch's module after training, what it gives, and what PyTorch in f32 is off from that.

    `state`: what the module began with where that is not what zoo.py had: the older exporter runs
    the module, which updates its running statistics before they are written."""

    def __init__(self, name, folder, state=None):
        self.facts = json.loads((folder / "reference.json").read_text())
        self.after = tensors_in(folder / "after.safetensors")
        module, self.inputs, labels, kind = fresh(name)
        module.load_state_dict(state or {}, strict=False)
        narrow = copy.deepcopy(module)
        _, in_f32 = zoo.train_in_pytorch(narrow, self.inputs, labels, kind)
        if state:
            truth = zoo.in_f64(copy.deepcopy(module), self.inputs, labels, kind)
            self.after = truth[1] if truth else in_f32
        module.load_state_dict(self.after)
        self.outputs = outputs(module, self.inputs)
        self.noise = [float((a - b).norm()) for a, b in
                      zip(outputs(narrow, self.inputs), self.outputs)]

    def worst_tensor(self, module):
        """The largest error over its limit, and whose it is."""
        worst = (0.0, "")
        for key, value in module.state_dict().items():
            truth = self.after[key].double()
            if key.endswith(COUNTER) or not truth.numel():
                continue
            limit = max(zoo.LIMIT * float(truth.norm()), zoo.NOISE * self.facts["noise"][key], 1e-7)
            worst = max(worst, (float((value.double() - truth).norm()) / limit, key))
        return worst

    def worst_output(self, module):
        errors = []
        for mine, truth, noise in zip(outputs(module, self.inputs), self.outputs, self.noise):
            limit = max(zoo.LIMIT * float(truth.norm()), zoo.NOISE * noise, 1e-7)
            errors.append(float((mine - truth).norm()) / limit)
        return errors


def other_numbers(module, unread):
    """Fills all that a file can bring, so that what is equal afterwards came from it."""
    import torch
    with torch.no_grad():
        for key, value in module.state_dict().items():
            if key not in unread and not key.endswith(COUNTER):
                value.fill_(3)


def aliases(module):
    """Names by the storage that they share: what is tied in PyTorch is loaded by one of them."""
    groups = {}
    for key, value in module.state_dict().items():
        groups.setdefault((value.data_ptr(), tuple(value.shape)), set()).add(key)
    return groups.values()


def load(module, state, told):
    """Loads it; the number of tensors that it needed not bring, or what is wrong with it."""
    try:
        module.load_state_dict(state, strict=True)
        return 0, None
    except RuntimeError:
        missed = module.load_state_dict(state, strict=False)
    if missed.unexpected_keys:
        return 0, f"no tensors of the module: {missed.unexpected_keys[:4]}"
    missing = {key for key in missed.missing_keys if not key.endswith(COUNTER)}
    for group in aliases(module):
        if group - missing:
            missing -= group
    unknown = missing - told
    return len(missed.missing_keys), f"missing: {sorted(unknown)[:4]}" if unknown else None


def exported(source, file, program):
    """The state_dict that the program writes of a run or model, and what it says of it."""
    done = subprocess.run([program, "export", source, "--format", "safetensors", "--names", "torch",
                           "-o", file, "--json"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"export: {done.stderr.strip()[:300]}")
    state = tensors_in(file)
    file.unlink()
    return state, json.loads(done.stdout)


def verdict(name, way, folder, program, peer):
    run, failure = zoo.trained_run(way, folder, program, peer.facts)
    if failure:
        return failure
    file = folder / f"state-{way}.safetensors"
    try:
        state, facts = exported(run, file, program)
        shutil.rmtree(run)
        if way == "ts" and facts["counters"]:
            peer = Peer(name, folder, exported(folder / "ts.onnx", file, program)[0])
    except RuntimeError as error:
        return {"verdict": "differs", "why": str(error)}
    module = fresh(name)[0]
    own = module.state_dict()
    for key in facts["reshaped"]:  # as the printed call does: the file does not tell their shapes
        state[key] = state[key].reshape(own[key].shape)
    unread = set(facts["unread"])
    # The older exporter's files do not tell what the forward pass does not need: neither does it
    # change, so that these tensors may stay.
    if way == "ts":
        unread = {key for key, noise in peer.facts["noise"].items()
                  if key not in state and noise == 0.0}
    other_numbers(module, unread)
    missed, wrong = load(module, state, unread | {each["name"] for each in facts["lost"]})
    result = {"tensors": len(state), "lost": facts["lost"], "unread": len(facts["unread"]),
              "counters": len(facts["counters"]), "missed": missed,
              "reshaped": facts["reshaped"]}
    if wrong or facts["lost"]:
        lost = [each["name"] for each in facts["lost"]]
        return result | {"verdict": "lost" if not wrong else "differs", "why": wrong or str(lost[:4])}
    tensor_error, at = peer.worst_tensor(module)
    output_errors = peer.worst_output(module)
    result |= {"tensor_error": tensor_error, "at": at, "output_errors": output_errors}
    if tensor_error > 1.0 or max(output_errors) > 1.0:
        return result | {"verdict": "differs", "why": f"{at} {tensor_error:.3g} times its limit, "
                         f"outputs {output_errors} times theirs"}
    return result | {"verdict": f"equal, {missed} unread" if missed else "equal", "why": ""}


def rows_of(arguments, ways):
    import zoo_models
    rows = {}
    for name in sorted(zoo_models.ZOO):
        if not any(fnmatch.fnmatch(name, each) for each in arguments.only.split(",")):
            continue
        folder, start = arguments.folder / "train" / name, time.monotonic()
        failed = zoo.prepared(name, ways, folder, "train")
        row = {"family": zoo_models.ZOO[name][0], "ways": {}}
        peer = None if len(failed) == len(ways) else Peer(name, folder)
        for way in ways:
            row["ways"][way] = ({"verdict": "no export", "why": failed[way]} if way in failed else
                                verdict(name, way, folder, arguments.program, peer))
        rows[name] = row
        cells = "  ".join(f"{way} {row['ways'][way]['verdict']:<10}" for way in ways)
        print(f"{name:<40} {cells} {time.monotonic() - start:6.1f} s", flush=True)
        for way in ways:
            if row["ways"][way]["why"]:
                print(f"    {way}: {row['ways'][way]['why'][:260]}", flush=True)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, required=True, help="of zoo.py, kept between runs")
    parser.add_argument("--only", default="*", help="architectures by name, * for any text")
    parser.add_argument("--ways", default=",".join(zoo.WAYS))
    parser.add_argument("--program", default="build/release/bin/trainscope")
    parser.add_argument("--out", help="name of a report in bench/results")
    arguments = parser.parse_args()
    ways = arguments.ways.split(",")
    rows = rows_of(arguments, ways)
    for way, of_way in zoo.counts(rows, ways).items():
        print(f"{way}: " + ", ".join(f"{n} {what}" for what, n in sorted(of_way.items())))
    if arguments.out:
        import measure
        measure.write_report(arguments.out, "state_dicts that come back to PyTorch",
                             zoo.report(rows, ways), {"rows": rows})
    return 0


if __name__ == "__main__":
    sys.exit(main())
