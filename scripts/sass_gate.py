#!/usr/bin/python3
"""What the machine code ("SASS") of the CUDA back end's kernels consists of, and the gates that it has to pass.

    scripts/sass_gate.py --check FOLDER LIBRARY                     one line for each thing that breaks a gate
    scripts/sass_gate.py --update FOLDER --nvdisasm FILE LIBRARY    writes FOLDER/sass.tsv anew (scripts/sass_gate.sh)

LIBRARY is libtrainscope_cuda.so, as scripts/cubin.py reads it; FOLDER is tests/cuda/gates, which says what the
gates are; FILE is NVIDIA's disassembler, which --check does without: a row names the machine code that it
counts, by the first digits of its SHA-256, so that one whose kernel has changed is told. Exit code 0: nothing
found; 1: something does not hold; 2: a file or the disassembler is not as it should be.
"""
import argparse
import hashlib
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from cubin import CubinError, cubins_of, kernels_of, kernels_of_image
from kernel_report import (compilers_of, key, label, number_of, read_instructions, read_stack, read_table, report,
                           rows_of)

# Of SASS, by the first part of its name and one that it has to have: LDG.E.128.CONSTANT.
COUNTED = {"LDG.128": ("LDG", "128"), "STG.128": ("STG", "128"), "LDGSTS": ("LDGSTS", ""), "LDSM": ("LDSM", ""),
           "HMMA": ("HMMA", ""), "BAR": ("BAR", ""), "LDL": ("LDL", ""), "STL": ("STL", "")}
COLUMNS = ("arch", "folder", "kernel", "code", "instructions", *COUNTED)
# What ptxas makes of the PTX instructions that scripts/cubin.py counts; of ONE_EACH it makes at least one each.
OF_PTX = {"load128": "LDG.128", "store128": "STG.128", "mma": "HMMA", "ldmatrix": "LDSM", "cp_async": "LDGSTS"}
ONE_EACH = ("mma", "ldmatrix", "cp_async")
INSTRUCTION_BYTES = 16  # from compute capability 7.0 on
SECTION = re.compile(r"\s*\.section\s+([^\s,]+)")
INSTRUCTION = re.compile(r"\s*/\*[0-9a-f]{4,}\*/\s+\{?\s*(?:@!?U?P\w+\s+)?([A-Z][\w.]*)")
ANEW = "run scripts/sass_gate.sh"


def code_of(kernel):
    return hashlib.sha256(kernel.code).hexdigest()[:16]


def place_of(kernel):
    """What a row is about. Sources of a folder that are compiled apart may hold kernels of one name: other code
    has a row of its own."""
    return *key(kernel), code_of(kernel)


# --- Disassembly -----------------------------------------------------------------------------------------

def listing_of(text):
    """{section: Counter of instructions} of what nvdisasm prints of a cubin."""
    sections, current = {}, None
    for line in text.splitlines():
        if found := SECTION.match(line):
            current = sections.setdefault(found[1], Counter())
        elif current is not None and (found := INSTRUCTION.match(line)):
            current[found[1]] += 1
    return sections


def numbers_of(listing):
    """A row's numbers; what pads machine code to whole lines of the cache is no instruction."""
    parts = [(name.split("."), count) for name, count in listing.items()]
    return {"instructions": sum(count for words, count in parts if words[0] != "NOP"),
            **{column: sum(count for words, count in parts if words[0] == first and (not other or other in words))
               for column, (first, other) in COUNTED.items()}}


