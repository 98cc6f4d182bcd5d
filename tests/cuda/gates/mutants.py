#!/usr/bin/python3
"""The mutation gate of the CUDA back end: what is left out of it must show.

    mutants.py BUILD_FOLDER [--seed N --count N] [--out FILE] [--update]

Each barrier, wait for copies and bound check of each kernel's PTX is left out in turn (bin/cuda_mutants), on the cases
of the op suite that launch the kernel, and each wait between streams in trainings (stream_mutants.py). Without --count
all of them, and at least 95 % must be caught; with it a sample that the seed chooses, a fifth of it waits between
streams. A mutant that survives needs a row of survivors.tsv, which says why: --update writes the rows of all that
survive anew, with "?" for a reason that is not known. --out: a report, as markdown.

Exit code 0: nothing found; 1: something does not hold; 77: the CUDA back end is not built.
"""
import argparse
import datetime
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from mutant_verdicts import (BadList, Verdict, findings, lines_of, read_allowances, survivors_table, table,
                             write_allowances)
from stream_mutants import stream_verdicts

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parents[2]
sys.path.insert(0, str(ROOT / "bench"))
import measure  # noqa: E402  (its folder is not a package)

SURVIVORS = FOLDER / "survivors.tsv"
LEAST_SHARE = 0.95


def source_line(path, number):
    """(file below the project, text) of a line."""
    if not path.startswith(f"{ROOT}/"):
        return Path(path).name or "unknown", f"line {number}"
    lines = lines_of(path)
    return path[len(f"{ROOT}/"):], lines[number - 1] if 0 < number <= len(lines) else f"line {number}"


def ptx_verdict(line):
    kind, verdict, how, path, number, kernel, place = line.rstrip("\n").split("\t")
    file, text = source_line(path, int(number))
    return Verdict(kind, verdict == "caught", how, file, text, f"{place}, {kernel}")


def ptx_verdicts(build, count, seed, jobs):
    """Of `count` mutants that the seed chooses; None: of all."""
    command = [build / "bin/cuda_mutants", build / "tests/ptx/strict"]
    if count is not None:
        command += ["--seed", str(seed), "--count", str(count)]
    with tempfile.TemporaryDirectory() as scratch:
        outputs = [Path(scratch) / str(part) for part in range(jobs)]
        runs = []
        for part, path in enumerate(outputs):
            with open(path, "w", encoding="utf-8") as file:
                # The process has the file open after we have closed it.
                runs.append(subprocess.Popen([*command, "--part", f"{part}/{jobs}"], stdout=file))
        codes = [run.wait() for run in runs]
        if any(codes):
            raise SystemExit(f"cuda_mutants: exit codes {codes}")
        return [ptx_verdict(line) for path in outputs for line in path.read_text(encoding="utf-8").splitlines()]


def report(verdicts, allowances, found, command, seconds):
    yield f"# Mutants of the CUDA back end, {datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d}, commit {measure.commit()}"
    yield ""
    yield f"{measure.processor(measure.machine())}, {os.cpu_count()} threads, {seconds:.0f} s; `{command}`. Run on no GPU: kernels by the"
    yield "interpreter of PTX, on the op suite's cases in f32, f64, bf16 and f16; waits between streams on the simulated"
    yield "GPU."
    yield ""
    yield from table(verdicts)
    yield ""
    yield "Caught: a race or a stop is what the interpreter or the runtime reports; other results are those of the op,"
    yield "or losses and parameters. What survives:"
    yield ""
    yield from survivors_table(verdicts, allowances)
    yield ""
    yield f"Findings: {len(found)}"
    yield from (f"- {each}" for each in found)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--update", action="store_true")
    options = parser.parse_args()
    if options.count is not None and (options.count < 5 or options.update):
        parser.error("--count is at least 5, and not beside --update")
    if not (options.build / "bin/cuda_mutants").is_file():
        print("skipped: the CUDA back end is not built")
        return 77
    begin = time.monotonic()
    allowances = read_allowances(SURVIVORS)
    streams = None if options.count is None else options.count // 5
    jobs = 1 if options.count is not None else os.cpu_count()
    with tempfile.TemporaryDirectory() as scratch:
        verdicts = ptx_verdicts(options.build, options.count and options.count - streams, options.seed, jobs)
        verdicts += stream_verdicts(options.build, scratch, streams, options.seed, jobs)
    if options.update:
        write_allowances(SURVIVORS, verdicts, allowances)
        allowances = read_allowances(SURVIVORS)
    found = list(findings(verdicts, allowances, LEAST_SHARE if options.count is None else None))
    for each in verdicts:
        if not each.caught:
            print(f"survives: {each.kind}, {each.file}: {each.text} ({each.how}; {each.where})")
    for each in found:
        print(f"FAIL {each}")
    command = " ".join(["mutants.py", *map(str, sys.argv[1:])])
    if options.out:
        lines = report(verdicts, allowances, found, command, time.monotonic() - begin)
        options.out.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    caught = sum(each.caught for each in verdicts)
    print("\n".join(table(verdicts)))
    print(f"{caught} of {len(verdicts)} mutants caught, {len(found)} findings, {time.monotonic() - begin:.0f} s")
    return 1 if found else 0


try:
    sys.exit(main())
except BadList as error:
    sys.exit(str(error))
