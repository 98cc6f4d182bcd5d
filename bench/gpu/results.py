#!/usr/bin/env python3
"""What the stages of scripts/gpu.sh printed, as one JSON file and one markdown file.

    results.py WORK RESULTS --commit HASH --command "scripts/gpu.sh ..."
    results.py publish GPU.json FOLDER

WORK holds NAME.jsonl and NAME.done of each stage. RESULTS takes gpu.json (every line of every
stage) and gpu.md (tables of what is quoted). publish writes DATE-GPU-COMMIT.json and .md to be kept:
without single records, fragments and lists of algorithms.
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


def read_stages(work):
    stages = {}
    for done in sorted(work.glob("*.done"), key=lambda p: p.stat().st_mtime):
        status, seconds = done.read_text(encoding="utf-8").split()
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
    plain("Ours", "ours", "workload", "precision", "batch", "length", "step_ms", "step_ms_min",
          "step_ms_max", "tokens_per_s", "samples_per_s", "peak_mib"),
    plain("Ours by op", "ours_op", "workload", "op", "phase", "kernel", "calls", "ms", "tflops",
          "gb_per_s"),
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


def publish(source, folder):
    found = json.loads(source.read_text(encoding="utf-8"))
    stages = found.pop("stages")
    gpu = first(stages, "gpu").get("name", "no-gpu").split()[-1].lower()
    name = f"{found['date']}-{gpu}-{found['commit'][:8]}"
    (folder / f"{name}.json").write_text(published(found, stages), encoding="utf-8")
    (folder / f"{name}.md").write_text(text_of(found, stages), encoding="utf-8")
    print(folder / name)


def main():
    if len(sys.argv) == 4 and sys.argv[1] == "publish":
        publish(Path(sys.argv[2]), Path(sys.argv[3]))
        return
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=Path)
    parser.add_argument("results", type=Path)
    parser.add_argument("--commit", required=True)
    parser.add_argument("--command", required=True)
    args = parser.parse_args()
    stages = read_stages(args.work)
    now = datetime.datetime.now(datetime.timezone.utc)
    run = {"date": now.strftime("%Y-%m-%d"), "time": now.strftime("%H:%M:%S"),
           "commit": args.commit, "command": args.command}
    (args.results / "gpu.json").write_text(json.dumps({**run, "stages": stages}, indent=1) + "\n",
                                           encoding="utf-8")
    (args.results / "gpu.md").write_text(text_of(run, stages), encoding="utf-8")


if __name__ == "__main__":
    main()
