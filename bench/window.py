#!/usr/bin/python3
"""What the window takes: frames, layouts, pictures, memory, answers to a moved budget.

    bench/window.py --run RUN [--name window]

window_frames_bench has the time to build a frame, panels and all, at rest and with an input before each
frame; window_bench layouts of graphs, and how far they stay the same from stage to stage; budget_bench
the Budget panel's answers on GPT-2 355M, 8 x 1024 tokens. Pictures are whole processes of `trainscope
shot RUN --panel window`, from their start to the written PNG, of --run and of a run of 10,000,000
events: the first picture, and one after every panel was drawn and a budget planned. Beside each is the
most anonymous memory that its processes had. Each is the median of --rounds, of memory the most; the
limits stand in the tables. --quick is for trying it out: few frames of small graphs, one round.
"""
import argparse
import json
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import measure

FRAME_MS = ((2_000, 4.0), (8_000, 8.0))  # for at least so many nodes
LAYOUT_MS = 50.0
STABLE_SHARE = 0.95
FIRST_S = {"the demo's run": 0.5, "10,000,000 events": 1.5}
ANONYMOUS_BYTES, OF_RUN = 150e6, 0.3
POINT_MS = 10.0
RECTANGLES_MS = 400.0
# A frame is drawn after each; budget.1 waits for its plan.
EVERY_PANEL = ["select call:0", "panel graph", "panel stages", "stages.near_misses", "panel memory",
               "panel budget", "budget.1", "panel timeline", "panel kernels", "panel roofline",
               "panel overview", "panel runs", "go.palette"]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, required=True, help="with a profile, as ./demo.sh makes")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--quick", action="store_true", help="less of everything: the numbers say nothing")
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


def shot(options, run, picture, commands):
    words = [word for command in commands for word in ("--exec", command)]
    start = time.monotonic()
    process = subprocess.Popen([options.build / "bin/trainscope", "shot", run, "--panel", "window",
                                *words, "-o", picture], stdout=subprocess.DEVNULL)
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


def picture_of(options, run, folder, commands=()):
    rounds = [shot(options, run, folder / "picture.png", commands) for _ in range(options.rounds)]
    size = sum(file.stat().st_size for file in run.rglob("*") if file.is_file())
    return {"run_bytes": size, "commands": list(commands),
            "seconds": statistics.median(each["seconds"] for each in rounds),
            "anonymous_bytes": max(each["anonymous"] for each in rounds), "rounds": rounds}


def pictures_of(options, folder):
    events = 100_000 if options.quick else 10_000_000
    lines_of(options.build / "bin/window_frames_bench", folder / "many", events)
    runs = dict(zip(FIRST_S, (options.run, folder / "many")))
    return {what: {"first": picture_of(options, run, folder),
                   "every panel": picture_of(options, run, folder, EVERY_PANEL)}
            for what, run in runs.items()}


def within(value, limit):
    return "yes" if value <= limit else "NO"


def frame_limit(frame):
    return max((limit for nodes, limit in FRAME_MS if frame["nodes"] >= nodes), default=FRAME_MS[0][1])


def frames_text(frames):
    head = ["panel", "input", "nodes", "events", "first frame, ms", "ms (median)", "ms (95 of 100)", "ms (worst)"]

    def cells(frame):
        return [frame["scene"], frame["input"], frame["nodes"], f"{frame['events']:,}", frame["first_frames_ms"],
                frame["median_ms"], frame["p95_ms"], frame["worst_ms"]]
    limits = " and ".join(f"{limit:g} ms from {nodes:,} nodes on" for nodes, limit in FRAME_MS)
    drawn = [[*cells(f), within(f["worst_ms"], frame_limit(f))] for f in frames if not f["reads"]]
    read = [cells(f) for f in frames if f["reads"]]
    return (f"A frame, panels and all (the worst at most {limits}), at rest and with an input before each: the mouse "
            "over the panel, a drag, keys. The first frame is after the run was opened:\n\n"
            + measure.table([*head, "within"], drawn)
            + "\nA frame after a key for which something is read or computed first: a stage, rows of a filter, sums of "
            "a range, a panel that was not shown yet, another run (no limit):\n\n" + measure.table(head, read))


