#!/usr/bin/env python3
"""What the stages of scripts/gpu.sh printed, as one JSON file and one markdown file.

    results.py WORK RESULTS --commit HASH [--toy] --stamp TEXT --command "scripts/gpu.sh ..."
    results.py merge GPU.json... FOLDER
    results.py publish GPU.json... FOLDER

WORK holds NAME.jsonl and NAME.done of each stage, of which those with the stamp count. RESULTS takes
gpu.json (every line of every stage) and gpu.md (tables of what is quoted). merge makes one gpu.json
and gpu.md of several runs of one commit on GPUs of one kind: of a stage that several have, the last
that ended with exit code 0, else the last. publish merges likewise, and writes DATE-GPU-COMMIT.json
and .md to be kept: without single records, fragments and lists of algorithms; not of toy sizes.
Exit code 2: these cannot be merged or published, with a line that says why.
"""
import argparse
import datetime
import json
import sys
from pathlib import Path

# Many lines, for tests and not for readers; lists that are long.
LEFT_OUT = {"record", "fragment", "fragment_groups", "graph_node"}
LEFT_OUT_FIELDS = {"algorithms", "samples"}


def lines_of(path):
    """The JSON objects of a stage; text that is none is kept as text."""
    for text in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            value = json.loads(text)
        except ValueError:
            value = None
        yield value if isinstance(value, dict) else {"kind": "text", "text": text[:400]}


def read_stages(work, stamp):
    stages = {}
    for done in sorted(work.glob("*.done"), key=lambda p: p.stat().st_mtime):
        words = done.read_text(encoding="utf-8").split()
        if len(words) != 3 or words[2] != stamp:  # of another commit, or as an older script wrote it
            continue
        status, seconds, _ = words
        lines = done.with_suffix(".jsonl")
        stages[done.stem] = {"exit_code": int(status), "seconds": int(seconds),
                             "lines": list(lines_of(lines)) if lines.exists() else []}
    return stages


def every(stages, kind):
    return [line for stage in stages.values() for line in stage["lines"]
            if line.get("kind") == kind]


def first(stages, kind):
    return next(iter(every(stages, kind)), {})


