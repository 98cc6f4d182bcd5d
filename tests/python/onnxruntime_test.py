#!/usr/bin/python3
"""Recorders of ONNX Runtime: values, on-device training, StatisticsSubscriber's folders.

Sessions that compute with numpy stand in for ONNX Runtime; where it is installed it runs too. Exit
code 77 (skipped) without numpy or onnx.
"""
import contextlib
import io
import json
import shutil
import unittest

from support import DATA, MODELS, SHARED, FolderCase, skip_without

skip_without("numpy", "onnx")
import numpy  # noqa: E402
import onnx  # noqa: E402
from onnx import numpy_helper  # noqa: E402
from trainscope.__main__ import main  # noqa: E402
from trainscope.arguments import json_file  # noqa: E402
from trainscope.batches import reference_batches  # noqa: E402
from trainscope.onnx_graph import Graph  # noqa: E402
from trainscope.onnxruntime_statistics import (compared, read_statistics,  # noqa: E402
                                               statistics_of_tensor, write_statistics)
from trainscope.onnxruntime_training import OnDeviceRuntime, record_training  # noqa: E402
from trainscope.onnxruntime_values import difference, record_values, with_all_outputs  # noqa: E402
from trainscope.tensor_file import read_tensors  # noqa: E402
from trainscope.trace import TraceReader  # noqa: E402

MLP = MODELS / "mlp" / "model.onnx"
TRACES = DATA / "numerics"
MODULES = {"Linear_1": "/0/Gemm_output_0", "ReLU_2": "/1/Relu_output_0", "Linear_3": "/2/Gemm_output_0",
           "ReLU_4": "/3/Relu_output_0", "Linear_5": "logits"}


def installed(module):
    try:
        __import__(module)
    except ImportError:
        return False
    return True


class NumpySessions:
    """Runs Gemm and Relu. fault: is added to what an optimised session gives."""

    version = "numpy"

    def __init__(self, fault=0.0):
        self.fault = fault
        self.opened = []

    def about(self):
        return {"providers": ["numpy"]}

    def open(self, model, optimized):
        session = NumpySession(onnx.load_from_string(model), self.fault if optimized else 0.0)
        self.opened.append((optimized, len(session.model.graph.output)))
        return session


class NumpySession:
    def __init__(self, model, fault):
        self.model, self.fault = model, fault

    def run(self, names, feeds):
        values = {each.name: numpy_helper.to_array(each) for each in self.model.graph.initializer}
        values.update(feeds)
        for node in self.model.graph.node:
            x = [values[name] for name in node.input]
            values[node.output[0]] = (numpy.maximum(x[0], 0) if node.op_type == "Relu"
                                      else x[0] @ x[1].T + x[2])
        return [values[name] + numpy.float32(self.fault) for name in names]


