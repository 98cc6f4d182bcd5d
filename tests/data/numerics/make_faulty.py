#!/usr/bin/env python3
"""Writes mlp-pytorch-faulty beside this file: the trace of two SGD steps of models/mlp by PyTorch, as
mlp-pytorch, with a planted fault: the second Relu lets 1 % of negative elements through, in its
gradient too.

Usage: make_faulty.py, with torch and numpy installed.
"""
import shutil
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[2] / "python"))

import torch  # noqa: E402

from trainscope import torch_ops  # noqa: E402
from trainscope.graph_training import GraphTraining  # noqa: E402
from trainscope.trace import TraceReader  # noqa: E402

SLOPE = 0.01


def relu(node, x):
    return torch.nn.functional.leaky_relu(x[0], SLOPE) if node.name == "/3/Relu" else torch.relu(x[0])


def main():
    engine = TraceReader(HERE / "mlp-trainscope")
    batches = [{name: engine.elements(step)[f"input:{name}"].raw for name in ("x", "labels")}
               for step in (1, 2)]
    torch.set_num_threads(1)
    torch_ops.OPS["Relu"] = relu
    loss = {"kind": "cross_entropy", "output": "logits", "label": "labels"}
    training = GraphTraining(HERE.parent / "models" / "mlp" / "model.onnx", loss,
                             {"kind": "sgd", "lr": 0.02})
    folder = HERE / "mlp-pytorch-faulty"
    shutil.rmtree(folder, ignore_errors=True)
    training.train(lambda step: [batches[step - 1]], 2, folder)
    for file in (folder / "numerics").iterdir():
        file.rename(folder / file.name)
    (folder / "numerics").rmdir()


if __name__ == "__main__":
    main()
