#!/usr/bin/python3
"""Attacks the program with mutants of models, damaged runs and hostile data; counts how it ends.

Usage: campaign.py TRAINSCOPE --out RESULT.md [--mutants N] [--run-files N] [--data-files N]
[--seed S] [--kinds KIND,..] [--jobs N]. Every case is a function of its name KIND:SUBJECT:SEED;
`--only KIND:SUBJECT:SEED --keep FOLDER` runs one again and leaves its files. Exit code 1 and a list
of faults when the program died by a signal, ended with a code that docs/exit-codes.md does not have
(or with 1), said nothing or nothing of use, hung, or changed a file outside its run.
"""
import argparse
import concurrent.futures
import datetime
import itertools
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import onnx

import data_files
import hostile
import mutant_cases
import process
import run_files
from cases import Case, run_case
from sandbox import snapshot

PARTS = {part.NAME: part for part in (mutant_cases, run_files, data_files)}
LIMITS = {False: process.Limits(seconds=20.0), True: process.Limits(seconds=60.0)}  # by sanitized
SHOWN = 3  # cases of each fault that are written out


def cases_of(part, count, seed, kinds):
    """Kinds and subjects in a fixed, mixed order, so that any count has all about as often."""
    chosen = [kind for kind in part.KINDS if not kinds or kind in kinds]
    turns = list(itertools.product(part.SUBJECTS, chosen))
    hostile.dice_of("turns").shuffle(turns)
    for number in range(count if turns else 0):
        subject, kind = turns[number % len(turns)]
        yield Case(part.NAME, kind, subject, seed * 1000000 + number)


def case_named(text):
    kind, subject, seed = text.rsplit(":", 2)
    for part in PARTS.values():
        if kind in part.KINDS and subject in part.SUBJECTS:
            return Case(part.NAME, kind, subject, int(seed))
    sys.exit(f"campaign: there is no case '{text}': KIND:SUBJECT:SEED")


def describe(path):
    """The program, for run_case."""
    program = str(Path(path).resolve())
    return {"path": program, "sanitized": process.is_sanitized(program),
            "documented": process.documented_codes()}


def attack(job):
    program, case, shared, limits, keep = job
    return run_case(program, PARTS[case.part], case, shared, limits, keep)


def run_all(program, cases, shared, limits, jobs, tell):
    """The verdicts, in the order of the cases; what there is when SIGINT or SIGTERM comes."""
    verdicts = []
    work = [(program, case, shared, limits, None) for case in cases]
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with concurrent.futures.ProcessPoolExecutor(jobs) as pool:
        try:
            for verdict in pool.map(attack, work, chunksize=1):
                verdicts.append(verdict)
                tell(verdict, len(verdicts), len(work))
        except KeyboardInterrupt:
            print(f"stopped after {len(verdicts)} of {len(work)}")
            pool.shutdown(wait=True, cancel_futures=True)
    return verdicts


def prepare(program, parts, shared):
    for name in parts:
        PARTS[name].prepare(program, shared)


# The report.


def code_name(verdict):
    if verdict.fault:
        return "fault"
    return "5" if verdict.refused_size else str(verdict.code)


def table(verdicts, heading, key):
    """Counts by key and exit code, as Markdown."""
    counts = Counter((key(v), code_name(v)) for v in verdicts)
    codes = sorted({code for _, code in counts}, key=lambda code: (code == "fault", code.zfill(3)))
    rows = list(dict.fromkeys(key(v) for v in verdicts))
    lines = [f"| {heading} | cases | " + " | ".join(codes) + " |", "|---" * (len(codes) + 2) + "|"]
    for row in rows + ["all"]:
        numbers = [sum(n for (name, c), n in counts.items() if c == code and row in (name, "all"))
                   for code in codes]
        lines.append(f"| {row} | {sum(numbers)} | " + " | ".join(map(str, numbers)) + " |")
    return "\n".join(lines) + "\n"


def signature(verdict):
    """Faults with the same one are most likely the same: quoted names and numbers left out."""
    lines = [line for line in verdict.text.split("\n")
             if re.search(r"error|ERROR|appeared|changed|is gone", line)]
    text = re.sub(r"0x[0-9a-f]+|\d+|'[^']*'", "*", lines[0] if lines else "")
    kind = re.sub(r"\(.*\)", "", verdict.fault)
    return kind, "" if "sanitizer" in kind else text[:120]


