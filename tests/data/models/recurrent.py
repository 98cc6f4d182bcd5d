"""The modules of the reference folders lstm, gru and rnn: small classifiers of sequences.

    python -m trainscope.reference export tests/data/models/recurrent.py:lstm --out tests/data/models/lstm
"""
import torch
from torch import nn

STEPS, WIDTH, UNITS, CLASSES, BATCH = 9, 5, 7, 4, 6


class Classifier(nn.Module):
    """The last state of the layers, and the mean of what they gave, to classes."""

    def __init__(self, layers):
        super().__init__()
        self.layers = layers
        directions = 2 if layers.bidirectional else 1
        self.head = nn.Linear(2 * directions * UNITS, CLASSES)
        self.directions = directions

    def forward(self, x):
        y, last = self.layers(x)
        last = last[0] if isinstance(last, tuple) else last
        last = last[-self.directions:].transpose(0, 1).flatten(1)
        return self.head(torch.cat([y.mean(1), last], 1))


def _reference(layers, seed):
    torch.manual_seed(seed)
    module = Classifier(layers())
    batches = [{"x": torch.randn(BATCH, STEPS, WIDTH), "labels": torch.randint(CLASSES, (BATCH,))}
               for _ in range(2)]
    return {"module": module, "batches": batches, "loss": {"kind": "cross_entropy"},
            "output": "logits"}


def lstm():
    return _reference(lambda: nn.LSTM(WIDTH, UNITS, num_layers=2, bidirectional=True,
                                      batch_first=True), 21)


def gru():
    return _reference(lambda: nn.GRU(WIDTH, UNITS, num_layers=2, batch_first=True), 22)


def rnn():
    return _reference(lambda: nn.RNN(WIDTH, UNITS, bidirectional=True, batch_first=True), 23)
