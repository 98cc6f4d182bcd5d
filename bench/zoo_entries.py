"""What an architecture of the zoo is: a row of ZOO, name -> (family, make).

make() gives `(module, inputs, labels, loss)`: inputs a dict of tensors by the module's argument names,
each with BATCH examples first, labels for `loss`, which is cross_entropy (over the last axis of [N, C]
or [N, T, V] logits) or mse. Modules give one tensor.
"""
import torch
from torch import nn

BATCH = 9
CLASSES = 10
VOCAB = 61
ZOO = {}


def entry(name, family):
    def add(make):
        ZOO[name] = (family, make)
        return make
    return add


def images(size, channels=3):
    return {"x": torch.randn(BATCH, channels, size, size)}


def classes():
    return torch.randint(0, CLASSES, (BATCH,))


def tokens(length, vocab=VOCAB):
    return torch.randint(3, vocab, (BATCH, length))  # none that some model takes for padding


class One(nn.Module):
    """The first tensor of what a module gives, by argument names of our own."""

    def __init__(self, module, arguments, pick):
        super().__init__()
        self.module, self.arguments, self.pick = module, arguments, pick

    def forward(self, *given):
        return self.pick(self.module(**dict(zip(self.arguments, given))))
