#!/usr/bin/python3
"""The ONNX interpreter on torch tensors: against references in float64, and against the engine.

Exit code 77 (skipped) without numpy, torch or onnx.
"""
import unittest

from support import DATA, MODELS, FolderCase, skip_without

skip_without("numpy", "torch", "onnx")
import numpy  # noqa: E402
import onnx  # noqa: E402
import torch  # noqa: E402
from onnx import TensorProto, helper  # noqa: E402
from trainscope.__main__ import main  # noqa: E402
from trainscope.arguments import described, json_file, steps_listed  # noqa: E402
from trainscope.batches import Batches, reference_batches  # noqa: E402
from trainscope.graph_training import GraphTraining  # noqa: E402
from trainscope.interpreter import Interpreter  # noqa: E402
from trainscope.losses import loss_of  # noqa: E402
from trainscope.onnx_graph import Graph  # noqa: E402
from trainscope.tensor_file import read_tensors, write_tensors  # noqa: E402
from trainscope.trace import TraceReader  # noqa: E402

NAMES = ("mlp", "lenet", "resnet18", "gpt2", "bert", "llama")


def relative_error(found, expected):
    found = numpy.asarray(found, numpy.float64)
    finite = numpy.isfinite(expected)
    norm = numpy.linalg.norm(expected[finite])
    return numpy.linalg.norm(found[finite] - expected[finite]) / max(norm, 1e-300)


class References(unittest.TestCase):
    """The references' own numbers: those of another program, of the modules in float64."""

    def setUp(self):
        torch.set_num_threads(1)

    def values_and_gradients(self, name):
        meta = json_file(MODELS / name / "meta.json")
        module = Interpreter(Graph(MODELS / name / "model.onnx"), meta["trainable"], "f64")
        batch = reference_batches(MODELS / name / "reference.safetensors")[0]
        gradients = {}
        module.watch_gradient = gradients.__setitem__
        values = module.run(batch)
        loss = loss_of(meta["loss"], values[meta["loss"]["output"]],
                       torch.from_numpy(batch["labels"].copy()))
        loss.backward()
        return meta, values, gradients, float(loss.detach())

    def test_values_and_gradients_of_a_batch(self):
        for name in NAMES:
            expected = read_tensors(MODELS / name / "reference.safetensors")
            meta, values, gradients, loss = self.values_and_gradients(name)
            with self.subTest(name):
                self.assertLess(abs(loss / float(expected["loss.f64:0"].item()) - 1.0), 1e-9)
                scale = meta["noise"]["grad_global_norm"]
                compared = 0
                for key, array in expected.items():
                    category, _, value = key.partition(":")
                    if category == "act.f64":
                        found = values[value].detach().numpy()
                        self.assertLess(relative_error(found, array), 1e-8, key)
                    elif category in ("dact.f64", "grad.f64"):
                        error = numpy.linalg.norm(gradients[value].numpy() - array)
                        self.assertLess(error, 1e-8 * max(scale, numpy.linalg.norm(array)), key)
                    else:
                        continue
                    compared += 1
                self.assertGreater(compared, len(meta["trainable"]))

    def test_losses_of_ten_steps(self):
        for name in NAMES:
            meta = json_file(MODELS / name / "meta.json")
            batches = reference_batches(MODELS / name / "reference.safetensors")
            for optimizer, about in meta["optimizers"].items():
                expected = read_tensors(MODELS / name / f"{optimizer}.safetensors")
                fresh = {key[len("stat.1.f64:"):]: numpy.full_like(array, key.endswith("var"))
                         for key, array in expected.items()
                         if key.startswith("stat.1.f64:") and array.ndim > 0}
                for dtype, limit in (("f64", 1e-9), ("f32", 1e-5)):
                    with self.subTest(name, optimizer=optimizer, dtype=dtype):
                        training = GraphTraining(MODELS / name / "model.onnx", meta["loss"], about,
                                                 meta["trainable"], dtype, fresh)
                        losses = training.train(lambda step: [batches[(step - 1) % 2]], 10)
                        self.assertLess(numpy.abs(losses / expected["losses.f64:"] - 1.0).max(),
                                        limit)
                        if dtype == "f64":
                            self.check_states(training, expected, meta)

    def check_states(self, training, expected, meta):
        for name, parameter in training.interpreter.parameters.items():
            # Rounding divided by itself, under AdamW, where the gradient is exactly zero.
            if name not in meta["noise"]["vanishing_grads"]:
                found = parameter.detach().numpy()
                self.assertLess(relative_error(found, expected["param.10.f64:" + name]), 1e-6, name)
        for name, tensor in training.interpreter.statistics.items():
            array = expected["stat.10.f64:" + name]
            # The model's momentum is 0.9 in float32.
            self.assertLess(relative_error(tensor.numpy(), array), 1e-6, name)

    def test_what_is_trained_by_default(self):
        for name in NAMES:
            meta = json_file(MODELS / name / "meta.json")
            self.assertEqual(sorted(Graph(MODELS / name / "model.onnx").trainable()),
                             sorted(meta["trainable"]), name)


