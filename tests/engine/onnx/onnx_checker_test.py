"""Hands the files that our exports write to ONNX's own checker and shape inference.

usage: onnx_checker_test.py TEST_PROGRAM    (exit 77, "skipped", without python3-onnx)
"""
import os
import subprocess
import sys
import tempfile

try:
    import onnx
    import onnx.checker
    import onnx.shape_inference
except ImportError:
    print("python3-onnx is not installed")
    sys.exit(77)


def main(program):
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ, TRAINSCOPE_CHECKER_FOLDER=folder)
        command = [program, "--test-case=onnx checker: files for it"]
        subprocess.run(command, env=environment, check=True)
        names = sorted(name for name in os.listdir(folder) if name.endswith(".onnx"))
        if not names:
            sys.exit("the test program wrote no models")
        failures = 0
        for name in names:
            path = os.path.join(folder, name)
            try:
                onnx.checker.check_model(path)
                onnx.shape_inference.infer_shapes(onnx.load(path), strict_mode=True)
                print("ok", name)
            except Exception as error:  # whatever the library raises is a finding
                failures += 1
                print("REFUSED", name, error)
        return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
