#!/usr/bin/python3
"""`trainscope gui` on command lines that are wrong: one line and exit code 2, before there is a window.

Without a display: a command line that is right ends for want of one, with exit code 4.
Usage: gui_verb_test.py TRAINSCOPE.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

TRAINSCOPE = sys.argv[1]
USAGE, BAD_INPUT, NO_DEVICE = 2, 3, 4


def trainscope(folder, *words):
    environment = {name: value for name, value in os.environ.items()
                   if name not in ("DISPLAY", "WAYLAND_DISPLAY")}
    environment["XDG_CONFIG_HOME"] = str(folder / "config")
    return subprocess.run([TRAINSCOPE, *map(str, words)], capture_output=True, text=True, check=False,
                          env=environment)


def make(folder):
    """A run, and a model that leaves batch and sequence open."""
    small = ["--layers", "1", "--embedding", "16", "--heads", "2", "--vocab", "32", "--context", "8"]
    for words in (["model", "lenet", "-o", folder / "lenet.onnx"],
                  ["train", folder / "lenet.onnx", "--data", "synthetic", "--steps", "2", "--run-dir", folder / "run"],
                  ["model", "gpt2", *small, "-o", folder / "open.onnx"]):
        done = trainscope(folder, *words)
        assert done.returncode == 0, done.stderr
    (folder / "noise.onnx").write_text("this is no model", encoding="utf-8")


def check_wrong(folder):
    run, model = folder / "run", folder / "open.onnx"
    cases = [
        ([run, "--exec", "nonsense"], USAGE, "--exec: there is no command 'nonsense'"),
        ([run, "--exec", "go.kernel"], USAGE, "did you mean 'go.kernels'?"),
        (["--exec", "nonsense"], USAGE, "--exec: there is no command 'nonsense'"),
        ([run, "--exec", "go.kernels", "--exec", "theme purple"], USAGE, "theme: 'purple' is not known"),
        ([run, "--exec", "panel nothing"], USAGE, "--exec: panel: there is no panel 'nothing'"),
        ([run, "--exec", "sizes --batch 0"], USAGE, "--batch is '0'"),
        ([run, "--at", "nothing"], USAGE, "--at: there is no panel 'nothing'"),
        ([run, "--at", "nothing,node:x"], USAGE, "--at: there is no panel 'nothing'"),
        ([run, "--at", "kernels,node:nobody"], USAGE, "--at: nothing here is called 'node:nobody'"),
        ([run, "--at", "kernels,session=2"], USAGE, "--at: kernels: there is no session '2'"),
        (["--at", "kernels,node:nobody"], USAGE, "--at: nothing here is called 'node:nobody'"),
        ([model, "--shape", "nobody=3"], USAGE, "no input or open dimension 'nobody'"),
        ([model, "--batch", "0"], USAGE, "--batch"),
        ([model, "--shape", "batch=0", "--seq", "5"], USAGE, "a batch of 0 examples"),
        ([model, "--shape", "sequence"], USAGE, "expected NAME=2,3"),
        ([model, "--batch", "2"], USAGE, "dimension 1 'sequence'"),
        ([folder / "lenet.onnx", "--seq", "5"], USAGE, "no integer input of two dimensions"),
        ([folder / "noise.onnx", "--batch", "5"], BAD_INPUT, "noise.onnx"),
    ]
    for words, code, part in cases:
        done = trainscope(folder, "gui", *words)
        assert done.returncode == code, (words, done)
        assert done.stderr.startswith("error: ") and done.stderr.count("error: ") == 1, (words, done)
        assert part in done.stderr, (words, done.stderr)
        if "dimension 1" not in part:  # that is a line for each
            assert done.stderr.count("\n") == 1, (words, done.stderr)


def check_right(folder):
    run, model = folder / "run", folder / "open.onnx"
    for words in ([run], [], [run, "--exec", "go.kernels", "--exec", "select node:nobody"],
                  [run, "--at", "memory,call:1"], [run, "--at", "graph"], [run, "--at", "kernels,session=1"],
                  [model], [model, "--at", "graph,node:known-when-it-is-compiled"],
                  [model, "--batch", "2", "--seq", "5"], [model, "--batch-size=2", "--shape", "sequence=5"],
                  [model, "--shape", "ids=2,5", "--at", "memory"], [folder / "nowhere", "--at", "graph,call:1"]):
        done = trainscope(folder, "gui", *words)
        assert done.returncode == NO_DEVICE, (words, done)
        assert done.stderr.count("\n") == 1 and "trainscope shot" in done.stderr, (words, done.stderr)


def check_damaged_settings(folder):
    settings = folder / "config/trainscope/window.json"
    settings.parent.mkdir(parents=True)
    damaged = '{"saved_layouts": {"wide": 3}}'
    settings.write_text(damaged, encoding="utf-8")
    done = trainscope(folder, "gui", folder / "run")
    assert done.returncode == NO_DEVICE, done
    assert done.stderr.startswith("trainscope-window: the usual settings: "), done.stderr
    aside = settings.with_name("window.json.damaged")
    assert not settings.exists() and aside.read_text(encoding="utf-8") == damaged


def needed_libraries(program):
    """Of an ELF file: those that it names, and those that lie beside the ones of our own."""
    done = subprocess.run(["readelf", "-dW", str(program)], capture_output=True, text=True, check=True)
    names = set(re.findall(r"\(NEEDED\).*\[(.+)\]", done.stdout))
    folders = {folder.replace("$ORIGIN", str(program.parent))
               for paths in re.findall(r"\((?:RUNPATH|RPATH)\).*\[(.+)\]", done.stdout)
               for folder in paths.split(":") if folder}
    own = [Path(folder) / name for folder in folders for name in names if (Path(folder) / name).exists()]
    return names.union(*(needed_libraries(library) for library in own))


def check_libraries():
    """Who trains needs no display: no X11, no OpenGL."""
    if shutil.which("readelf") is None:
        print("no readelf here: which libraries the trainer needs is not checked")
        return
    program = Path(TRAINSCOPE).resolve()
    names = needed_libraries(program)
    assert any(name.startswith("libc.so") for name in names), names
    of_display = re.compile(r"lib(X[A-Z1]|xcb|GL|EGL|OpenGL|glfw|wayland|imgui)")
    assert not [name for name in names if of_display.match(name)], names
    window = program.with_name("trainscope-window")
    if window.exists():
        assert [name for name in needed_libraries(window) if of_display.match(name)]


def main():
    check_libraries()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make(folder)
        check_wrong(folder)
        check_right(folder)
        check_damaged_settings(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