class Engine(FolderCase):
    def test_rows_pair_with_the_engines_and_are_near(self):
        """Two steps of mlp on the batches that the engine's committed trace was recorded on."""
        engine = TraceReader(DATA / "numerics" / "mlp-trainscope")
        batches = [{name: engine.elements(step)[f"input:{name}"].raw for name in ("x", "labels")}
                   for step in (1, 2)]
        loss = {"kind": "cross_entropy", "output": "logits", "label": "labels"}
        training = GraphTraining(MODELS / "mlp" / "model.onnx", loss, {"kind": "sgd", "lr": 0.02})
        training.train(lambda step: [batches[step - 1]], 2, self.folder)
        ours = TraceReader(self.folder)
        self.assertEqual(ours.header["model"], engine.header["model"])
        found = {(row.step, row.key()): place for place, row in enumerate(ours.rows)}
        for place, row in enumerate(engine.rows):
            if row.kind == "own":
                continue
            mine = ours.rows[found[row.step, row.key()]]
            self.assertEqual((mine.dtype, mine.phase), (row.dtype, row.phase), row.key())
            distance = numpy.linalg.norm(ours.sketch(found[row.step, row.key()])
                                         - engine.sketch(place))
            limit = 2e-6 * row.statistics.l2 if row.phase != "input" else 0.0
            self.assertLessEqual(distance, limit, row.key())
        self.assertEqual(len(found), sum(row.kind != "own" for row in engine.rows))


def saved(folder, nodes, inputs, outputs, initializers=()):
    """A model file of these nodes. inputs, outputs: {name: shape} of floats."""
    values = [[helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
               for name, shape in each.items()] for each in (inputs, outputs)]
    graph = helper.make_graph(nodes, "g", *values, list(initializers))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path = folder / "model.onnx"
    onnx.save(model, str(path))
    return path


class Values(FolderCase):
    def test_a_value_and_its_copy_have_gradients_of_their_own(self):
        w = helper.make_tensor("w", TensorProto.FLOAT, [2], [1.0, 2.0])
        path = saved(self.folder, [helper.make_node("Mul", ["x", "w"], ["a"]),
                                   helper.make_node("Identity", ["a"], ["b"]),
                                   helper.make_node("Add", ["a", "b"], ["y"])],
                     {"x": [2]}, {"y": [2]}, [w])
        gradients = {}
        module = Interpreter(Graph(path))
        module.watch_gradient = gradients.__setitem__
        module.run({"x": numpy.ones(2, numpy.float32)})["y"].sum().backward()
        self.assertEqual({name: g.tolist() for name, g in gradients.items()},
                         {"y": [1, 1], "b": [1, 1], "a": [2, 2], "w": [2, 2]})

    def test_micro_batches_are_averaged(self):
        rng = numpy.random.default_rng(3)
        w = helper.make_tensor("w", TensorProto.FLOAT, [3, 2], rng.random(6).tolist())
        path = saved(self.folder, [helper.make_node("MatMul", ["x", "w"], ["y"])], {"x": ["n", 3]},
                     {"y": ["n", 2]}, [w])
        batch = {"x": rng.random((4, 3)).astype("f"), "t": rng.random((4, 2)).astype("f")}
        halves = [{name: array[part] for name, array in batch.items()}
                  for part in (slice(0, 2), slice(2, 4))]
        loss = {"kind": "mse", "output": "y", "label": "t"}
        found = []
        for number, step in enumerate(([batch], halves)):
            training = GraphTraining(path, loss, {"kind": "sgd", "lr": 0.1}, dtype="f64")
            training.train(lambda _, step=step: step, 2, self.folder / str(number))
            found.append(training.interpreter.parameters["w"].detach().numpy())
        numpy.testing.assert_allclose(found[0], found[1], rtol=1e-12)
        trace = TraceReader(self.folder / "1")
        self.assertEqual(trace.header["micro_batches"], 2)
        self.assertEqual([(row.key(), row.micro_batch) for row in trace.rows if row.step == 2],
                         [(key, k) for k in (0, 1) for key in
                          ("input:x", "input:t", "act:y", "loss:loss", "dact:y", "grad:w")]
                         + [("param:w", 0)])


