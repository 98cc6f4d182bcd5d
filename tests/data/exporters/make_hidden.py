#!/usr/bin/env python3
"""Makes what the present exporter leaves out, merges and folds as it comes, where the file tells too
little or just enough: merged, norms, cloned, repeated, mask, doubled, rows, scales and unused.

Each is trained in f64 for three steps as README.md says. Of the lines of source that the exporter
notes, the names of folders are left out. Needs PyTorch, onnx and safetensors; the tests need none
of them.
"""
import copy

import torch
from safetensors.torch import load_file, save_file
from torch import nn

from make import HERE
from make_marked import OnePlus, trained, without_folders

class Merged(nn.Module):
    """Two calls that are equal but for what is detached; the file does not show that anything is."""

    def __init__(self):
        super().__init__()
        self.a, self.h = nn.Linear(4, 8), nn.Linear(8, 1)

    def forward(self, x):
        wave = self.a(x)
        return self.h(torch.tanh(wave) * torch.tanh(wave.detach()))


class Norms(nn.Module):
    """Two norms of one input, which are equal when they are fresh."""

    def __init__(self):
        super().__init__()
        self.n, self.m, self.a, self.h = nn.LayerNorm(4), nn.LayerNorm(4), nn.Linear(4, 8), nn.Linear(8, 1)

    def forward(self, x):
        return self.h(torch.tanh(self.a(self.n(x)))) + self.h(self.a(self.m(x)))


class Cloned(nn.Module):
    """A detached value that is copied."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.h = nn.Linear(4, 8), nn.Linear(8, 8), nn.Linear(8, 1)

    def forward(self, x):
        wave = torch.tanh(self.a(x))
        return self.h(wave + self.b(wave.detach().clone()))


class Repeated(nn.Module):
    """A parameter expanded along the last axis."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(11, 8)
        self.column, self.head = nn.Parameter(torch.randn(5, 1)), nn.Linear(8, 11)

    def forward(self, ids):
        return self.head(torch.tanh(self.table(ids)) * self.column.expand(5, 8))


class Mask(nn.Module):
    """A token for every position of every example."""

    def __init__(self):
        super().__init__()
        self.table, self.token, self.head = nn.Embedding(11, 8), nn.Parameter(torch.randn(1, 1, 8)), nn.Linear(8, 11)

    def forward(self, ids):
        return self.head(torch.tanh(self.table(ids) + self.token.expand(*ids.shape, 8)))


class Doubled(nn.Module):
    """A sum of parameters alone that is all ones."""

    def __init__(self):
        super().__init__()
        self.w, self.a, self.h = nn.Parameter(torch.full((8,), 0.5)), nn.Linear(4, 8), nn.Linear(8, 1)

    def forward(self, x):
        return self.h(torch.tanh(self.a(x)) * (self.w + self.w))


class Rows(nn.Module):
    """A folded lookup of which one row is the padding row."""

    def __init__(self):
        super().__init__()
        self.table, self.where = nn.Embedding(11, 8), nn.Embedding(9, 8, padding_idx=1)
        self.head = nn.Linear(8, 11)
        self.register_buffer("positions", torch.arange(5))
        nn.init.normal_(self.where.weight)

    def forward(self, ids):
        return self.head(torch.tanh(self.table(ids) + self.where(self.positions)))


class Scales(nn.Module):
    """Views of parameters, one plus a weight, and a layer that nothing reads."""

    def __init__(self):
        super().__init__()
        self.table, self.head, self.idle = nn.Embedding(11, 8), nn.Linear(8, 11), nn.Linear(3, 3)
        self.first = OnePlus()
        self.g, self.k = nn.Parameter(torch.randn(1, 8)), nn.Parameter(torch.randn(8, 1, 1))

    def forward(self, ids):
        x = self.first(self.table(ids))
        return self.head(torch.tanh(x * self.g.view(1, 1, 8) + self.k.view(8)))


# The model, its batch, its learning rate, and whether the lines of source stay in the file.
MODELS = {"merged": (Merged, "reg", 0.1, False), "norms": (Norms, "reg", 0.1, False),
          "cloned": (Cloned, "reg", 0.1, True), "repeated": (Repeated, "ids", 0.5, False),
          "mask": (Mask, "ids", 0.5, False), "doubled": (Doubled, "reg", 0.1, False),
          "rows": (Rows, "ids", 0.5, False), "scales": (Scales, "ids", 0.5, False)}


def main():
    for name, (make, batch, rate, keep_source) in MODELS.items():
        torch.manual_seed(5)
        module, data = make().train(), load_file(HERE / f"{batch}.safetensors")
        labels = data.pop("labels")
        (key, inputs), = data.items()
        path = HERE / f"{name}.onnx"
        torch.onnx.export(copy.deepcopy(module), (inputs,), str(path), dynamo=True,
                          external_data=False, opset_version=18, input_names=[key],
                          output_names=["y"])
        without_folders(path, keep_source)
        wide = [each.double() if each.is_floating_point() else each for each in (inputs, labels)]
        losses, state = trained(module.double(), *wide, rate)
        print(name, *(f"{loss:.6f}" for loss in losses))
        if name in ("repeated", "scales"):
            save_file({key: value.float().contiguous() for key, value in state.items()},
                      HERE / f"{name}-state.safetensors")


if __name__ == "__main__":
    main()