def table(title, columns, rows):
    """A markdown table; None where there is nothing to show."""
    if not rows:
        return None
    text = [f"## {title}", "| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    text += ["| " + " | ".join(shown(value) for value in row) + " |" for row in rows]
    return "\n".join(text)


def shown(value):
    if isinstance(value, float):
        return f"{value:.4g}"
    return "" if value is None else str(value)


def columns_of(lines, *names):
    return [[line.get(name) for name in names] for line in lines]


def peers(stages):
    names = ("workload", "mode", "precision", "batch", "length", "optimizer", "accumulate",
             "step_ms", "step_ms_min", "step_ms_max", "samples_per_s", "tokens_per_s", "tflops",
             "of_989_tflops", "peak_mib", "warm_up_s")
    return table("PyTorch", names, columns_of(every(stages, "peer"), *names))


def launches(stages):
    return table("Launches: microseconds a call", ("what", "host", "device"),
                 columns_of(every(stages, "launch"), "what", "host_us", "device_us"))


def bandwidth(stages):
    lines = every(stages, "bandwidth")
    whats = list(dict.fromkeys(line["what"] for line in lines))
    sizes = sorted({line["array_bytes"] for line in lines})
    found = {(line["what"], line["array_bytes"]): line["gb_per_s"] for line in lines}
    return table("Device memory: GB/s by the size of an array", ["MiB", *whats],
                 [[size >> 20, *(found.get((what, size)) for what in whats)] for size in sizes])


def host_copies(stages):
    return table("Host copies: GB/s", ("memory", "bytes", "to the device", "to the host"),
                 columns_of(every(stages, "host_copy"), "memory", "bytes", "to_device_gb_per_s",
                            "to_host_gb_per_s"))


def matmuls(stages):
    lines = every(stages, "matmul")
    keys = list(dict.fromkeys((p["workload"], p["name"], p["form"], p["m"], p["n"], p["k"])
                              for p in lines))
    found = {(p["workload"], p["name"], p["form"], p["precision"]): p for p in lines}
    rows = []
    for workload, name, form, m, n, k in keys:
        row = [workload, name, form, m, n, k]
        for precision in ("f32", "tf32", "bf16"):
            p = found.get((workload, name, form, precision), {})
            row += [p.get("tflops_first"), p.get("tflops_best")]
        rows.append(row)
    return table("Matmuls: TFLOP/s of the first algorithm offered and the best of 5",
                 ("workload", "weight", "form", "m", "n", "k", "f32", "best", "tf32", "best",
                  "bf16", "best"), rows)


def functions(stages):
    names = ("name", "stride", "compared", "rounded_right", "within_one_unit",
             "more_than_1000_units", "largest_units", "at")
    return table("Functions against f64", names, columns_of(every(stages, "function"), *names))


def plain(title, kind, *names):
    return lambda stages: table(title, names, columns_of(every(stages, kind), *names))


SECTIONS = (
    peers, launches, bandwidth, host_copies, matmuls,
    plain("Attention by PyTorch's ways", "attention", "workload", "precision", "way", "forward_ms",
          "backward_ms", "forward_tflops", "backward_tflops", "absent"),
    plain("Single ops by PyTorch", "op", "op", "precision", "forward_ms", "forward_gb_per_s",
          "backward_ms", "backward_gb_per_s"),
    plain("What recording costs", "activity_overhead", "level", "launched", "kernel_us", "step_us",
          "step_us_without", "ratio"),
    functions,
    plain("Bits from run to run", "same_bits", "precision", "m", "n", "k", "operations",
          "of_10_runs", "hash"),
    plain("Bits in a larger batch", "larger_batch", "precision", "n", "same_as_64"),
    plain("GELU of the epilogue", "gelu_epilogue", "precision", "algorithms", "from_erf",
          "from_tanh"),
    plain("Ours", "ours", "workload", "precision", "batch", "length", "labels", "optimizer", "accumulate",
          "step_ms", "step_ms_min", "step_ms_max", "tokens_per_s", "samples_per_s", "peak_mib"),
    plain("Ours by op", "ours_op", "workload", "op", "phase", "kernel", "calls", "ms", "tflops",
          "gb_per_s"),
    plain("Profiled steps of ours", "profile", "workload", "precision", "steps", "step_ms", "step_ms_profiled",
          "step_ms_before", "tied_work", "untied_work", "dropped_records", "untimed_work", "outside_life"),
    plain("The longest nodes of a profile", "profile_node", "workload", "node", "ms", "median_ms", "share",
          "count", "gflops", "gbs"),
    plain("Traces of PyTorch", "trace", "file", "events", "device_events", "packed_bytes"),
    plain("Exports of profiles", "export", "workload", "format", "file", "events", "device_events",
          "packed_bytes"),
    plain("Self-test", "self_test", "rows", "examples", "failed", "worst_of_limit"),
    plain("Self-test: attention and what failed", "self_test_row", "op", "type", "kernel", "examples",
          "failed", "worst_of_limit"),
    plain("Against PyTorch's numbers", "verify", "model", "precision", "rows", "beyond",
          "worst_of_limit"),
    plain("Trainings on the GPU, twice, and on the CPU", "training", "what", "precision", "same_bits",
          "last_loss", "last_loss_cpu", "furthest", "predicted_bytes", "used_bytes"),
    plain("Absent", "absent", "what", "why"),
    plain("Errors", "error", "what", "error"),
)


def heading(run, stages):
    gpu = first(stages, "gpu")
    text = [f"# {gpu.get('name', 'no GPU')}, {run['date']}, commit {run['commit']}",
            f"`{run['command']}`",
            f"Driver {gpu.get('driver_version', 'none')}, PyTorch "
            f"{first(stages, 'pytorch').get('torch', 'absent')}, SM clock at the start "
            f"{gpu.get('clocks.sm', '?')} MHz."]
    if run["toy"]:
        text.append("Toy sizes: the script was tried, no time below says anything of a GPU.")
    text.append(table("Stages", ("stage", "exit code", "seconds", "lines"),
                      [[name, s["exit_code"], s["seconds"], len(s["lines"])]
                       for name, s in stages.items()]) or "No stage ran.")
    return text


def text_of(run, stages):
    text = heading(run, stages) + [section(stages) for section in SECTIONS]
    return "\n\n".join(t for t in text if t) + "\n"


def kept(line):
    return {name: value for name, value in line.items()
            if name not in LEFT_OUT_FIELDS or not isinstance(value, list)}


def published(run, stages):
    """JSON with a line of a stage on a line, so that changes can be read."""
    rows = []
    for name, stage in stages.items():
        lines = [kept(line) for line in stage["lines"] if line.get("kind") not in LEFT_OUT]
        head = {"stage": name, "exit_code": stage["exit_code"], "seconds": stage["seconds"]}
        rows.append(json.dumps(head)[:-1] + ', "lines": [\n' +
                    ",\n".join("  " + json.dumps(line) for line in lines) + "]}")
    return json.dumps(run)[:-1] + ', "stages": [\n' + ",\n".join(rows) + "]}\n"


def refuse(why):
    print(f"results.py: {why}", file=sys.stderr)
    sys.exit(2)


def gpu_of(stages):
    return first(stages, "gpu").get("name", "no-gpu")


def merged(files):
    """The run and the stages of all files, by what the module says."""
    run, stages, gpus, commands = None, {}, set(), []
    for file in files:
        found = json.loads(file.read_text(encoding="utf-8"))
        its_stages = found.pop("stages")
        run = run or found
        for what in ("commit", "toy"):
            if found.get(what) != run.get(what):
                refuse(f"{file} is of {what} {found.get(what)}, {files[0]} of {run.get(what)}")
        if every(its_stages, "gpu"):
            gpus.add(gpu_of(its_stages))
        commands += [] if found["command"] in commands else [found["command"]]
        for name, stage in its_stages.items():
            if name not in stages or stage["exit_code"] == 0 or stages[name]["exit_code"] != 0:
                stages.pop(name, None)
                stages[name] = stage
    if len(gpus) > 1:
        refuse(f"these are of several GPUs: {', '.join(sorted(gpus))}")
    return {**run, "command": "; ".join(commands)}, stages


def write(run, stages, folder):
    (folder / "gpu.json").write_text(json.dumps({**run, "stages": stages}, indent=1) + "\n", encoding="utf-8")
    (folder / "gpu.md").write_text(text_of(run, stages), encoding="utf-8")


def publish(run, stages, folder):
    if run["toy"]:
        refuse("toy sizes are not published")
    name = f"{run['date']}-{gpu_of(stages).split()[-1].lower()}-{run['commit'][:8]}"
    (folder / f"{name}.json").write_text(published(run, stages), encoding="utf-8")
    (folder / f"{name}.md").write_text(text_of(run, stages), encoding="utf-8")
    print(folder / name)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    if sys.argv[1:2] in (["merge"], ["publish"]):
        parser.add_argument("verb", choices=("merge", "publish"))
        parser.add_argument("files", type=Path, nargs="+")
        parser.add_argument("folder", type=Path)
        args = parser.parse_args()
        (write if args.verb == "merge" else publish)(*merged(args.files), args.folder)
        return
    parser.add_argument("work", type=Path)
    parser.add_argument("results", type=Path)
    parser.add_argument("--commit", required=True)
    parser.add_argument("--toy", action="store_true", help="the sizes were toys")
    parser.add_argument("--stamp", required=True, help="of the stages that count")
    parser.add_argument("--command", required=True)
    args = parser.parse_args()
    now = datetime.datetime.now(datetime.timezone.utc)
    run = {"date": now.strftime("%Y-%m-%d"), "time": now.strftime("%H:%M:%S"), "commit": args.commit,
           "toy": args.toy, "command": args.command}
    write(run, read_stages(args.work, args.stamp), args.results)


if __name__ == "__main__":
    main()
