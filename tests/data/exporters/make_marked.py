#!/usr/bin/env python3
"""Makes what marks of the present exporter tell besides parameters: padded, detached, average and
positions, with their batch ids.safetensors, and PyTorch's tensors after training.

Each is exported as it comes or with optimize=False, and trained in f64 for three steps as README.md
says. Needs PyTorch, onnx and safetensors; the tests need none of them.
"""
import copy
import re

import onnx
import torch
from safetensors.torch import load_file, save_file
from torch import nn
from torch.nn import functional

from make import HERE


class Padded(nn.Module):
    """A lookup whose padding row learns nothing there, and a tied head that trains it."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(11, 8, padding_idx=2)
        self.norm, self.head = nn.LayerNorm(8), nn.Linear(8, 11, bias=False)
        self.head.weight = self.table.weight
        nn.init.normal_(self.table.weight)

    def forward(self, ids):
        return self.head(self.norm(torch.tanh(self.table(ids))))


class Detached(nn.Module):
    """One factor of a product, the input of a layer, and a straight-through rounding."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.h = nn.Linear(4, 8), nn.Linear(8, 8), nn.Linear(8, 1)

    def forward(self, x):
        wave = torch.tanh(self.a(x))
        mixed = wave * wave.detach() - self.b(wave.detach())
        return self.h(mixed + (torch.round(mixed * 4) / 4 - mixed).detach())


class Average(nn.Module):
    """A batch norm, and a buffer that the forward pass moves."""

    def __init__(self):
        super().__init__()
        self.a, self.n, self.h = nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 1)
        self.register_buffer("average", torch.zeros(8))

    def forward(self, x):
        x = self.n(self.a(x))
        self.average.mul_(0.5).add_(x.detach().mean(0) + 0.1, alpha=0.5)
        return self.h(torch.relu(x - self.average))


class OnePlus(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(8))

    def forward(self, x):
        return functional.rms_norm(x, (8,)) * (1 + self.weight)


class Positions(nn.Module):
    """Rows of embeddings at constant positions, a token before them, norms of one plus a weight."""

    def __init__(self):
        super().__init__()
        self.table, self.where, self.kind = (nn.Embedding(n, 8) for n in (11, 9, 2))
        self.first, self.second = OnePlus(), OnePlus()
        self.token, self.head = nn.Parameter(torch.randn(1, 1, 8)), nn.Linear(8, 11)
        self.register_buffer("positions", torch.arange(9))

    def forward(self, ids):
        x = self.table(ids) + self.where(self.positions[1:6])[None] + self.kind(torch.zeros_like(ids))
        x = torch.cat([self.token.expand(ids.shape[0], -1, -1), x], 1)[:, :-1]
        return self.head(self.second(torch.tanh(self.first(x))))


# The model, its batch, its learning rate, the files that are kept.
MODELS = {"padded": (Padded, "ids", 0.5, ("", "-noopt")),
          "detached": (Detached, "reg", 0.1, ("", "-noopt")),
          "average": (Average, "reg", 0.1, ("-noopt",)),
          "positions": (Positions, "ids", 0.5, ("",))}


def without_folders(path, keep_source=True):
    """Of the lines of source that the exporter notes of each node, none or only names of files."""
    model = onnx.load(path)
    for node in model.graph.node:
        for trace in [each for each in node.metadata_props if each.key.endswith("stack_trace")]:
            if keep_source:
                trace.value = re.sub(r'File "[^"]*/', 'File "', trace.value)
            else:
                node.metadata_props.remove(trace)
    onnx.save(model, path)


def trained(module, inputs, labels, rate):
    """Losses of three steps, and the tensors after them."""
    optimizer = torch.optim.SGD(module.parameters(), lr=rate)
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        output = module(inputs)
        loss = (functional.mse_loss(output, labels) if labels.is_floating_point() else
                functional.cross_entropy(output.flatten(0, 1), labels.flatten()))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, module.state_dict()


def main():
    torch.manual_seed(0)
    ids = torch.randint(0, 11, (6, 5))
    ids[:, 3] = 2
    save_file({"ids": ids, "labels": torch.randint(0, 11, (6, 5))}, HERE / "ids.safetensors")
    for name, (make, batch, rate, ways) in MODELS.items():
        torch.manual_seed(5)
        module, data = make().train(), load_file(HERE / f"{batch}.safetensors")
        labels = data.pop("labels")
        (key, inputs), = data.items()
        for way in ways:
            torch.onnx.export(copy.deepcopy(module), (inputs,), str(HERE / f"{name}{way}.onnx"),
                              dynamo=True, optimize=not way, external_data=False, opset_version=18,
                              input_names=[key], output_names=["y"])
            without_folders(HERE / f"{name}{way}.onnx")
        wide = [each.double() if each.is_floating_point() else each for each in (inputs, labels)]
        losses, state = trained(module.double(), *wide, rate)
        print(name, *(f"{loss:.6f}" for loss in losses))
        if name == "average":  # moves on in PyTorch only
            continue
        save_file({key: value.float().contiguous() for key, value in state.items()
                   if value.is_floating_point()}, HERE / f"{name}-state.safetensors")


if __name__ == "__main__":
    main()