def layouts_text(views):
    text = f"\nLayout of a graph (at most {LAYOUT_MS:g} ms):\n\n" + measure.table(
        ["nodes", "edges", "layout, ms", "picture, ms", "within"],
        [[v["nodes"], v["edges"], v["layout_ms"], v["picture_ms"], within(v["layout_ms"], LAYOUT_MS)]
         for v in views])
    rows = [[v["most_nodes"], v["layout_first_ms"], v["layout_next_ms"], f"{100 * v['in_order']:.2f}",
             f"{100 * v['near_rows']:.2f}",
             "yes" if max(v["layout_first_ms"], v["layout_next_ms"]) <= LAYOUT_MS
             and min(v["in_order"], v["near_rows"]) >= STABLE_SHARE else "NO"] for v in views]
    return text + ("\nLayouts of all stages one after the other, recompute among them (at most "
                   f"{LAYOUT_MS:g} ms; of the nodes that two stages share, at least {100 * STABLE_SHARE:g} % "
                   "keep their order in their block and move at most one row against the nearest):\n\n"
                   + measure.table(["most nodes", "first, ms", "slowest of the next, ms", "in order, least %",
                                    "near rows, least %", "within"], rows))


def pictures_text(pictures):
    rows = []
    for what, of_run in pictures.items():
        for which, p in of_run.items():
            most_s = FIRST_S[what] if which == "first" else None
            most_bytes = ANONYMOUS_BYTES + OF_RUN * p["run_bytes"]
            good = p["anonymous_bytes"] <= most_bytes and (most_s is None or p["seconds"] <= most_s)
            rows.append([what, which, f"{p['run_bytes'] / 1e6:.1f}", f"{p['seconds']:.3f}", most_s or "-",
                         f"{p['anonymous_bytes'] / 1e6:.1f}", f"{most_bytes / 1e6:.1f}", "yes" if good else "NO"])
    return (f"\nPictures, and anonymous memory (at most {ANONYMOUS_BYTES / 1e6:g} MB and {OF_RUN:g} of the run), "
            "of a window that drew its first panel, and of one that drew every panel, a plan of recompute level 1 "
            "and the palette:\n\n"
            + measure.table(["run", "picture", "MB", "s", "most s", "anonymous MB", "most MB", "within"], rows))


def budget_text(budget):
    rows = [[what, budget[f"{key}_ms"], budget[f"{key}_most_ms"], limit or "-",
             within(float(budget[f"{key}_most_ms"]), limit) if limit else "-"]
            for key, what, limit in (("point", "the point of the curve", POINT_MS),
                                     ("searched", "what a search of its neighbours makes of it", POINT_MS),
                                     ("draft", "rectangles of the draft", RECTANGLES_MS),
                                     ("plan", "rectangles of the plan that `train` makes", None))]
    return (f"\nBudget of {budget['model']}, {budget['batch']} x {budget['seq']} tokens, "
            f"{budget['front_points']} plans in its front, opened in {budget['open_ms']} ms: a moved slider until "
            f"there is (a point of the curve within {POINT_MS:g} ms, also when it was searched, rectangles of the "
            f"draft within {RECTANGLES_MS:g} ms):\n\n"
            + measure.table(["what", "ms (median)", "ms (worst)", "at most", "within"], rows)
            + f"\nWhoever drags sees {budget['drag_per_second']} drafts a second, none later than "
            f"{budget['drag_longest_ms']} ms.\n")


def main():
    options = arguments()
    if options.quick:
        options.rounds = 1
    tools, quick = options.build / "bin", ["--quick"] if options.quick else []
    views = [json.loads(line) for line in lines_of(tools / "window_bench", *quick)]
    frames = [json.loads(line) for line in lines_of(tools / "window_frames_bench", *quick)]
    head, values = lines_of(tools / "budget_bench", *(("gpt2", "124M", 1, 64, 9) if options.quick
                                                      else ("gpt2", "355M", 8, 1024, 24)))
    budget = dict(zip(head.split(","), values.split(",")))
    with tempfile.TemporaryDirectory(prefix="trainscope-window-") as name:
        pictures = pictures_of(options, Path(name))
    body = frames_text(frames) + layouts_text(views) + pictures_text(pictures) + budget_text(budget)
    facts = {"views": views, "frames": frames, "budget": budget, "pictures": pictures}
    measure.write_report(options.name, "What the window takes", body, facts, options.out)


if __name__ == "__main__":
    main()
