#!/usr/bin/env python3
"""Makes the folders beside it: recurrent nodes with random inputs and what ONNX Runtime makes of them.

    tests/data/recurrent/make.py

Needs onnxruntime, onnx and numpy; the test needs none of them.
"""
from pathlib import Path

import numpy
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

HERE = Path(__file__).resolve().parent
GATES = {"RNN": 1, "LSTM": 4, "GRU": 3}
T, N, D, H = 6, 3, 4, 5
FULL = ("B", "lengths", "h")
BOTH = {"direction": "bidirectional"}

# Folder: (op, inputs beside X, W and R, attributes).
CASES = {
    "rnn_lengths": ("RNN", FULL, {}),
    "rnn_reverse_lengths": ("RNN", FULL, {"direction": "reverse"}),
    "rnn_both_functions": ("RNN", ("B", "h"), {**BOTH, "activations": ["Relu", "Softsign"]}),
    "rnn_numbers": ("RNN", ("B",), {**BOTH, "activations": ["Affine", "ScaledTanh"],
                                    "activation_alpha": [0.7, 0.9], "activation_beta": [0.2, 1.3]}),
    "rnn_leaky_clip": ("RNN", ("B",), {"activations": ["LeakyRelu"], "activation_alpha": [0.3],
                                       "clip": 0.8}),
    "rnn_elu": ("RNN", ("B",), {"activations": ["Elu"], "activation_alpha": [0.6]}),
    "rnn_softplus": ("RNN", ("B",), {"activations": ["Softplus"]}),
    "rnn_thresholded": ("RNN", ("B",), {"activations": ["ThresholdedRelu"],
                                        "activation_alpha": [0.4]}),
    "lstm_lengths": ("LSTM", (*FULL, "c", "P"), {}),
    "lstm_reverse_lengths": ("LSTM", (*FULL, "c", "P"), {"direction": "reverse"}),
    "lstm_both_lengths": ("LSTM", (*FULL, "c"), BOTH),
    "lstm_plain": ("LSTM", (), {}),
    "lstm_coupled": ("LSTM", (*FULL, "c"), {"input_forget": 1}),
    "lstm_hard": ("LSTM", ("B", "h"), {"activations": ["HardSigmoid", "Tanh", "Softsign"],
                                       "activation_alpha": [0.3], "activation_beta": [0.4]}),
    "gru_lengths": ("GRU", FULL, {}),
    "gru_reverse_lengths": ("GRU", FULL, {"direction": "reverse"}),
    "gru_both_lengths": ("GRU", FULL, BOTH),
    "gru_linear": ("GRU", FULL, {**BOTH, "linear_before_reset": 1}),
    "gru_linear_no_bias": ("GRU", (), {"linear_before_reset": 1}),
    "gru_functions": ("GRU", ("B", "h"), {**BOTH, "activations": ["Sigmoid", "Softsign", "HardSigmoid",
                                                                  "Relu"]}),
}


def inputs_of(op, more, directions, numbers):
    gates = GATES[op]

    def draw(*shape):
        return (0.6 * numbers.standard_normal(shape)).astype(numpy.float32)

    all_inputs = {"X": draw(T, N, D), "W": draw(directions, gates * H, D),
                  "R": draw(directions, gates * H, H), "B": draw(directions, 2 * gates * H),
                  "lengths": numpy.array([T, 2, 4], numpy.int32), "h": draw(directions, N, H),
                  "c": draw(directions, N, H), "P": draw(directions, 3 * H)}
    return {name: value for name, value in all_inputs.items() if name in ("X", "W", "R", *more)}


def make(name, op, more, attributes):
    directions = 2 if attributes.get("direction") == "bidirectional" else 1
    numbers = numpy.random.default_rng(len(name) + 31 * list(CASES).index(name))
    inputs = inputs_of(op, more, directions, numbers)
    order = ["X", "W", "R", "B", "lengths", "h", "c", "P"]
    names = [each if each in inputs else "" for each in order]
    while not names[-1]:
        names.pop()
    outputs = ["Y", "Y_h", "Y_c"] if op == "LSTM" else ["Y", "Y_h"]
    node = helper.make_node(op, names, outputs, hidden_size=H, **attributes)
    types = {"lengths": TensorProto.INT32}
    graph = helper.make_graph(
        [node], name,
        [helper.make_tensor_value_info(each, types.get(each, TensorProto.FLOAT), value.shape)
         for each, value in inputs.items()],
        [helper.make_tensor_value_info(each, TensorProto.FLOAT, None) for each in outputs])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8)
    session = onnxruntime.InferenceSession(model.SerializeToString(),
                                           providers=["CPUExecutionProvider"])
    results = dict(zip(outputs, session.run(outputs, inputs)))
    for value in model.graph.output:
        for size in results[value.name].shape:
            value.type.tensor_type.shape.dim.add().dim_value = size
    onnx.checker.check_model(model)
    data = HERE / name / "test_data_set_0"
    data.mkdir(parents=True, exist_ok=True)
    onnx.save(model, HERE / name / "model.onnx")
    for kind, tensors in (("input", inputs), ("output", results)):
        for i, (each, value) in enumerate(tensors.items()):
            (data / f"{kind}_{i}.pb").write_bytes(
                numpy_helper.from_array(value, each).SerializeToString())


def main():
    for name, (op, more, attributes) in CASES.items():
        make(name, op, more, attributes)
        print(name)


if __name__ == "__main__":
    main()