def output_of(command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise CubinError(f"{command[0]}: {error.strerror}") from error
    if done.returncode:
        why = done.stderr.strip() or f"exit code {done.returncode}"
        raise CubinError(f"{command[0]}: {why.splitlines()[0]}")
    return done.stdout


def disassembled(library, nvdisasm):
    """{code: numbers} of every kernel."""
    numbers = {}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "kernels.cubin"
        for cubin in cubins_of(library):
            kernels = kernels_of_image(*cubin)
            if not kernels:
                continue
            file.write_bytes(cubin[1])
            sections = listing_of(output_of([nvdisasm, "--print-code", "--no-dataflow", file]))
            for kernel in kernels:
                listing = sections.get(".text." + kernel.name, Counter())
                if listing.total() * INSTRUCTION_BYTES != len(kernel.code):
                    raise CubinError(f"{cubin[2]}: {len(kernel.code)} bytes of machine code of {kernel.name}, of which "
                                     f"{nvdisasm} shows {listing.total()} instructions of {INSTRUCTION_BYTES}")
                numbers[code_of(kernel)] = numbers_of(listing)
    return numbers


def write_table(kernels, library, nvdisasm, path):
    """Anew for the architectures that the kernels have; rows of others stay."""
    version = re.search(r"\bV(\d[\d.]*\d)", output_of([nvdisasm, "--version"]))
    if not version:
        raise CubinError(f"{nvdisasm} does not tell its version")
    numbers = disassembled(library, nvdisasm)
    heads = {kernel.arch: f"# {kernel.arch} ptxas {kernel.compiler} nvdisasm {version[1]}" for kernel in kernels}
    rows = {place_of(kernel): numbers[code_of(kernel)] for kernel in kernels}
    if path.exists():
        lines = path.read_text(encoding="utf-8").splitlines()
        heads = {line.split()[1]: line for line in lines if line.startswith("# ")} | heads
        new = {kernel.arch for kernel in kernels}
        rows |= {place: row for place, row in read_rows(path).items() if place[0] not in new}
    ordered = sorted(rows.items(), key=lambda row: (row[0][1], row[0][2], row[0][0], row[0][3]))
    lines = [heads[arch] for arch in sorted(heads)]
    lines += ["\t".join(map(str, row)) for row in [COLUMNS, *((*place, *row.values()) for place, row in ordered)]]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return len(rows)


# --- Gates -----------------------------------------------------------------------------------------------

def read_rows(path):
    """{(architecture, folder, kernel, code): {column: number}}."""
    table = {}
    for line, row in rows_of(path, len(COLUMNS)):
        if tuple(row[:4]) in table:
            raise CubinError(f"{path}:{line}: a second row for {label(*row[:3])}")
        table[tuple(row[:4])] = {name: number_of(text, path, line) for name, text in zip(COLUMNS[4:], row[4:])}
    return table


def other_table_findings(compilers, rows, folder):
    """Rows of sass.tsv and of kernels.tsv are of the same kernels and compilers."""
    others, table = read_table(folder)
    for arch in sorted({*compilers, *others}):
        if compilers.get(arch) != others.get(arch):
            yield (f"{arch}: rows of sass.tsv are of ptxas {compilers.get(arch, 'none')}, of kernels.tsv of "
                   f"{others.get(arch, 'none')}: {ANEW}")
    places = {place[:3] for place in rows}
    for place in sorted(places ^ set(table)):
        yield f"{label(*place)} is in {'sass.tsv' if place in places else 'kernels.tsv'} alone: {ANEW}"


def row_findings(kernel, row, stack, least):
    if row["LDL"] + row["STL"] and not any(allowed.holds_for(kernel) for allowed in stack):
        yield f"{row['LDL']} LDL and {row['STL']} STL, without a reason in stack.tsv"
    for name in ONE_EACH:
        if row[OF_PTX[name]] < kernel.counts[name]:
            yield f"{row[OF_PTX[name]]} {OF_PTX[name]} of {kernel.counts[name]} {name}"
    for meant in least:
        column = OF_PTX[meant.text]
        if meant.holds_for(kernel) and row[column] < meant.number:
            yield f"{row[column]} {column}, at least {meant.number} are meant by instructions.tsv"


def findings_of(kernels, folder):
    path = folder / "sass.tsv"
    rows, compilers = read_rows(path), compilers_of(path)
    yield from other_table_findings(compilers, rows, folder)
    stack, least = read_stack(folder), read_instructions(folder)
    compared = [kernel for kernel in kernels if compilers.get(kernel.arch) == kernel.compiler]
    for kernel in compared:
        if place_of(kernel) not in rows:
            yield f"{label(*key(kernel))}: its machine code is not that of sass.tsv: {ANEW}"
            continue
        for what in row_findings(kernel, rows[place_of(kernel)], stack, least):
            yield f"{label(*key(kernel))}: {what}"
    there, archs = {place_of(kernel) for kernel in compared}, {kernel.arch for kernel in compared}
    for place in rows:
        if place[0] in archs and place not in there:
            yield f"{label(*place[:3])}: no kernel has the machine code {place[3]} of sass.tsv: {ANEW}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--check", metavar="FOLDER", type=Path, help="hold the kernels to the gates of a folder")
    what.add_argument("--update", metavar="FOLDER", type=Path, help="write a folder's sass.tsv anew")
    parser.add_argument("--nvdisasm", metavar="FILE", help="NVIDIA's disassembler")
    parser.add_argument("library", metavar="LIBRARY", help="the back end, or an object of nvcc")
    words = parser.parse_args()
    if words.update and not words.nvdisasm:
        parser.error("--update needs --nvdisasm")
    try:
        kernels = kernels_of(words.library)
        path = (words.check or words.update) / "sass.tsv"
        if words.check:
            return report(kernels, list(findings_of(kernels, words.check)), path)
        print(f"{path}: {write_table(kernels, words.library, words.nvdisasm, path)} rows")
    except CubinError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
