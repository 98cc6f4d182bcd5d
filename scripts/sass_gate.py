#!/usr/bin/python3
"""What the machine code ("SASS") of the CUDA back end's kernels consists of, and the gates that it has to pass.

    scripts/sass_gate.py --check FOLDER LIBRARY                     one line for each thing that breaks a gate
    scripts/sass_gate.py --update FOLDER --nvdisasm FILE LIBRARY    writes FOLDER/sass.tsv anew (scripts/sass_gate.sh)

LIBRARY is libtrainscope_cuda.so, as scripts/cubin.py reads it; FOLDER is tests/cuda/gates, which says what the
gates are; FILE is NVIDIA's disassembler, which --check does without: it counts by the opcodes that --update found
to give the disassembler's numbers. A row names the machine code that it is of, by the first digits of its
SHA-256. nvcc makes other code of a long kernel from one compilation to the next: what differs from its row has
to have the row's numbers still (differences_of). Exit code 0: nothing found; 1: something does not hold; 2: a
file or the disassembler is not as it should be.
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
# Of an instruction of 128 bits: the opcode is the lowest 12; 3 from the 73rd are the bytes of an access, 6 are 16.
OPCODES = {"LDG": (0x381, 0x981), "STG": (0x386, 0x986), "LDGSTS": (0xFAE,), "LDSM": (0x83B,), "HMMA": (0x23C,),
           "BAR": (0x31D, 0xB1D), "LDL": (0x383, 0x983), "STL": (0x387, 0x987), "NOP": (0x918,)}
NAMES = {opcode: name for name, opcodes in OPCODES.items() for opcode in opcodes}
ACCESS, ACCESS_128 = 73, 6
EXACT = ("LDG.128", "STG.128", "LDGSTS", "LDSM", "HMMA", "BAR")  # what no compilation of one source changes
LENGTHS_PART = 8  # instructions may be more or fewer by this part of a row's
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


def counts_of(code):
    """A row's numbers of machine code, by its opcodes."""
    words = [int.from_bytes(code[at:at + INSTRUCTION_BYTES], "little") for at in range(0, len(code), INSTRUCTION_BYTES)]
    names = Counter((NAMES.get(word & 0xFFF), word >> ACCESS & 7 == ACCESS_128) for word in words)
    return {"instructions": sum(count for (name, _), count in names.items() if name != "NOP"),
            **{column: sum(count for (name, is_128), count in names.items()
                           if name == first and (is_128 or not other)) for column, (first, other) in COUNTED.items()}}


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
                shown, counted = numbers_of(listing), counts_of(kernel.code)
                if shown != counted:
                    column = next(column for column in shown if shown[column] != counted[column])
                    raise CubinError(f"{cubin[2]}: {nvdisasm} shows {shown[column]} {column} of {kernel.name}, by "
                                     f"OPCODES of scripts/sass_gate.py it has {counted[column]}")
                numbers[code_of(kernel)] = shown
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


def gate_findings(kernel, numbers, stack, least):
    if numbers["LDL"] + numbers["STL"] and not any(allowed.holds_for(kernel) for allowed in stack):
        yield f"{numbers['LDL']} LDL and {numbers['STL']} STL, without a reason in stack.tsv"
    for name in ONE_EACH:
        if numbers[OF_PTX[name]] < kernel.counts[name]:
            yield f"{numbers[OF_PTX[name]]} {OF_PTX[name]} of {kernel.counts[name]} {name}"
    for meant in least:
        column = OF_PTX[meant.text]
        if meant.holds_for(kernel) and numbers[column] < meant.number:
            yield f"{numbers[column]} {column}, at least {meant.number} are meant by instructions.tsv"


def differences_of(numbers, row):
    """What tells that a row is of another kernel than the one with these numbers."""
    differing = [name for name in EXACT if numbers[name] != row[name]]
    if abs(numbers["instructions"] - row["instructions"]) * LENGTHS_PART > row["instructions"]:
        differing.append("instructions")
    return [f"{numbers[name]} {name} where sass.tsv has {row[name]}" for name in differing]


def findings_of(kernels, folder):
    """What breaks a gate; and how many kernels differ from their rows as compilations of one source do."""
    path, findings, others = folder / "sass.tsv", [], 0
    rows, compilers = read_rows(path), compilers_of(path)
    findings += other_table_findings(compilers, rows, folder)
    stack, least = read_stack(folder), read_instructions(folder)
    met, archs = set(), set()
    for kernel in kernels:
        if kernel.arch not in compilers:
            continue
        numbers, row = counts_of(kernel.code), rows.get(place_of(kernel))
        findings += [f"{label(*key(kernel))}: {what}" for what in gate_findings(kernel, numbers, stack, least)]
        if compilers[kernel.arch] != kernel.compiler:
            continue
        archs.add(kernel.arch)
        met.add(place_of(kernel))
        if not row:
            alike = {place: differences_of(numbers, rows[place]) for place in rows if place[:3] == key(kernel)}
            nearest = min(alike, key=lambda place: len(alike[place]), default=None)
            why = alike[nearest] if nearest else ["it has no row"]
            findings += [f"{label(*key(kernel))}: {what}: {ANEW}" for what in why]
            met |= {nearest}
            others += not why
    findings += [f"{label(*place[:3])}: no kernel has the machine code {place[3]} of sass.tsv: {ANEW}"
                 for place in rows if place[0] in archs and place not in met]
    return findings, others


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
            findings, others = findings_of(kernels, words.check)
            if others:
                print(f"{others} kernels have other machine code than in sass.tsv, of the same counts")
            return report(kernels, findings, path)
        print(f"{path}: {write_table(kernels, words.library, words.nvdisasm, path)} rows")
    except CubinError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
