#!/usr/bin/python3
"""`trainscope shot`: pictures of every panel, their sizes; SVG with text and without bitmaps; models with
open sizes; errors.

Usage: shot_test.py TRAINSCOPE.
"""
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
import zlib
from pathlib import Path

TRAINSCOPE = sys.argv[1]
PANELS = ["overview", "stages", "graph", "memory", "budget", "timeline", "kernels", "roofline",
          "runs", "inspector", "window"]
SVG = "{http://www.w3.org/2000/svg}"


def trainscope(*words):
    environment = {name: value for name, value in os.environ.items() if name != "DISPLAY"}
    return subprocess.run([TRAINSCOPE, *map(str, words)], capture_output=True, text=True,
                          check=False, env=environment)


def make_run(folder):
    for words in (["model", "lenet", "-o", folder / "model.onnx"],
                  ["train", folder / "model.onnx", "--data", "synthetic", "--steps", "4",
                   "--run-dir", folder / "run", "--profile", "steps=2:4"]):
        done = trainscope(*words)
        assert done.returncode == 0, done.stderr
    return folder / "run"


def read_png(path):
    """Width, height, and how many different bytes its rows have."""
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    width, height, bits, kind = struct.unpack(">IIBB", data[16:26])
    assert (bits, kind) == (8, 2)
    length = struct.unpack(">I", data[33:37])[0]
    rows = zlib.decompress(data[41:41 + length])
    assert len(rows) == height * (1 + 3 * width)
    return width, height, len(set(rows))


def check_png(run, folder):
    for panel in PANELS:
        for theme in ("dark", "light", "color-blind"):
            out = folder / f"{panel}-{theme}.png"
            done = trainscope("shot", run, "--panel", panel, "--theme", theme, "-o", out, "--json")
            assert done.returncode == 0, (panel, done.stderr)
            assert json.loads(done.stdout)["bytes"] == out.stat().st_size
            width, height, different = read_png(out)
            assert (width, height) == (1280, 720), (panel, width, height)
            assert different > 20, f"{panel} is nearly empty"
        for size, scale in (("2560x1440", "2"), ("960x540", "1.5"), ("1920x1080", "3")):
            out = folder / "sized.png"
            done = trainscope("shot", run, "--panel", panel, "--size", size, "--scale", scale, "-o", out)
            assert done.returncode == 0, (panel, done.stderr)
            width, height, different = read_png(out)
            assert f"{width}x{height}" == size
            assert different > 20, f"{panel} at {size} is nearly empty"
    again = folder / "again.png"
    trainscope("shot", run, "--panel", "kernels", "-o", again)
    assert again.read_bytes() == (folder / "kernels-dark.png").read_bytes()


def check_svg(run, folder):
    for panel in PANELS:
        out = folder / f"{panel}.svg"
        done = trainscope("shot", run, "--panel", panel, "-o", out)
        assert done.returncode == 0, (panel, done.stderr)
        tree = ElementTree.parse(out)
        kinds = [element.tag for element in tree.iter()]
        assert kinds.count(SVG + "text") > 3, panel
        assert SVG + "image" not in kinds
        if shutil.which("rsvg-convert"):
            picture = folder / "from-svg.png"
            subprocess.run(["rsvg-convert", str(out), "-o", str(picture)], check=True)
            assert picture.stat().st_size > 1000
    texts = [element.text for element in ElementTree.parse(folder / "kernels.svg").iter(SVG + "text")]
    assert "GFLOP/s" in texts, texts


