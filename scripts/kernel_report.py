#!/usr/bin/python3
"""What ptxas reports of every kernel of the CUDA back end, and the gates that it has to pass.

    scripts/kernel_report.py FILE...                   the report, as tab-separated rows
    scripts/kernel_report.py --check FOLDER LIBRARY    one line for each thing that breaks a gate
    scripts/kernel_report.py --update FOLDER LIBRARY   writes FOLDER/kernels.tsv anew

FILE is libtrainscope_cuda.so or an object of nvcc, compiled with -lineinfo (scripts/cubin.py reads it);
FOLDER is tests/cuda/gates, which says what the gates are. Exit code 0: nothing found; 1: something
does not hold; 2: a file is not as it should be.
"""
import argparse
import sys
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from cubin import COUNTED, CubinError, kernels_of

NUMBERS = ("threads", "blocks", "registers", "stack", "shared")
COLUMNS = ("arch", "folder", "kernel", *NUMBERS, *COUNTED)
MOST_FINDINGS = 40

# Of a multiprocessor (CUDA C++ Programming Guide, compute capabilities).
SHARED_BYTES = {"sm_80": 164 << 10, "sm_90": 228 << 10, "sm_90a": 228 << 10}
QUARTERS, REGISTERS, RESERVED = 4, 16384, 1024  # registers are a quarter's, shared bytes CUDA's of a block
MOST_WARPS, MOST_BLOCKS, MOST_THREADS = 64, 32, 1024
LEAST_WARPS = 32  # that a kernel leaves room for where it declares no blocks


def key(kernel):
    return kernel.arch, kernel.folder, kernel.name


def row_of(kernel):
    return (*key(kernel), *(getattr(kernel, name) for name in NUMBERS),
            *(kernel.counts[name] for name in COUNTED))


def label(arch, folder, name):
    return f"{folder} {name} ({arch})"