class Values(FolderCase):
    def setUp(self):
        super().setUp()
        self.batch = reference_batches(MODELS / "mlp" / "reference.safetensors")[0]

    def test_of_a_fake_session_pair_with_the_engines(self):
        sessions = NumpySessions()
        differences = record_values(MLP, self.batch, self.folder, sessions)
        self.assertEqual(sessions.opened, [(False, 5), (True, 1)])
        self.assertEqual([tuple(each) for each in differences], [("logits", 0.0, 0.0)])
        ours, engine = TraceReader(self.folder), TraceReader(TRACES / "mlp-trainscope")
        self.assertEqual(ours.header["model"], engine.header["model"])
        places = {(row.step, row.key()): place for place, row in enumerate(engine.rows)}
        paired = 0
        for place, row in enumerate(ours.rows):
            if row.kind == "own":
                continue
            at = places[row.step, row.key()]
            gap = numpy.linalg.norm(ours.sketch(place) - engine.sketch(at))
            self.assertLessEqual(gap, 1e-6 * row.statistics.l2, row.key())
            paired += 1
        self.assertEqual(paired, 6 + 2 + 5)

    def test_report_what_optimisation_changes(self):
        with contextlib.redirect_stdout(io.StringIO()):
            differences = record_values(MLP, self.batch, self.folder, NumpySessions(0.25))
        self.assertAlmostEqual(differences[0].max_abs, 0.25, 6)
        self.assertGreater(differences[0].relative_l2, 0.1)
        about = TraceReader(self.folder).header["more"]["optimized"]
        self.assertAlmostEqual(about[0]["max_abs"], 0.25, 6)

    def test_differences_see_what_is_not_finite(self):
        x = numpy.array([1.0, numpy.nan, numpy.inf])
        self.assertEqual(difference("x", x, x)[1:], (0.0, 0.0))
        self.assertEqual(difference("x", x, numpy.array([1.0, 2.0, numpy.inf])).max_abs, numpy.inf)
        self.refuses("has 2 elements", 3, difference, "x", x, x[:2])

    def test_refusals_are_one_line(self):
        self.refuses("no input 'x'", 2, record_values, MLP, {}, self.folder, NumpySessions())

        class Broken(NumpySessions):
            def open(self, model, optimized):
                raise RuntimeError("this op is not implemented\nand more lines")

        self.refuses("this op is not implemented", 3, record_values, MLP, self.batch, self.folder,
                     Broken())

    def test_marking_leaves_the_model_alone(self):
        proto = Graph(MODELS / "gpt2" / "model.onnx").proto
        before = proto.SerializeToString()
        marked = with_all_outputs(proto)
        names = [value.name for value in marked.graph.output]
        self.assertEqual(len(names), len(set(names)))
        self.assertEqual(names[0], proto.graph.output[0].name)
        self.assertGreater(len(names), 220)
        self.assertEqual(proto.SerializeToString(), before)

    @unittest.skipUnless(installed("onnxruntime"), "onnxruntime is not installed")
    def test_of_the_installed_onnxruntime(self):
        for name in ("mlp", "gpt2", "bert"):
            with contextlib.redirect_stdout(io.StringIO()):
                code = main(["onnxruntime", str(MODELS / name), "--run-dir", str(self.folder / name),
                             "--limit", "1e-5", "--record-full", "*"])
            self.assertEqual(code, 0)
            expected = read_tensors(MODELS / name / "reference.safetensors")
            kept = TraceReader(self.folder / name).elements(1)
            compared_values = 0
            for key, array in expected.items():
                category, _, value = key.partition(":")
                if category == "act.f64":
                    found = kept["act:" + value].raw
                    finite = numpy.isfinite(array)
                    gap = numpy.linalg.norm((found - array)[finite])
                    self.assertLess(gap, 2e-6 * numpy.linalg.norm(array[finite]), key)
                    compared_values += 1
            self.assertGreater(compared_values, 4)


class FakeRuntime:
    """y = x w, trained by gradient descent on the mean square error, in numpy."""

    version = "numpy"

    def __init__(self):
        self.parameters = {"w": self}
        self.data, self.grad = None, None
        self.asked = None

    def open(self, model, loss, optimizer, trainable, values, folder):
        self.asked = (loss, optimizer, list(trainable), list(values), folder)
        self.data = numpy_helper.to_array(model.graph.initializer[0]).copy()
        return self, self, self

    def train(self):
        pass

    def __call__(self, x, target):
        y = x @ self.data
        self.grad = 2.0 * x.T @ (y - target) / y.size
        return [numpy.mean((y - target) ** 2), y]

    def set_learning_rate(self, rate):
        self.rate = rate

    def step(self):
        self.data = self.data - numpy.float32(self.rate) * self.grad

    def lazy_reset_grad(self):
        self.grad = None


