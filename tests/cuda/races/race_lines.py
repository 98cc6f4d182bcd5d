"""What cuda_races prints, what of it does not hold, and the list of kernels that may be left out."""
import csv
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

COLUMNS = ("kernel", "blocks", "reason")
SEVERAL = 2  # blocks, between which there can be races


class BadLines(Exception):
    """Lines of the program, or exceptions.tsv, are not as they should be."""


@dataclass
class Known:
    """A kernel that is made to race, or not to."""
    name: str
    races: bool
    reports: int


@dataclass
class Case:
    name: str
    kernel: str  # of the table of kernels
    reports: int
    orders: int
    other_bits: int  # orders whose results are not the first one's
    launched: dict = field(default_factory=dict)  # the most blocks by symbol, then by a kernel's name


@dataclass(frozen=True)
class Exemption:
    """A row of exceptions.tsv: kernels by pattern that have at most so many blocks, and why."""
    kernel: str
    blocks: int
    reason: str


@dataclass
class Runs:
    known: list = field(default_factory=list)
    cases: list = field(default_factory=list)

    def read(self, text):
        """Adds a process's lines."""
        known = []
        for line in text.splitlines():
            words = line.split("\t")
            try:
                if words[0] == "known":
                    known.append(Known(words[1], {"races": True, "does not race": False}[words[2]], int(words[3])))
                elif words[0] == "case":
                    self.cases.append(Case(words[1], words[2], *map(int, words[3:6])))
                elif words[0] == "launched":
                    self.cases[-1].launched[words[1]] = int(words[2])
                else:
                    raise ValueError("not a kind of line")
            except (IndexError, KeyError, TypeError, ValueError) as error:
                raise BadLines(f"not a line of cuda_races: {line!r} ({error})") from error
        self.known += [each for each in known if each not in self.known]

    def symbols(self):
        return {symbol for case in self.cases for symbol in case.launched}

    def name(self, names):
        """Puts kernels' names in place of symbols."""
        for case in self.cases:
            case.launched = {names[symbol]: blocks for symbol, blocks in case.launched.items()}

    def blocks(self):
        """The most blocks of each kernel's launches."""
        most = {}
        for case in self.cases:
            for kernel, blocks in case.launched.items():
                most[kernel] = max(most.get(kernel, 0), blocks)
        return most


def read_exceptions(path):
    lines = [line for line in Path(path).read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    rows = list(csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))
    if not rows or tuple(rows[0]) != COLUMNS:
        raise BadLines(f"{path}: the columns are not {' '.join(COLUMNS)}")
    exceptions = []
    for row in rows[1:]:
        if len(row) != len(COLUMNS) or row[1] not in ("0", "1") or not row[2].strip():
            raise BadLines(f"{path}: not a row: {' | '.join(row)}")
        exceptions.append(Exemption(row[0], int(row[1]), row[2]))
    return exceptions


def findings(runs, folders, exceptions):
    """A line for each thing that does not hold. folders: {kernel of the back end: its folder}."""
    if not any(each.races for each in runs.known) or all(each.races for each in runs.known):
        yield "no kernels that are made to race and not to race"
    for known in runs.known:
        if known.races != (known.reports > 0):
            yield f"{known.name}: {known.reports} reports, made {'' if known.races else 'not '}to race"
    for case in runs.cases:
        if case.reports:
            yield f"{case.name}, {case.kernel}: {case.reports} races, in {', '.join(sorted(case.launched))}"
        if case.other_bits:
            yield f"{case.name}, {case.kernel}: other bits in {case.other_bits} of {case.orders} orders"
    most = runs.blocks()
    for kernel in sorted(most.keys() - folders.keys()):
        yield f"{kernel} is not in kernels.tsv"
    for kernel in sorted(folders):
        blocks = most.get(kernel, 0)
        allowed = [each for each in exceptions if fnmatchcase(kernel, each.kernel)]
        if blocks < SEVERAL and not any(each.blocks == blocks for each in allowed):
            yield f"{folders[kernel]} {kernel}: {'one block' if blocks else 'no launch'} in all examples"
        for each in allowed:
            if each.blocks < min(blocks, SEVERAL):
                yield f"exceptions.tsv: {kernel} has {blocks} blocks, {each.kernel} says {each.blocks}"
    for each in exceptions:
        if not any(fnmatchcase(kernel, each.kernel) for kernel in folders):
            yield f"exceptions.tsv: no kernel is {each.kernel}"


def rows_by_kernel(runs, folders):
    """(folder, kernel without its template's arguments, instances, examples, of these of several blocks, most
    blocks, reports), by folder and kernel."""
    rows = {}
    for case in runs.cases:
        seen = {}
        for kernel, blocks in case.launched.items():
            key = folders.get(kernel, "?"), kernel.partition("<")[0]
            seen[key] = max(seen.get(key, 0), blocks)
            rows.setdefault(key, [set(), 0, 0, 0, 0])[0].add(kernel)
        for key, blocks in seen.items():
            row = rows[key]
            row[1] += 1
            row[2] += blocks >= SEVERAL
            row[3] = max(row[3], blocks)
            row[4] += case.reports
    return [(*key, len(row[0]), *row[1:]) for key, row in sorted(rows.items())]