def check_errors(run, folder):
    cases = [
        (["shot", run], 2, "-o FILE.png"),
        (["shot", run, "-o", folder / "x.jpg"], 2, "-o FILE.png"),
        (["shot", run, "--panel", "nothing", "-o", folder / "x.png"], 2, "there is no panel"),
        (["shot", run, "--size", "10x10", "-o", folder / "x.png"], 2, "--size"),
        (["shot", run, "--select", "node:nobody", "-o", folder / "x.png"], 2, "--select"),
        (["shot", run, "--exec", "no.command", "-o", folder / "x.png"], 2, "--exec"),
        (["shot", run, "--exec", "go.forward", "-o", folder / "x.png"], 2, "not now"),
        (["shot", folder / "nowhere", "-o", folder / "x.png"], 3, ""),
        (["shot", run, "-o", folder / "no/such/folder/x.png"], 6, ""),
    ]
    for words, code, part in cases:
        done = trainscope(*words)
        assert done.returncode == code, (words, done.returncode, done.stderr)
        assert done.stderr.startswith("error: ") and part in done.stderr, (words, done.stderr)
        assert not (folder / "x.png").exists()
    done = trainscope("shot", run, "--panel", "nothing", "-o", folder / "x.png", "--json")
    error = json.loads(done.stdout)["error"]
    assert error["code"] == 2 and "kernels" in error["hint"], error


def check_two_runs(run, folder):
    """Of several runs the last is shown, the others are open beside it."""
    done = trainscope("shot", run, run, "--at", "runs", "-o", folder / "two.svg")
    assert done.returncode == 0, done.stderr
    text = (folder / "two.svg").read_text()
    assert "One run is open" not in text and (folder / "two.svg").stat().st_size > 0
    done = trainscope("shot", run, "--at", "nothing", "-o", folder / "none.png")
    assert done.returncode == 2 and "--at: there is no panel" in done.stderr, done.stderr


def check_frames(run, folder):
    """A frame is drawn after each command: where the graph is looked at from is known once it was drawn."""
    done = trainscope("shot", run, "--panel", "window", "--exec", "go.graph", "--exec", "graph.fit",
                      "--exec", "file.bookmark", "--exec", "go.memory", "-o", folder / "framed.png")
    assert done.returncode == 0, done.stderr
    notes = json.loads((run / "notes.json").read_text(encoding="utf-8"))["notes"]
    assert len(notes) == 1 and "camera=" in notes[0]["view"], notes


def check_sizes(folder):
    """Of a model that leaves batch and sequence open."""
    model = folder / "open.onnx"
    made = trainscope("model", "gpt2", "--layers", "1", "--embedding", "16", "--heads", "2", "--vocab", "32",
                      "--context", "8", "-o", model)
    assert made.returncode == 0, made.stderr
    out = folder / "sized.svg"
    texts = {}
    for sizes in (["--batch", "2", "--seq", "5"], ["--batch-size", "4", "--shape", "sequence=5"]):
        done = trainscope("shot", model, *sizes, "--panel", "overview", "-o", out)
        assert done.returncode == 0, done.stderr
        texts[sizes[1]] = [element.text for element in ElementTree.parse(out).iter(SVG + "text")]
        plan = json.loads(trainscope("plan", model, *sizes, "--json").stdout)
        shown = f"{plan['arena_bytes'] / 1024:.1f}"
        assert any(text.startswith(shown) for text in texts[sizes[1]]), (shown, texts[sizes[1]])
    assert texts["2"] != texts["4"]
    for sizes, part in (([], "give them by --batch N, --seq N or --shape NAME=DIMS"),
                        (["--batch", "0"], "--batch"),
                        (["--shape", "nobody=3"], "'nobody'"),
                        (["--shape", "batch=0", "--seq", "5"], "0 examples"),
                        (["--seq", "5", "--shape", "ids=2,4"], "--seq 5 does not fit")):
        done = trainscope("shot", model, *sizes, "-o", folder / "x.png")
        assert done.returncode == 2, (sizes, done.returncode, done.stderr)
        assert done.stderr.count("error: ") == 1 and part in done.stderr, (sizes, done.stderr)
        assert not (folder / "x.png").exists()


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run = make_run(folder)
        check_png(run, folder)
        check_svg(run, folder)
        check_errors(run, folder)
        check_frames(run, folder)
        check_two_runs(run, folder)
        check_sizes(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