class Training(FolderCase):
    def linear(self):
        w = numpy_helper.from_array(numpy.ones((3, 2), numpy.float32), "w")
        values = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)
                  for name, shape in (("x", [4, 3]), ("y", [4, 2]))]
        graph = onnx.helper.make_graph([onnx.helper.make_node("MatMul", ["x", "w"], ["y"])], "g",
                                       values[:1], values[1:], [w])
        path = self.folder / "linear.onnx"
        onnx.save(onnx.helper.make_model(
            graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8), str(path))
        return path

    def test_of_a_fake_runtime(self):
        x = numpy.arange(12, dtype=numpy.float32).reshape(4, 3) / 10
        batch = {"x": x, "t": numpy.ones((4, 2), numpy.float32)}
        runtime = FakeRuntime()
        loss = {"kind": "mse", "output": "y", "label": "t"}
        losses = record_training(self.linear(), loss, {"kind": "sgd", "lr": [0.1, 0.2]},
                                 lambda step: [batch], 2, self.folder / "r", values=("y",),
                                 runtime=runtime)
        self.assertEqual(runtime.asked[2:4], (["w"], ["y"]))
        w, expected = numpy.ones((3, 2)), []
        for rate in (0.1, 0.2):
            y = x @ w
            expected.append(numpy.mean((y - 1) ** 2))
            w = w - rate * 2 * x.T @ (y - 1) / y.size
        numpy.testing.assert_allclose(losses, expected, rtol=1e-6)
        trace = TraceReader(self.folder / "r")
        keys = ["input:x", "input:t", "act:y", "loss:loss", "grad:w", "param:w"]
        self.assertEqual([row.key() for row in trace.rows], ["param:w", *keys, *keys])
        self.assertAlmostEqual(trace.rows[-1].statistics.mean, w.mean(), 6)

    def test_refuses_what_the_api_lacks(self):
        def refused(text, optimizer, loss="mse", batches=1):
            self.refuses(text, 2, record_training, self.linear(),
                         {"kind": loss, "output": "y", "label": "t"}, optimizer,
                         lambda step: [{"x": numpy.zeros((4, 3), "f")}] * batches, 1,
                         self.folder / "r", runtime=FakeRuntime())
            shutil.rmtree(self.folder / "r", ignore_errors=True)

        refused("no momentum", {"kind": "sgd", "momentum": 0.9})
        refused("none of the on-device API", {"kind": "lion"})
        refused("none of the on-device API", {"kind": "sgd"}, "huber")
        refused("decay=matrices", {"kind": "adamw", "decay": "matrices"})
        refused("one micro-batch", {"kind": "sgd"}, batches=2)
        refused("the batch has no 't'", {"kind": "sgd"})

    def test_of_the_installed_runtime(self):
        try:
            OnDeviceRuntime()
        except Exception as error:
            self.skipTest(str(error))
        for name in ("mlp", "lenet", "llama"):
            meta = json_file(MODELS / name / "meta.json")
            batches = reference_batches(MODELS / name / "reference.safetensors")
            losses = record_training(
                MODELS / name / "model.onnx", meta["loss"],
                {"kind": "sgd", "lr": 0.02}, lambda step: [batches[(step - 1) % 2]], 10,
                self.folder / name, meta["trainable"])
            expected = read_tensors(MODELS / name / "reference.safetensors")["loss.f64:0"]
            self.assertLess(abs(losses[0] / float(expected.item()) - 1.0), 1e-6)
            self.assertEqual(TraceReader(self.folder / name).steps(), [1, 2, 5, 10])


