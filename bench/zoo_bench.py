"""Architectures of the zoo that are the benchmark's own: GPT-2, BERT and ResNet-18, small ones, which
need nothing but PyTorch."""
import torch

import torch_models
from zoo_entries import BATCH, VOCAB, classes, entry, images, tokens

SIZES = {"vocab": VOCAB, "context": 16, "layers": 2, "heads": 2, "width": 32, "dropout": 0.0}
LENGTH = 12


class GptLogits(torch_models.Gpt):
    def forward(self, ids):
        return self.logits(ids)


class BertLogits(torch_models.Bert):
    def forward(self, ids, segments):
        return self.logits(ids, segments)


@entry("gpt2", "bench")
def _():
    module = GptLogits(**SIZES, bias=True, gelu="tanh")
    return module, {"ids": tokens(LENGTH)}, tokens(LENGTH), "cross_entropy"


@entry("bert", "bench")
def _():
    inputs = {"ids": tokens(LENGTH), "segments": torch.randint(0, 2, (BATCH, LENGTH))}
    return BertLogits(**SIZES), inputs, tokens(LENGTH), "cross_entropy"


@entry("resnet18", "bench")
def _():
    return torch_models.resnet18().net, images(32), classes(), "cross_entropy"
