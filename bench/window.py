#!/usr/bin/python3
"""What the window takes: frames, layouts, first pictures, memory, answers to a moved budget.

    bench/window.py --run RUN [--name window]

window_bench and window_frames_bench have the time to build a frame, panels and all, budget_bench the
Budget panel's answers on GPT-2 355M, 8 x 1024 tokens. First pictures are whole processes of
`trainscope shot RUN --panel window`, from their start to the written PNG, of --run
and of a run of 10,000,000 events; beside each the most anonymous memory that the process had. Each is
the median of --rounds; the limits stand in the tables.
"""
import argparse
import json
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import measure

FRAME_MS = {1_000_000: 4.0, 4_000_000: 8.0}
LAYOUT_MS = 50.0


def arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, required=True, help="with a profile, as ./demo.sh makes")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--name", default="window", help="of the files: DATE-NAME.md")
    parser.add_argument("--build", type=Path, default=measure.ROOT / "build/release")
    parser.add_argument("--out", type=Path, default=measure.RESULTS)
    return parser.parse_args()


def lines_of(*command):
    return subprocess.run([*map(str, command)], check=True, capture_output=True, text=True).stdout.splitlines()


def anonymous_bytes(pid):
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    return 0


def children_of(pid):
    found = [pid]
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in task.read_text().split():
            found += children_of(int(child))
    return found


def shot(options, run, picture):
    start = time.monotonic()
    process = subprocess.Popen([options.build / "bin/trainscope", "shot", run, "--panel", "window",
                                "-o", picture], stdout=subprocess.DEVNULL)
    most = 0
    while process.poll() is None:
        try:
            most = max(most, sum(map(anonymous_bytes, children_of(process.pid))))
        except (OSError, ProcessLookupError):
            pass
        time.sleep(0.001)
    if process.returncode != 0:
        raise SystemExit(f"shot {run} exits with {process.returncode}")
    return {"seconds": time.monotonic() - start, "anonymous": most}


def first_picture(options, run, folder):
    rounds = [shot(options, run, folder / "picture.png") for _ in range(options.rounds)]
    size = sum(file.stat().st_size for file in run.rglob("*") if file.is_file())
    return {"run_bytes": size, "seconds": statistics.median(each["seconds"] for each in rounds),
            "anonymous_bytes": max(each["anonymous"] for each in rounds), "rounds": rounds}


def main():
    options = arguments()
    tools = options.build / "bin"
    views = [json.loads(line) for line in lines_of(tools / "window_bench")]
    frames = [json.loads(line) for line in lines_of(tools / "window_frames_bench")]
    head, values = lines_of(tools / "budget_bench", "gpt2", "355M", 8, 1024, 24)
    budget = dict(zip(head.split(","), values.split(",")))
    with tempfile.TemporaryDirectory(prefix="trainscope-window-") as name:
        folder = Path(name)
        lines_of(tools / "window_frames_bench", folder / "many", 10_000_000)
        pictures = {"the demo's run": (0.5, first_picture(options, options.run, folder)),
                    "10,000,000 events": (1.5, first_picture(options, folder / "many", folder))}
    body = "A frame, panels and all (most 4 ms at 1 M events, 8 ms at 4 M):\n\n" + measure.table(
        ["scene", "nodes", "events", "ms (median)", "ms (least)", "within"],
        [[f["scene"], f["nodes"], f"{f['events']:,}", f["median_ms"], f["least_ms"],
          "yes" if f["median_ms"] < FRAME_MS[1_000_000 if f["events"] < 2e6 else 4_000_000] else "NO"]
         for f in frames])
    body += "\nLayout of a graph (most 50 ms):\n\n" + measure.table(
        ["nodes", "edges", "layout, ms", "picture, ms", "within"],
        [[v["nodes"], v["edges"], v["layout_ms"], v["picture_ms"],
          "yes" if v["layout_ms"] < LAYOUT_MS else "NO"] for v in views])
    body += "\nFirst picture, and anonymous memory (most 150 MB and 0.3 of the run):\n\n" + measure.table(
        ["run", "MB", "s", "most s", "anonymous MB", "most MB", "within"],
        [[what, f"{p['run_bytes'] / 1e6:.1f}", f"{p['seconds']:.3f}", limit,
          f"{p['anonymous_bytes'] / 1e6:.1f}", f"{150 + 0.3 * p['run_bytes'] / 1e6:.1f}",
          "yes" if p["seconds"] < limit and p["anonymous_bytes"] < 150e6 + 0.3 * p["run_bytes"] else "NO"]
         for what, (limit, p) in pictures.items()])
    body += ("\nBudget of GPT-2 355M, 8 x 1024 tokens (points of the curve, and what a search makes of them, "
             "within 10 ms, rectangles of the draft within 400):\n\n"
             + measure.table(list(budget), [list(budget.values())]))
    facts = {"views": views, "frames": frames, "budget": budget,
             "pictures": {what: p for what, (_, p) in pictures.items()}}
    measure.write_report(options.name, "What the window takes", body, facts, options.out)


if __name__ == "__main__":
    main()