def resident_blocks(kernel):
    """Blocks of a kernel's most threads that a multiprocessor has room for at once."""
    warps = -(-(kernel.threads or MOST_THREADS) // 32)
    of_a_warp = -(-32 * max(kernel.registers, 1) // 256) * 256  # what registers are handed out in
    by_registers = QUARTERS * (REGISTERS // of_a_warp) // warps
    shared = -(-(kernel.shared + RESERVED) // 128) * 128
    return min(by_registers, SHARED_BYTES[kernel.arch] // shared, MOST_WARPS // warps, MOST_BLOCKS)


def declared_blocks(kernel):
    warps = -(-(kernel.threads or MOST_THREADS) // 32)
    return kernel.blocks or -(-LEAST_WARPS // warps)


@dataclass
class Allowance:
    """A row of stack.tsv or instructions.tsv: kernels by pattern, a number, and why."""
    folder: str
    kernel: str
    number: int
    text: str

    def holds_for(self, kernel):
        return fnmatchcase(kernel.folder, self.folder) and fnmatchcase(kernel.name, self.kernel)


def rows_of(path, width):
    """The rows of a table but for comments and the head, each of `width` texts."""
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise CubinError(f"{path}: {getattr(error, 'strerror', None) or error}") from error
    rows = []
    for number, line in enumerate(lines, 1):
        if line and not line.startswith("#"):
            rows.append((number, line.split("\t")))
            if len(rows[-1][1]) != width:
                raise CubinError(f"{path}:{number}: {len(rows[-1][1])} columns instead of {width}")
    return rows[1:]


def number_of(text, path, line):
    if not (text.isascii() and text.isdigit()):
        raise CubinError(f"{path}:{line}: '{text}' is no number")
    return int(text)


def read_stack(folder):
    """stack.tsv: folder, kernel, bytes, reason."""
    path = folder / "stack.tsv"
    allowances = [Allowance(place, kernel, number_of(most, path, line), reason.strip())
                  for line, (place, kernel, most, reason) in rows_of(path, 4)]
    for allowance in allowances:
        if not allowance.text:
            raise CubinError(f"{path}: {allowance.folder} {allowance.kernel} has a stack without a reason")
    return allowances


def read_instructions(folder):
    """instructions.tsv: folder, kernel, instruction, least."""
    path = folder / "instructions.tsv"
    rows = []
    for line, (place, kernel, instruction, least) in rows_of(path, 4):
        if instruction not in COUNTED:
            raise CubinError(f"{path}:{line}: '{instruction}' is none of {', '.join(COUNTED)}")
        rows.append(Allowance(place, kernel, number_of(least, path, line), instruction))
    return rows


def compilers_of(path):
    """{architecture: version of ptxas} by the comments of a table, "# sm_90a ptxas 13.0.88" and what follows."""
    comments = [line.split() for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("# ")]
    return {words[1]: words[3] for words in comments if len(words) > 3 and words[2] == "ptxas"}


def read_table(folder):
    """kernels.tsv: ({architecture: version of ptxas}, {key: {column: number}})."""
    path = folder / "kernels.tsv"
    rows, table = rows_of(path, len(COLUMNS)), {}
    for line, row in rows:
        numbers = {name: number_of(text, path, line) for name, text in zip(COLUMNS[3:], row[3:])}
        if tuple(row[:3]) in table:
            raise CubinError(f"{path}:{line}: a second row for {label(*row[:3])}")
        table[tuple(row[:3])] = numbers
    return compilers_of(path), table


def stack_findings(kernels, allowances):
    for kernel in kernels:
        most = max((row.number for row in allowances if row.holds_for(kernel)), default=0)
        if kernel.stack > most:
            yield f"{label(*key(kernel))}: {kernel.stack} bytes of stack, at most {most} are allowed"
    for row in allowances:
        if not any(row.holds_for(kernel) for kernel in kernels):
            yield f"stack.tsv: no kernel is {row.folder} {row.kernel}"


def occupancy_findings(kernels):
    for kernel in kernels:
        if kernel.arch not in SHARED_BYTES:
            yield f"{label(*key(kernel))}: the limits of this architecture are not known"
        elif resident_blocks(kernel) < declared_blocks(kernel):
            yield (f"{label(*key(kernel))}: {kernel.registers} registers and {kernel.shared} shared bytes "
                   f"leave room for {resident_blocks(kernel)} blocks of {kernel.threads or MOST_THREADS} "
                   f"threads, {declared_blocks(kernel)} are declared")


def instruction_findings(kernels, rows):
    for row in rows:
        meant = [kernel for kernel in kernels if row.holds_for(kernel)]
        if not meant:
            yield f"instructions.tsv: no kernel is {row.folder} {row.kernel}"
        for kernel in meant:
            if kernel.counts[row.text] < row.number:
                yield (f"{label(*key(kernel))}: {kernel.counts[row.text]} {row.text}, "
                       f"at least {row.number} are meant")


def in_eights(registers):
    return -(-registers // 8) * 8


def row_findings(kernel, row):
    """Registers by the eights in which a thread gets them; bytes at most, counts exactly."""
    if in_eights(kernel.registers) > in_eights(row["registers"]):
        yield f"{kernel.registers} registers"
    for name in ("stack", "shared"):
        if getattr(kernel, name) > row[name]:
            yield f"{getattr(kernel, name)} {name} bytes"
    for name in ("threads", "blocks"):
        if getattr(kernel, name) != row[name]:
            yield f"{getattr(kernel, name)} {name} declared"
    for name in COUNTED:
        if kernel.counts[name] != row[name]:
            yield f"{kernel.counts[name]} {name}"


def table_findings(kernels, compilers, table):
    for kernel in kernels:
        if compilers.get(kernel.arch) != kernel.compiler:
            continue
        if key(kernel) not in table:
            yield f"{label(*key(kernel))} is not in kernels.tsv (--update)"
            continue
        row = table[key(kernel)]
        for what in row_findings(kernel, row):
            name = what.split()[1]
            yield f"{label(*key(kernel))}: {what}, kernels.tsv has {row[name]} (--update)"
    compared = {kernel.arch for kernel in kernels if compilers.get(kernel.arch) == kernel.compiler}
    there = {key(kernel) for kernel in kernels}
    for other in table:
        if other[0] in compared and other not in there:
            yield f"{label(*other)} is in kernels.tsv alone (--update)"


def findings_of(kernels, folder):
    compilers, table = read_table(folder)
    return [*stack_findings(kernels, read_stack(folder)), *occupancy_findings(kernels),
            *instruction_findings(kernels, read_instructions(folder)),
            *table_findings(kernels, compilers, table)]


def not_compared(kernels, path):
    """A line for each architecture whose rows in a table are of another compiler, or none."""
    compilers = compilers_of(path)
    for arch, compiler in sorted({(kernel.arch, kernel.compiler) for kernel in kernels}):
        if compilers.get(arch) != compiler:
            yield (f"{arch} is not compared with {path.name}: compiled by ptxas {compiler}, the rows "
                   f"{'are of ' + compilers[arch] if arch in compilers else 'have other architectures'}")


def report(kernels, findings, path):
    """Prints what breaks a gate, and what was not compared with a table; the exit code."""
    for line in findings[:MOST_FINDINGS]:
        print(line)
    if len(findings) > MOST_FINDINGS:
        print(f"and {len(findings) - MOST_FINDINGS} more")
    for line in not_compared(kernels, path):
        print(line)
    print(f"{len(kernels)} kernels, {len(findings)} findings")
    return 1 if findings else 0


def write_table(kernels, folder):
    """Anew for the architectures that the kernels have; rows of others stay. Sources of a folder that are
    compiled apart may hold the same kernel: its row has the most of each number."""
    path = folder / "kernels.tsv"
    compilers, table = read_table(folder) if path.exists() else ({}, {})
    new = {kernel.arch: kernel.compiler for kernel in kernels}
    rows = {place: tuple(numbers.values()) for place, numbers in table.items() if place[0] not in new}
    for kernel in kernels:
        numbers = row_of(kernel)[len(key(kernel)):]
        rows[key(kernel)] = tuple(map(max, numbers, rows.get(key(kernel), numbers)))
    rows = sorted(((*place, *numbers) for place, numbers in rows.items()), key=lambda row: (row[1], row[2], row[0]))
    lines = [f"# {arch} ptxas {version}" for arch, version in sorted({**compilers, **new}.items())]
    lines += ["\t".join(map(str, row)) for row in [COLUMNS, *rows]]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return len(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--check", metavar="FOLDER", type=Path, help="hold them to the gates of a folder")
    what.add_argument("--update", metavar="FOLDER", type=Path, help="write a folder's kernels.tsv anew")
    parser.add_argument("files", metavar="FILE", nargs="+", help="a library or objects of nvcc")
    words = parser.parse_args()
    try:
        kernels = [kernel for path in words.files for kernel in kernels_of(path)]
        if words.update:
            print(f"{words.update / 'kernels.tsv'}: {write_table(kernels, words.update)} rows")
        elif words.check:
            return report(kernels, findings_of(kernels, words.check), words.check / "kernels.tsv")
        else:
            for row in [COLUMNS, *map(row_of, kernels)]:
                print("\t".join(map(str, row)))
    except CubinError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
