#!/usr/bin/env python3
"""Makes the files beside it: a classifier whose RNN is a Scan, and what PyTorch makes of it in float64.

    tests/data/scan-rnn/make.py

Needs torch, onnx and safetensors; the test needs none of them.
"""
from pathlib import Path

import numpy
import torch
from onnx import TensorProto, checker, helper, numpy_helper, save
from safetensors.numpy import save_file

HERE = Path(__file__).resolve().parent
N, T, D, H, C = 6, 9, 5, 7, 3  # examples, steps, widths of input and state, classes
STEPS = 10


def parameters(numbers):
    def draw(*shape):
        return (0.5 * numbers.standard_normal(shape)).astype(numpy.float32)

    return {"cell.input": draw(D, H), "cell.state": draw(H, H), "cell.bias": draw(H),
            "head.weight": draw(H, C), "head.bias": draw(C)}


def model(given):
    """x [N, T, D] -> the mean of tanh(x_t W + h R + b) over all steps t, times a matrix."""
    def info(name, shape, kind=TensorProto.FLOAT):
        return helper.make_tensor_value_info(name, kind, shape)

    body = helper.make_graph(
        [helper.make_node("MatMul", ["step", "cell.input"], ["from_input"]),
         helper.make_node("MatMul", ["before", "cell.state"], ["from_state"]),
         helper.make_node("Add", ["from_input", "from_state"], ["sum"]),
         helper.make_node("Add", ["sum", "cell.bias"], ["biased"]),
         helper.make_node("Tanh", ["biased"], ["after"]),
         helper.make_node("Identity", ["after"], ["seen"])],
        "cell", [info("before", [N, H]), info("step", [N, D])],
        [info("after", [N, H]), info("seen", [N, H])])
    start = numpy_helper.from_array(numpy.zeros((N, H), numpy.float32))
    graph = helper.make_graph(
        [helper.make_node("Constant", [], ["start"], value=start),
         helper.make_node("Scan", ["start", "x"], ["last", "states"], "rnn", num_scan_inputs=1,
                          scan_input_axes=[1], scan_output_axes=[1], body=body),
         helper.make_node("ReduceMean", ["states"], ["pooled"], axes=[1], keepdims=0),
         helper.make_node("Gemm", ["pooled", "head.weight", "head.bias"], ["logits"])],
        "scan_rnn", [info("x", [N, T, D])], [info("logits", [N, C])],
        [numpy_helper.from_array(array, name) for name, array in given.items()])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    checker.check_model(made)
    return made


def logits(p, x):
    h = torch.zeros(N, H, dtype=x.dtype)
    states = []
    for step in x.unbind(1):
        h = torch.tanh(step @ p["cell.input"] + h @ p["cell.state"] + p["cell.bias"])
        states.append(h)
    return torch.stack(states, 1).mean(1) @ p["head.weight"] + p["head.bias"]


def main():
    numbers = numpy.random.default_rng(23)
    given = parameters(numbers)
    save(model(given), HERE / "model.onnx")
    stored = {}
    batches = []
    for batch in range(2):
        x = numbers.standard_normal((N, T, D)).astype(numpy.float32)
        labels = numbers.integers(0, C, N)
        stored[f"batch.{batch}:x"] = x
        stored[f"batch.{batch}:labels"] = labels
        batches.append((torch.tensor(x, dtype=torch.float64), torch.tensor(labels)))
    p = {name: torch.tensor(array, dtype=torch.float64, requires_grad=True)
         for name, array in given.items()}
    optimizer = torch.optim.SGD(p.values(), lr=0.02, momentum=0.9, weight_decay=5e-4)
    losses = []
    for step in range(STEPS):
        x, labels = batches[step % 2]
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(logits(p, x), labels)
        loss.backward()
        losses.append(loss.item())
        if step == 0:
            stored |= {f"grad.f64:{name}": value.grad.numpy().copy() for name, value in p.items()}
        optimizer.step()
    save_file(stored, HERE / "reference.safetensors")
    save_file({"losses.f64:": numpy.array(losses)}, HERE / "sgdm.safetensors")


if __name__ == "__main__":
    main()
