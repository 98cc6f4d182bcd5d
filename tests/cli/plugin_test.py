#!/usr/bin/python3
"""Plugins: the example is built outside of the tree, passes the op suite and trains; faulty ones are refused.

Usage: plugin_test.py TRAINSCOPE OP_SUITE. Exit code 77 (skipped) without python3-onnx, cmake or g++.
"""
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BAD_INPUT = 3
ENTRY = "const trainscope::plugin::Plugin* trainscope_plugin_entry(std::int32_t) noexcept"
# A plugin with one op, of which each case changes a line.
PLAIN = """
#include <cstdlib>
#include <csignal>
#include <stdexcept>
#include "trainscope/plugin.h"
namespace api = trainscope::plugin;
static void shape(const api::Call& call, api::TensorType* outputs) { outputs[0] = call.inputs[0].type; }
static void run(const api::Call& call) {
  for (long i = 0; i < call.inputs[0].type.elements(); ++i) call.outputs[0].as<float>()[i] = 2 * call.inputs[0].as<float>()[i];
}
ENTRY {
  static api::Op op;
  op.name = "Twice"; op.domain = "com.example"; op.doc = "2 x"; op.shape = api::guarded<shape>;
  op.gradient = "Twice_grad (x, y, dy) => (dx) { dx = Add (dy, dy) }";
  static api::Kernel kernel;
  kernel.op = "Twice"; kernel.name = "twice.test"; kernel.dtype = api::kFloat32; kernel.run = api::guarded<run>;
  static const api::Op* const ops[] = {&op};
  static const api::Kernel* const kernels[] = {&kernel};
  static api::Plugin plugin;
  plugin.name = "test"; plugin.op_count = 1; plugin.ops = ops; plugin.kernel_count = 1; plugin.kernels = kernels;
  CHANGE
  return &plugin;
}
""".replace("ENTRY", ENTRY)


def compiler():
    return os.environ.get("CXX", "g++")


class PluginTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.folder = Path(cls.scratch.name)
        cls.example = cls.build_example()
        cls.model = cls.folder / "model.onnx"
        cls.save_model(cls.model, ["Squareplus", "TanhShrink"])
        cls.data = cls.folder / "data.npz"
        cls.save_data(cls.data)

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    @classmethod
    def build_example(cls):
        """From a copy that lies outside of the tree, against the header alone."""
        source = cls.folder / "source"
        shutil.copytree(ROOT / "examples/plugin", source)
        include = cls.folder / "include"
        shutil.copytree(ROOT / "include/trainscope", include / "trainscope")
        build = cls.folder / "build"
        for words in (["-S", source, "-B", build, f"-DTRAINSCOPE_INCLUDE={include}"], ["--build", build]):
            done = subprocess.run(["cmake", *map(str, words)], capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise AssertionError(done.stdout + done.stderr)
        return build / "libsquareplus.so"

    @staticmethod
    def save_model(path, ops):
        """x [N,4] -> Gemm -> the ops, one after the other -> Gemm -> y [N,3]."""
        import numpy
        import onnx
        from onnx import TensorProto, helper, numpy_helper
        random = numpy.random.RandomState(1)
        nodes = [helper.make_node("Gemm", ["x", "w1", "b1"], ["h0"], "first")]
        for i, op in enumerate(ops):
            domain = "com.example" if op in ("Squareplus", "TanhShrink", "Twice") else ""
            nodes.append(helper.make_node(op, [f"h{i}"], [f"h{i + 1}"], f"node{i}", domain=domain))
        nodes.append(helper.make_node("Gemm", [f"h{len(ops)}", "w2", "b2"], ["logits"], "last"))
        shapes = {"w1": (4, 8), "b1": (8,), "w2": (8, 3), "b2": (3,)}
        graph = helper.make_graph(
            nodes, "net", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 4])],
            [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", 3])],
            [numpy_helper.from_array(random.randn(*shape).astype("float32"), name)
             for name, shape in shapes.items()])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17),
                                                        helper.make_opsetid("com.example", 1)])
        model.ir_version = 8
        onnx.save(model, str(path))

    @staticmethod
    def save_data(path):
        import numpy
        random = numpy.random.RandomState(2)
        x = random.randn(200, 4).astype("float32")
        labels = (x[:, 0] > 0).astype("int64") + (x[:, 1] > 0.5)
        numpy.savez(path, x=x, labels=labels.astype("int64"))

    def run_program(self, *words, code=0, folder=None):
        done = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, cwd=folder or self.folder,
                              check=False, env={**os.environ, "OMP_WAIT_POLICY": "passive"})
        self.assertEqual(code, done.returncode, done.stdout + done.stderr)
        return done

    def train(self, run, *words, model=None, code=0):
        return self.run_program("train", model or self.model, "--data", f"tensors:{self.data}", "--batch", 10,
                                "--lr", "0.01", "--run-dir", run, *words, code=code)

    def losses(self, run):
        lines = (self.folder / run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
        return [row["loss"] for row in map(json.loads, lines) if row["kind"] == "step"]

    def compile(self, name, text):
        source = self.folder / f"{name}.cpp"
        source.write_text(text, encoding="utf-8")
        library = self.folder / f"lib{name}.so"
        done = subprocess.run([compiler(), "-std=c++20", "-shared", "-fPIC", f"-I{ROOT / 'include'}", "-o",
                               str(library), str(source)], capture_output=True, text=True, check=False)
        self.assertEqual(0, done.returncode, done.stderr)
        return library

    def refused(self, library, reason, code=BAD_INPUT):
        done = self.run_program("inspect", self.model, "--plugin", library, code=code)
        lines = [line for line in done.stderr.splitlines() if not line.startswith(("  at:", "  try:"))]
        self.assertEqual(1, len(lines), done.stderr)
        self.assertIn(reason, lines[0])

    def test_the_op_suite_takes_its_ops(self):
        done = subprocess.run([OP_SUITE, "--test-suite-exclude=slow,gpu,gui,long"], cwd=ROOT, check=False,
                              capture_output=True, text=True,
                              env={**os.environ, "TRAINSCOPE_PLUGIN": str(self.example),
                                   "OMP_WAIT_POLICY": "passive"})
        self.assertEqual(0, done.returncode, done.stdout[-4000:] + done.stderr[-2000:])
        self.assertIn("with the plugin 'squareplus example': 3 ops, 4 kernels", done.stdout)

    def test_its_ops_and_optimizer_train(self):
        self.train("trained", "--plugin", self.example, "--optimizer", "com.example.signum", "--momentum", "0.9",
                   "--steps", 60)
        losses = self.losses("trained")
        self.assertEqual(60, len(losses))
        self.assertLess(sum(losses[-10:]), 0.8 * sum(losses[:10]))
        calls = self.run_program("inspect", "trained", "--calls").stdout
        self.assertIn("squareplus.example", calls)
        self.assertIn("signum.example", calls)

    def test_it_computes_what_onnx_ops_compute(self):
        """Squareplus at b = 4 and TanhShrink against a model that writes them with ONNX's ops."""
        import numpy
        import onnx
        from onnx import helper, numpy_helper
        model = onnx.load(str(self.model))
        plain = self.folder / "plain.onnx"
        kept = {node.name: node for node in model.graph.node}
        del model.graph.node[:]
        four = numpy_helper.from_array(numpy.float32(4), "four")
        half = numpy_helper.from_array(numpy.float32(0.5), "half")
        model.graph.initializer.extend([four, half])
        model.graph.node.extend([
            kept["first"], helper.make_node("Mul", ["h0", "h0"], ["s"]), helper.make_node("Add", ["s", "four"], ["t"]),
            helper.make_node("Sqrt", ["t"], ["r"]), helper.make_node("Add", ["h0", "r"], ["u"]),
            helper.make_node("Mul", ["u", "half"], ["h1"]), helper.make_node("Tanh", ["h1"], ["v"]),
            helper.make_node("Sub", ["h1", "v"], ["h2"]), kept["last"]])
        onnx.save(model, str(plain))
        words = ["--optimizer", "sgd", "--steps", 10, "--freeze", "four", "--freeze", "half"]
        self.train("by_onnx", *words, model=plain)
        self.train("by_plugin", "--plugin", self.example, "--optimizer", "sgd", "--steps", 10)
        for ours, theirs in zip(self.losses("by_plugin"), self.losses("by_onnx")):
            self.assertAlmostEqual(ours, theirs, delta=1e-5 * abs(theirs))

    def test_a_run_remembers_its_plugins(self):
        library = self.folder / "moving.so"
        shutil.copy(self.example, library)
        self.train("whole", "--plugin", library, "--steps", 8, "--record-numerics")
        self.train("part", "--plugin", library, "--steps", 4, "--save-every", 2, "--record-numerics")
        self.run_program("train", "--resume", "part", "--steps", 8)
        self.assertEqual(self.losses("whole"), self.losses("part"))
        for words in (["inspect", "part"], ["at", "part", "--step", "3", "--value", "h1"],
                      ["eval", "part", "--data", f"tensors:{self.data}"], ["plan", "part"],
                      ["bisect", "whole", "part"]):
            self.run_program(*words)
        with open(library, "ab") as file:
            file.write(b"changed")
        for words in (["inspect", "part"], ["train", "--resume", "part", "--steps", "9"],
                      ["at", "part", "--step", "3", "--value", "h1"]):
            self.assertIn("has changed since the run", self.run_program(*words, code=BAD_INPUT).stderr)
        library.unlink()
        self.run_program("inspect", "part", code=6)

    def test_the_window_is_given_the_plugins_of_a_folder_of_runs(self):
        library = self.folder / "shown.so"
        shutil.copy(self.example, library)
        (self.folder / "shown").mkdir()
        self.train("shown/one", "--plugin", library, "--steps", 1)
        # A window that says what it is started with.
        program = self.folder / "bin" / "trainscope"
        program.parent.mkdir()
        shutil.copy(PROGRAM, program)
        window = program.parent / "trainscope-window"
        window.write_text("#!/bin/sh\necho \"$@\"\n", encoding="utf-8")
        window.chmod(0o755)

        def words(path):
            done = subprocess.run([program, "gui", path], cwd=self.folder, check=True, capture_output=True, text=True)
            return done.stdout.split()
        self.assertEqual(["gui", "shown", "--plugin", str(library)], words("shown"))
        self.assertEqual(["gui", "shown/one", "--plugin", str(library)], words("shown/one"))
        with open(library, "ab") as file:
            file.write(b"changed")
        self.assertEqual(["gui", "shown"], words("shown"))  # which tells of the run that lacks its plugin

    def test_a_model_needs_its_plugin(self):
        done = self.train("none", "--steps", 1, code=BAD_INPUT)
        self.assertIn("com.example.Squareplus", done.stderr)
        done = self.train("none", "--optimizer", "com.example.signum", "--steps", 1, code=2,
                          model=self.plain_model())
        self.assertIn("there is no optimizer 'com.example.signum'", done.stderr)
        done = self.train("none", "--plugin", self.example, "--optimizer", "com.example.signun", "--steps", 1,
                          code=2)
        self.assertIn("did you mean 'com.example.signum'?", done.stderr)

    def plain_model(self):
        path = self.folder / "relu.onnx"
        self.save_model(path, ["Relu"])
        return path

    def test_files_that_are_no_plugin_are_refused(self):
        text = self.folder / "text.so"
        text.write_text("this is no library" * 10, encoding="utf-8")
        self.refused(text, "it is no ELF file")
        empty = self.folder / "empty.so"
        empty.write_bytes(b"")
        self.refused(empty, "it is no ELF file")
        data = bytearray(self.example.read_bytes())
        data[18:20] = (183).to_bytes(2, "little")
        other = self.folder / "arm.so"
        other.write_bytes(data)
        self.refused(other, "it is for another architecture (ELF machine 183), this program is for x86-64")
        cut = self.folder / "cut.so"
        cut.write_bytes(self.example.read_bytes()[:3000])
        self.refused(cut, "is refused: ")
        self.refused(self.compile("nothing", "int x;"), "it does not export trainscope_plugin_entry")
        lacking = self.compile("lacking", "extern \"C\" int missing_function(); extern \"C\" int f() { return "
                               "missing_function(); }")
        self.refused(lacking, "missing_function")
        self.refused(self.folder / "absent.so", "absent.so", code=6)
        self.refused(self.folder, "", code=6)

    def test_plugins_that_crash_are_refused(self):
        self.refused(self.compile("constructor", "static int f() { return *(volatile int*)0; } int x = f();"),
                     "it crashed while it was loaded: signal 11 (Segmentation fault)")
        for name, change, reason in (
                ("segv", "*(volatile int*)0 = 1;", "it crashed in its entry: signal 11"),
                ("abort", "std::abort();", "it crashed in its entry: signal 6 (Aborted)"),
                ("throw", "throw std::runtime_error(\"x\");", "it crashed in its entry: signal 6"),
                ("exit", "std::exit(0);", "it ended the process in its entry: exit code 0"),
                ("tables", "plugin.ops = (const api::Op* const*)8;",
                 "it crashed when its tables were read: signal 11"),
                ("null", "return nullptr;", "it does not work with version 1 of the plugin interface")):
            with self.subTest(name):
                self.refused(self.compile(name, PLAIN.replace("CHANGE", change)), reason)

    def test_plugins_with_a_fault_are_refused(self):
        for name, change, reason in (
                ("version", "plugin.version = 2;",
                 "it was built for version 2 of the plugin interface, this program has 1"),
                ("size", "plugin.size = 4;", "its description has no size"),
                ("name", "plugin.name = nullptr;", "it has no name"),
                ("taken", "op.name = \"Relu\";", "op Relu: there is an op of this name in ai.onnx"),
                ("no_shape", "op.shape = nullptr;", "op Twice has no shape rule"),
                ("domain", "op.domain = \"\";", "is no domain of a plugin"),
                ("ours", "op.domain = \"ai.trainscope\";", "is no domain of a plugin"),
                ("counts", "op.max_inputs = 0;", "op Twice: 1 to 0 inputs"),
                ("gradient", "op.gradient = \"Twice_grad (x, y, dy) => (dx) { dx = Ad (dy, dy) }\";",
                 "the gradient of Twice:1: there is no op Ad"),
                ("other_gradient", "op.gradient = \"Thrice_grad (x, y, dy) => (dx) { dx = Add (dy, dy) }\";",
                 "its gradient is called Thrice_grad, not Twice_grad"),
                ("dtype", "kernel.dtype = 99;", "kernel twice.test: there is no element type 99"),
                ("no_run", "kernel.run = nullptr;", "kernel twice.test has no function"),
                ("foreign", "kernel.op = \"Softmax\";", "Softmax of the program has parameters"),
                ("no_op", "kernel.op = \"Thrice\";", "kernel twice.test: there is no op 'Thrice'"),
                ("no_kernel", "plugin.kernel_count = 0;", "op Twice has neither a kernel nor a definition"),
                ("endless", "op.definition = \"Twice (x) => (y) { y = com.example.Twice (x) }\";",
                 "its definition uses Twice, which is not defined before it"),
                ("nothing", "op.definition = \"Twice (x) => (_) { y = Add (x, x) }\";",
                 "its definition makes no result of one of its outputs"),
                ("number", "plugin.op_count = -1;", "it has -1 ops"),
                ("null_op", "static const api::Op* const none[] = {nullptr}; plugin.ops = none;",
                 "op number 0 is not there"),
                ("optimizer", "static api::Optimizer o; o.name = \"o\"; o.step = \"Relu\"; static const "
                 "api::Optimizer* const os[] = {&o}; plugin.optimizers = os; plugin.optimizer_count = 1;",
                 "optimizer o: 'Relu' is no op of this plugin")):
            with self.subTest(name):
                self.refused(self.compile(name, PLAIN.replace("CHANGE", change)), reason)

    def test_what_a_plugin_says_later_is_told_as_an_error(self):
        model = self.folder / "twice.onnx"
        self.save_model(model, ["Twice"])
        for name, text, reason in (
                ("bad_shape", PLAIN.replace("outputs[0] = call.inputs[0].type;", "outputs[0].rank = 9;"),
                 "which is no type"),
                ("throwing", PLAIN.replace("outputs[0] = call.inputs[0].type;",
                                           "throw std::runtime_error(\"no such shape\");"), "no such shape"),
                ("other_type", PLAIN.replace("CHANGE", "op.definition = \"Twice (x) => (y) { y = ReduceSum (x) }\";"),
                 "the plugin's definition makes"),
                ("failing", PLAIN.replace("  for (long i", "  if (true) throw std::runtime_error(\"no luck\");\n  for (long i"),
                 "the kernel twice.test could not compute this: no luck")):
            with self.subTest(name):
                library = self.compile(name, text.replace("CHANGE", ""))
                done = self.train(name, "--plugin", library, "--steps", 1, model=model, code=BAD_INPUT)
                self.assertIn(reason, done.stderr)
        library = self.compile("twice", PLAIN.replace("CHANGE", ""))
        self.train("twice", "--plugin", library, "--steps", 3, model=model)

    def test_two_plugins_and_the_same_one_twice(self):
        library = self.compile("second", PLAIN.replace("CHANGE", ""))
        self.run_program("inspect", self.model, "--plugin", self.example, "--plugin", library, "--plugin", library)
        copy = self.folder / "copy.so"
        shutil.copy(self.compile("third", PLAIN.replace("CHANGE", "op.doc = \"other\";")), copy)
        done = self.run_program("inspect", self.model, "--plugin", library, "--plugin", copy, code=BAD_INPUT)
        self.assertIn("op Twice: there is an op of this name in com.example", done.stderr)

    def test_plugins_of_one_file_name(self):
        """A run's settings hold both hashes, whichever is loaded first."""
        words = []
        for place, plugin in (("one", self.example), ("two", self.compile("other", PLAIN.replace("CHANGE", "")))):
            (self.folder / place).mkdir()
            library = self.folder / place / "same.so"
            shutil.copy(plugin, library)
            words.append(["--plugin", library])
        for run, order in (("there", words), ("back", reversed(words))):
            self.train(run, *sum(order, []), "--steps", 2)
            manifest = json.loads((self.folder / run / "manifest.json").read_text(encoding="utf-8"))
            hashes = sorted(plugin["xxh3"] for plugin in manifest["model"]["plugins"])
            self.assertEqual(2, len(set(hashes)))
            checkpoint = self.folder / run / "checkpoints/step-00000002"
            settings = "".join(file.read_text(encoding="utf-8") for file in checkpoint.glob("*.json"))
            self.assertIn(" ".join(hashes), settings)
        self.run_program("train", "--resume", "back", "--steps", 4)

    def test_gradients_of_the_user(self):
        gradients = self.folder / "grads.txt"
        gradients.write_text("Relu_grad (x, y, dy) => (dx) {\n  dx = Identity (dy)\n}\n", encoding="utf-8")
        model = self.plain_model()
        self.train("own", "--steps", 4, model=model)
        self.train("given", "--gradients", gradients.name, "--steps", 4, "--save-every", 2, model=model)
        self.assertEqual(self.losses("own")[0], self.losses("given")[0])
        self.assertNotEqual(self.losses("own")[2:], self.losses("given")[2:])
        self.assertIn("UserGradient", self.run_program("inspect", "given", "--stage", "imported").stdout)
        self.run_program("at", "given", "--step", "3", "--value", "h1")
        elsewhere = self.folder / "elsewhere"
        elsewhere.mkdir()
        self.run_program("train", "--resume", self.folder / "given", "--steps", 5, folder=elsewhere)
        gradients.write_text("Relu_grad (x, y, dy) => (dx) {\n  dx = Neg (dy)\n}\n", encoding="utf-8")
        done = self.run_program("at", "given", "--step", "3", "--value", "h1", code=BAD_INPUT)
        self.assertIn("have changed since the run", done.stderr)
        done = self.run_program("train", "--resume", "given", "--steps", "6", code=2)
        self.assertIn("gradients was", done.stderr)


if importlib.util.find_spec("onnx") is None or shutil.which("cmake") is None or shutil.which(compiler()) is None:
    print("skipped: python3-onnx, cmake or the compiler is not installed")
    sys.exit(77)
PROGRAM, OP_SUITE = map(os.path.abspath, sys.argv[1:3])
unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
