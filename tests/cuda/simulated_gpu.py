"""Programs of a build on the simulated GPU, and how a test of them says what holds."""
import array
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
MODELS, ZOO = TESTS / "data/models", TESTS / "zoo"
ELEMENTS = {"F32": "f", "F64": "d", "I64": "q"}  # as the module array calls them


def graph_of(name):
    """The model of a folder of tests/data/models, or of tests/zoo by a name that begins with zoo/."""
    return (TESTS if name.startswith("zoo/") else MODELS) / name / "model.onnx"


def tensors_of(path):
    """A safetensors file: by name an array of all elements."""
    data = path.read_bytes()
    begin = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:begin])
    header.pop("__metadata__", None)
    return {name: array.array(ELEMENTS[entry["dtype"]], data[slice(*(begin + at for at in entry["data_offsets"]))])
            for name, entry in header.items()}


def program(build, name="trainscope"):
    return build / "simulated/bin" / name


def finished(command, **environment):
    """The finished process, whatever became of it."""
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False,
                          env={**os.environ, **{name: str(value) for name, value in environment.items()}})


def call(command, **environment):
    """The finished process; ends the test where that failed."""
    done = finished(command, **environment)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stderr[-2000:]}")
    return done


def expect(what, is_so, detail=""):
    print(f"{'ok  ' if is_so else 'FAIL'} {what} {detail}", flush=True)
    if not is_so:
        raise SystemExit(1)


def run_cases(*cases):
    """Runs case(build, scratch) of the command line BUILD_FOLDER [CASE], by a function's name, or all of them. Exit
    code 77: the CUDA back end is not built."""
    build = Path(sys.argv[1])
    if not program(build).is_file():
        print("skipped: the CUDA back end is not built")
        sys.exit(77)
    names = {case.__name__: case for case in cases}
    with tempfile.TemporaryDirectory() as scratch:
        for case in [names[sys.argv[2]]] if len(sys.argv) > 2 else cases:
            case(build, scratch)
