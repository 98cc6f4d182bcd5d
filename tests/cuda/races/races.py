#!/usr/bin/python3
"""The CUDA kernels under the thread sanitizer: no bytes that two threads use unordered.

    races.py PROGRAM [--whole] [--jobs N] [--out FILE]

PROGRAM is cuda_races: on one example for each kernel, with --whole on all and in nine orders of threads and blocks,
by N processes. --out: a report, as markdown. Besides races it looks for bits that differ between orders, for
kernels of tests/cuda/gates/kernels.tsv that no example launches, or not with two blocks, without a row of
exceptions.tsv, and for kernels with a race of the program's own that the sanitizer does not report.

Exit code 0: nothing found; 1: something does not hold, or the program fails; 77: no c++filt, which names kernels.
"""
import argparse
import datetime
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from race_lines import BadLines, Runs, findings, read_exceptions, rows_by_kernel

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parents[2]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "bench")]
import measure  # noqa: E402  (its folder is not a package)
from cubin import demangled, plain_name  # noqa: E402
from kernel_report import read_table  # noqa: E402

MOST_FINDINGS = 40
MOST_WORDS = 20000  # of the sanitizer, in letters


def run(program, options, jobs):
    """(Runs, the sanitizer's words) of so many processes of the program."""
    with tempfile.TemporaryDirectory() as scratch:
        parts, processes = [], []
        for part in range(jobs):
            paths = [Path(scratch) / f"{part}.{kind}" for kind in ("out", "err")]
            parts.append(paths)
            with open(paths[0], "w", encoding="utf-8") as out, open(paths[1], "w", encoding="utf-8") as err:
                command = [program, *options, "--part", f"{part}/{jobs}"]
                processes.append(subprocess.Popen(command, stdout=out, stderr=err, cwd=ROOT))
        codes = [process.wait() for process in processes]
        runs, words = Runs(), ""
        for (out, err), code in zip(parts, codes):
            words += err.read_text(encoding="utf-8", errors="replace")
            runs.read(out.read_text(encoding="utf-8"))
            if code != 0:
                last = runs.cases[-1].name if runs.cases else "none"
                raise SystemExit(f"{words[-4000:]}\ncuda_races: exit code {code} behind the case {last}")
    return runs, words


def report(runs, folders, exceptions, found, summary, command, seconds):
    yield f"# Races of CUDA kernels, {datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d}, commit {measure.commit()}"
    yield ""
    yield f"{measure.processor(measure.machine())}, {os.cpu_count()} threads, {seconds:.0f} s; `{command}`. Run on no GPU: kernels by the"
    yield "emulator under the thread sanitizer, each CUDA thread a thread of its own."
    yield ""
    yield summary
    yield ""
    yield "Kernels made to show that races are reported:"
    yield ""
    yield "| kernel | reports |"
    yield "|---|---|"
    yield from (f"| {known.name} | {known.reports} |" for known in runs.known)
    yield ""
    yield "Kernels of the back end. Instances are those of a template; an example counts once for each type of its"
    yield "elements; reports are those of examples that launch the kernel:"
    yield ""
    yield "| folder | kernel | instances | examples | of two blocks or more | most blocks | reports |"
    yield "|---|---|---|---|---|---|---|"
    for row in rows_by_kernel(runs, folders):
        yield "| " + " | ".join(map(str, row)) + " |"
    yield ""
    yield "Launched by no example (0), or with one block in all (1):"
    yield ""
    yield from (f"- `{each.kernel}` ({each.blocks}): {each.reason}" for each in exceptions)
    yield ""
    yield f"Findings: {len(found)}"
    yield from (f"- {each}" for each in found)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", type=Path)
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    if not shutil.which("c++filt"):
        print("skipped: no c++filt, which names kernels")
        return 77
    begin = time.monotonic()
    runs, words = run(options.program, ["--whole"] if options.whole else [], options.jobs)
    symbols = sorted(runs.symbols())
    runs.name(dict(zip(symbols, demangled([plain_name(symbol) for symbol in symbols]))))
    folders = {name: folder for _, folder, name in read_table(ROOT / "tests/cuda/gates")[1]}
    exceptions = read_exceptions(FOLDER / "exceptions.tsv")
    found = list(findings(runs, folders, exceptions))
    seconds = time.monotonic() - begin
    if any(each.reports for each in runs.cases):
        reports = [part for part in words.split("=" * 18) if "WARNING" in part and "faulty_kernels.cpp" not in part]
        print("\n".join(reports)[:MOST_WORDS])
    for each in found[:MOST_FINDINGS]:
        print(f"FAIL {each}")
    summary = (f"{len(runs.blocks())} of {len(folders)} kernels on {len(runs.cases)} examples in "
               f"{max(each.orders for each in runs.cases)} orders: {sum(each.reports for each in runs.cases)} reports, "
               f"{len(found)} findings")
    if options.out:
        command = "races.py cuda_races" + (" --whole" if options.whole else "")
        lines = report(runs, folders, exceptions, found, summary, command, seconds)
        options.out.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    print(f"{summary}, {seconds:.0f} s")
    return 1 if found else 0


try:
    sys.exit(main())
except BadLines as error:
    sys.exit(str(error))
