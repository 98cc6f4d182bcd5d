#!/usr/bin/python3
"""What large models cost in memory: chains of 50,000 nodes, names as long as they may be and longer.

Usage: model_memory_test.py TRAINSCOPE. Limits are on the highest resident memory of the program.
With a sanitizer, which needs several times the memory, only what it answers is checked. A process
begins with the memory of the one that forks it, so that this one stays small: it makes models in
others (model_memory_test.py --make NODES NAME_BYTES FILE).
"""
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

LOSS = ["--loss", "mse:output=y"]
MIB = 1 << 20


def make_chain(nodes, name_bytes, path):
    """x -> Mul by a weight -> Tanh, Neg, Tanh, ... -> y; names filled up to so many bytes."""
    import onnx
    from onnx import TensorProto, helper

    def name(text):
        return text.ljust(name_bytes, "-")

    values = ["x", *(name(f"v{i}") for i in range(1, nodes)), "y"]
    made = [helper.make_node("Mul", ["x", "w"], [values[1]], name("n0"))]
    for i in range(1, nodes):
        op = "Neg" if i % 2 == 0 else "Tanh"
        made.append(helper.make_node(op, [values[i]], [values[i + 1]], name(f"n{i}")))
    graph = helper.make_graph(
        made, "chain", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 2])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 2])],
        [helper.make_tensor("w", TensorProto.FLOAT, [2, 2], [1.0, 2.0, 3.0, 4.0])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    onnx.save(model, path)


class ModelMemory(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory(prefix="trainscope-memory-")
        self.folder = Path(self.scratch.name)

    def tearDown(self):
        self.scratch.cleanup()

    def chain(self, nodes, name_bytes=0):
        path = self.folder / "model.onnx"
        subprocess.run([sys.executable, __file__, "--make", str(nodes), str(name_bytes), str(path)],
                       check=True)
        return path

    def run_program(self, *words):
        """Exit code, standard output, standard error, highest resident bytes."""
        with open(self.folder / "out", "w+b") as out, open(self.folder / "err", "w+b") as err:
            child = subprocess.Popen([PROGRAM, *map(str, words)], stdout=out, stderr=err)
            _, status, usage = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
            out.seek(0)
            err.seek(0)
            return (child.returncode, out.read().decode(), err.read().decode(),
                    usage.ru_maxrss * 1024)

    def check_memory(self, resident, limit):
        print(f"{self.id().split('.')[-1]}: {resident / MIB:.0f} MiB resident")
        if not SANITIZED:
            self.assertLess(resident, limit)

    def test_a_chain_of_50000_nodes_is_checked_in_400_mb(self):
        model = self.chain(50_000)
        code, out, err, resident = self.run_program("check", model, *LOSS, "--json")
        self.assertEqual(code, 0, err)
        self.assertEqual(json.loads(out)["nodes"], 50_000)
        self.assertGreater(json.loads(out)["calls"], 99_000)
        self.check_memory(resident, 400_000_000)

    def test_memory_is_in_proportion_to_the_nodes(self):
        least = self.run_program("version")[3]
        for verb in ("check", "plan"):
            taken = []
            for nodes in (5_000, 20_000):
                model = self.chain(nodes)
                code, _, err, resident = self.run_program(verb, model, *LOSS)
                self.assertEqual(code, 0, err)
                taken.append(resident - least)
            with self.subTest(verb=verb):
                self.check_memory(taken[1], 5 * taken[0])

    def test_names_as_long_as_they_may_be(self):
        model = self.chain(3_000, name_bytes=4096)  # 36 MB of names
        self.assertGreater(model.stat().st_size, 36_000_000)
        code, _, err, resident = self.run_program("check", model, *LOSS)
        self.assertEqual(code, 0, err)
        self.check_memory(resident, 400_000_000)

    def test_longer_names_are_refused_before_any_copy_is_made(self):
        model = self.chain(300, name_bytes=60_000)  # 54 MB
        code, _, err, resident = self.run_program("check", model, *LOSS)
        self.assertEqual(code, 3, err)
        self.assertIn("error: node 'n0----", err)
        self.assertIn("(60000 bytes)': the name is longer than 4 KiB", err)
        self.assertLess(len(err), 600)
        self.check_memory(resident, 200_000_000)


if sys.argv[1] == "--make":
    make_chain(int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
    sys.exit()
if importlib.util.find_spec("onnx") is None:
    print("skipped: python3-onnx is not installed")
    sys.exit(77)
PROGRAM = sys.argv.pop()
SANITIZED = subprocess.run(["grep", "-q", "__asan_init", PROGRAM]).returncode == 0
if __name__ == "__main__":
    unittest.main(argv=sys.argv)