class Statistics(FolderCase):
    def test_are_read(self):
        found = read_statistics(TRACES / "ort-statistics-eager")
        self.assertEqual(list(found), [0])
        first = found[0][0]
        self.assertEqual((first.name, first.direction, first.shape, first.dtype),
                         ("Linear_1_0th_output", "forward", (16, 64), "f32"))
        self.assertEqual((first.negative, first.positive, first.zeros, len(first.samples)),
                         (506, 518, 0, 128))
        self.assertEqual(first.depth, 2)
        self.assertEqual([each.name for each in found[0]][5:7], ["Sequential_0_0th_output"] * 2)

    def test_are_near_pytorchs_trace_of_the_same_step(self):
        trace = TraceReader(TRACES / "mlp-pytorch")
        for folder in ("ort-statistics-eager", "ort-statistics-run_on_cpu"):
            apart = compared(read_statistics(TRACES / folder)[0], trace, 1, MODULES)
            self.assertEqual(len(apart), 10)
            self.assertLess(max(each.relative for each in apart), 1e-6)

    def test_their_std_is_wrong_without_run_on_cpu_alone(self):
        right, wrong = ({(s.name, s.direction): s.std for s in read_statistics(TRACES / folder)[0]}
                        for folder in ("ort-statistics-run_on_cpu", "ort-statistics-eager"))
        trace = TraceReader(TRACES / "mlp-pytorch")
        row = next(row for row in trace.rows if row.key() == "act:/0/Gemm_output_0" and row.step == 1)
        n = row.statistics.count
        self.assertAlmostEqual(right["Linear_1_0th_output", "forward"],
                               row.statistics.std * (n / (n - 1)) ** 0.5, 5)
        self.assertGreater(wrong["Linear_1_0th_output", "forward"], 10.0)

    def test_come_back_as_they_were_written(self):
        array = numpy.array([[1.5, -2.0, 0.0], [numpy.nan, numpy.inf, 1e-9]], numpy.float32)
        made = [statistics_of_tensor("Net_0_0th_output", "forward", array[:1], 3),
                statistics_of_tensor("Net_0_0th_output", "backward", array),
                statistics_of_tensor("One_1_0th_output", "forward", numpy.float64(4.0))]
        write_statistics(self.folder, 7, made)
        found = read_statistics(self.folder)[7]
        self.assertEqual([each[:4] for each in found], [each[:4] for each in made])
        self.assertEqual(found[0][4:13], made[0][4:13])
        self.assertEqual(found[1][8:13], (1, 1, 1, 3, 1))
        self.assertEqual([each.depth for each in found], [3, 1, 1])
        numpy.testing.assert_allclose(found[1].samples, made[1].samples, rtol=1e-6)

    def test_every_shared_folder_is_read(self):
        if not (SHARED / "traces" / "onnxruntime").is_dir():
            self.skipTest("no shared traces beside the project")
        trace = TraceReader(TRACES / "mlp-pytorch")
        for name in ("statistics_eager", "statistics_ort", "statistics_ort_run_on_cpu"):
            for step, found in read_statistics(SHARED / "traces" / "onnxruntime" / name).items():
                if step >= 2:  # one that an end_step of 2 should have left out
                    continue
                apart = compared(found, trace, step + 1, MODULES)
                self.assertEqual(len(apart), 10)
                self.assertLess(max(each.relative for each in apart), 1e-6)

    def test_damage_is_named(self):
        self.refuses("no step_N folders", 3, read_statistics, self.folder)
        shutil.copytree(TRACES / "ort-statistics-eager", self.folder / "s")
        file = self.folder / "s" / "step_0" / "ReLU_2_0th_output_forward"
        file.write_text(file.read_text()[:80])
        self.refuses("ReLU_2_0th_output_forward' is no text", 3, read_statistics, self.folder / "s")
        file.unlink()
        self.refuses("is not there", 3, read_statistics, self.folder / "s")

    def test_command_compares_and_writes(self):
        names = self.folder / "names.json"
        names.write_text(json.dumps(MODULES))
        folder, run = str(TRACES / "ort-statistics-eager"), str(TRACES / "mlp-pytorch")
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            self.assertEqual(main(["statistics", folder]), 0)
            self.assertEqual(main(["statistics", folder, "--run", run, "--names", str(names)]), 0)
            self.assertEqual(main(["statistics", folder, "--run", run, "--names", str(names),
                                   "--limit", "1e-12"]), 9)
            self.assertEqual(main(["statistics", folder, "--run", run]), 2)
            # The engine's trace keeps whole tensors.
            engine = str(TRACES / "mlp-trainscope")
            made = str(self.folder / "made")
            self.assertEqual(main(["statistics", made, "--write", "--run", engine, "--names",
                                   str(names)]), 0)
            self.assertEqual(main(["statistics", made, "--run", run, "--names", str(names)]), 0)
        self.assertIn("over the limit", said.getvalue())
        self.assertIn("20 tensors of 2 steps", said.getvalue())


if __name__ == "__main__":
    unittest.main()