def fault_texts(verdicts):
    groups = {}
    for verdict in verdicts:
        if verdict.fault:
            groups.setdefault(signature(verdict), []).append(verdict)
    lines = []
    for (kind, text), found in sorted(groups.items(), key=lambda group: -len(group[1])):
        lines.append(f"### {kind}: {len(found)} cases\n\n{text}\n")
        for verdict in found[:SHOWN]:
            end = "\n".join(verdict.text.strip().split("\n")[-12:])
            end = end.replace(f"{process.ROOT}/", "")  # of checks that failed: files of the project
            lines.append(f"`--only {shlex.quote(str(verdict.case))}` ({verdict.fault})\n\n```\n"
                         f"{verdict.command}\n{end}\n```\n")
        rest = " ".join(str(verdict.case) for verdict in found[SHOWN:SHOWN + 20])
        lines.append(f"Also {rest}\n" if rest else "")
    return "\n".join(lines)


def report(verdicts, program, arguments, seconds):
    version = subprocess.run([program["path"], "version"], capture_output=True, text=True,
                             check=False)
    build = "address and undefined behaviour" if program["sanitized"] else "no"
    faults = sum(bool(verdict.fault) for verdict in verdicts)
    date = datetime.datetime.now(datetime.timezone.utc).date()
    name = (version.stdout or "unknown").splitlines()[0]
    counts = f"{arguments.mutants} {arguments.run_files} {arguments.data_files}"
    lines = [f"# A campaign of {len(verdicts)} attacks, {date}\n",
             f"{name}, {build} sanitizers; seed {arguments.seed}, {counts} cases asked for; onnx "
             f"{onnx.__version__} edits the models; {seconds:.0f} s on {arguments.jobs} processes. "
             f"{faults} faults.\n"]
    for name in PARTS:
        part = [verdict for verdict in verdicts if verdict.case.part == name]
        if not part:
            continue
        slowest = max(part, key=lambda v: v.seconds)
        largest = max(part, key=lambda v: v.peak_bytes)
        lines += [f"## {name}: {len(part)} cases\n",
                  "Counts by kind and exit code, of the case's last command.\n",
                  table(part, "kind", lambda v: v.case.kind),
                  table(part, "subject", lambda v: v.case.subject),
                  table(part, "verb", lambda v: v.verb),
                  f"Most processor time {slowest.seconds:.1f} s ({slowest.case}), largest resident "
                  f"set {largest.peak_bytes / 1e6:.0f} MB ({largest.case}).\n"]
    return "\n".join(lines) + ("\n## Faults\n\n" + fault_texts(verdicts) if faults else "")


def parse_arguments(words):
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--out", help="the report, as Markdown")
    parser.add_argument("--mutants", type=int, default=5088)
    parser.add_argument("--run-files", type=int, default=800)
    parser.add_argument("--data-files", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kinds", help="only these, with commas between them")
    parser.add_argument("--only", metavar="KIND:SUBJECT:SEED", help="this case alone")
    parser.add_argument("--keep", metavar="FOLDER", help="with --only: leave its files there")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--seconds", type=float,
                        help="a command's processor time (20, with sanitizers 60)")
    return parser.parse_args(words)


def run_one(program, case, limits, keep):
    with tempfile.TemporaryDirectory(prefix="trainscope-attacks-") as shared:
        prepare(program, [case.part], Path(shared))
        verdict = attack((program, case, Path(shared), limits, keep))
    print(f"{verdict.command}\n{verdict.text}\ncode {verdict.code}, "
          f"{verdict.fault or 'no fault'}, {verdict.seconds:.2f} s of processor")
    return 1 if verdict.fault else 0


def tell_faults(verdict, done, total):
    if verdict.fault:
        print(f"FAULT {verdict.case}: {verdict.fault}", flush=True)
    if done % 200 == 0 or done == total:
        print(f"{done} of {total}", flush=True)


def main(words):
    arguments = parse_arguments(words)
    program = describe(arguments.program)
    limits = LIMITS[program["sanitized"]]
    if arguments.seconds:
        limits.seconds = arguments.seconds
    if arguments.only:
        return run_one(program, case_named(arguments.only), limits, arguments.keep)
    kinds = arguments.kinds.split(",") if arguments.kinds else []
    counts = {"mutants": arguments.mutants, "run_files": arguments.run_files,
              "data_files": arguments.data_files}
    cases = [case for name, count in counts.items()
             for case in cases_of(PARTS[name], count, arguments.seed, kinds)]
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="trainscope-attacks-") as folder:
        shared = Path(folder)
        prepare(program, sorted({case.part for case in cases}), shared)
        before = snapshot(shared)
        verdicts = run_all(program, cases, shared, limits, arguments.jobs, tell_faults)
        is_shared_touched = snapshot(shared) != before
    text = report(verdicts, program, arguments, time.monotonic() - start)
    if arguments.out:
        Path(arguments.out).write_text(text)
    faults = sum(bool(verdict.fault) for verdict in verdicts)
    print(f"{len(verdicts)} attacks, {faults} faults" +
          (", and what all cases share was changed" if is_shared_touched else ""))
    return 1 if faults or is_shared_touched else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