class Refusals(FolderCase):
    def test_name_what_is_wrong(self):
        mlp = MODELS / "mlp" / "model.onnx"
        self.refuses("cannot be read", 6, Graph, self.folder / "none.onnx")
        (self.folder / "bad.onnx").write_bytes(b"no model at all")
        self.refuses("is no ONNX model", 3, Graph, self.folder / "bad.onnx")
        self.refuses("no float initializer", 2, Interpreter, Graph(mlp), ["x"])
        module = Interpreter(Graph(mlp))
        self.refuses("input 'x'", 2, module.run, {})
        self.refuses("takes [16, 33]", 2, module.run, {"x": numpy.zeros((4, 3), "f")})
        path = saved(self.folder, [helper.make_node("NonZero", ["x"], ["y"])], {"x": [2]}, {"y": [2]})
        self.refuses("lacks: NonZero", 3, Interpreter, Graph(path))
        training = GraphTraining(mlp, {"kind": "mse", "output": "nothing"}, {"kind": "sgd"})
        batch = {"x": numpy.zeros((16, 33), "f"), "labels": numpy.zeros(16, int)}
        self.refuses("reads 'nothing'", 2, training.train, lambda step: [batch], 1)
        self.refuses("unknown optimizer", 2, GraphTraining, mlp, {}, {"kind": "nadam"})
        self.refuses("expected steps", 2, steps_listed, "1,x")
        self.refuses("expected KEY=VALUE", 2, described, "sgd:lr", "kind")

    def test_commands_exit_with_their_code(self):
        self.assertEqual(main(["interpret", str(MODELS / "mlp" / "model.onnx"), "--run-dir",
                               str(self.folder / "r")]), 2)


class Command(FolderCase):
    def test_trains_a_reference(self):
        words = ["interpret", str(MODELS / "mlp"), "--run-dir", str(self.folder), "--steps", "3",
                 "--record-full", "logits"]
        self.assertEqual(main(words), 0)
        trace = TraceReader(self.folder)
        self.assertEqual(trace.steps(), [1, 2, 3])
        self.assertEqual(sorted(trace.elements(3)), ["act:logits", "dact:logits"])
        expected = read_tensors(MODELS / "mlp" / "adamw.safetensors")["losses.f64:"]
        losses = [row.statistics.mean for row in trace.rows if row.kind == "loss"]
        numpy.testing.assert_allclose(losses, expected[:3], rtol=1e-6)
        self.assertEqual(main(words), 2)  # it holds a trace already

    def test_trains_the_parameters_that_a_file_names(self):
        names = self.folder / "parameters.txt"
        names.write_text("4.weight\n4.bias\n", encoding="utf-8")
        run = self.folder / "run"
        self.assertEqual(main(["interpret", str(MODELS / "mlp"), "--run-dir", str(run), "--steps",
                               "1", "--parameters", str(names)]), 0)
        trained = {row.value for row in TraceReader(run).rows if row.kind == "grad"}
        self.assertEqual(trained, {"4.weight", "4.bias"})

    def test_reads_rows_of_examples(self):
        path = self.folder / "d.safetensors"
        write_tensors(path, {"x": numpy.arange(14.0).reshape(7, 2), "labels": numpy.arange(7)})
        batches = Batches(path, 2, 2)
        self.assertEqual([b["labels"].tolist() for b in batches.of_step(2)], [[4, 5], [0, 1]])
        self.refuses("--batch", 2, Batches, path)


if __name__ == "__main__":
    unittest.main()
