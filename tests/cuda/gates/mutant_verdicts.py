"""What became of mutants of the CUDA back end, and the list of those that may survive."""
import csv
import functools
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

KINDS = ("barrier", "wait", "bound", "stream")
COLUMNS = ("kind", "file", "text", "most", "reason")
UNKNOWN = "?"  # a reason that nobody has written yet


@dataclass(frozen=True)
class Verdict:
    kind: str  # one of KINDS
    caught: bool
    how: str
    file: str  # of the source, or what it is a mutant of
    text: str  # of its line there
    where: str = ""

    @property
    def key(self):
        return self.kind, self.file, self.text


@dataclass(frozen=True)
class Allowance:
    """A row of survivors.tsv: so many mutants of a line may survive, for a reason."""
    kind: str
    file: str
    text: str
    most: int
    reason: str

    @property
    def key(self):
        return self.kind, self.file, self.text


class BadList(Exception):
    """survivors.tsv is not as it should be."""


@functools.cache
def lines_of(path):
    """A source's lines without indentation; of those that are alike, which one it is as well."""
    lines = [line.strip().replace("\t", " ") for line in Path(path).read_text(encoding="utf-8").splitlines()]
    seen, named = Counter(), []
    for line in lines:
        seen[line] += 1
        named.append(line if lines.count(line) == 1 else f"{line} [{seen[line]} of {lines.count(line)}]")
    return named


def read_allowances(path):
    with open(path, encoding="utf-8", newline="") as file:
        lines = [line for line in file if not line.startswith("#")]
    rows = list(csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))
    if not rows or tuple(rows[0]) != COLUMNS:
        raise BadList(f"{path}: the columns are not {' '.join(COLUMNS)}")
    allowances = {}
    for row in rows[1:]:
        if len(row) != len(COLUMNS) or row[0] not in KINDS or not row[3].isdigit() or not row[4].strip():
            raise BadList(f"{path}: not a row: {' | '.join(row)}")
        allowance = Allowance(row[0], row[1], row[2], int(row[3]), row[4])
        if allowance.key in allowances:
            raise BadList(f"{path}: a second row of {' | '.join(row[:3])}")
        allowances[allowance.key] = allowance
    return allowances


def write_allowances(path, verdicts, allowances):
    """One row for each line of which a mutant survived, with the reason that it had."""
    with open(path, encoding="utf-8") as file:
        comments = [line for line in file if line.startswith("#")]
    survivors = Counter(each.key for each in verdicts if not each.caught)
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(comments)
        file.write("\t".join(COLUMNS) + "\n")
        for key, count in sorted(survivors.items()):
            reason = allowances[key].reason if key in allowances else UNKNOWN
            file.write("\t".join((*key, str(count), reason)) + "\n")


def findings(verdicts, allowances, least_share):
    """A line for each thing that does not hold. `least_share`: that must be caught of all mutants; None of a sample,
    which has too few for a share."""
    survivors = Counter(each.key for each in verdicts if not each.caught)
    for key, count in sorted(survivors.items()):
        allowance = allowances.get(key)
        what = f"{key[0]}, {key[1]}: {key[2]}"
        if allowance is None:
            yield f"{what}: {count} survive, and no row of survivors.tsv says why"
        elif allowance.reason == UNKNOWN:
            yield f"{what}: its row of survivors.tsv says no reason"
        elif count > allowance.most:
            yield f"{what}: {count} survive, its row of survivors.tsv allows {allowance.most}"
    if least_share is not None:
        for key in sorted(allowances.keys() - survivors.keys()):
            yield f"{key[0]}, {key[1]}: {key[2]}: none survives, its row of survivors.tsv is needed no more"
    caught = sum(each.caught for each in verdicts)
    if not verdicts:
        yield "there are no mutants"
    elif least_share is not None and caught < least_share * len(verdicts):
        yield f"{caught} of {len(verdicts)} are caught, less than {100 * least_share:g} %"


def table(verdicts):
    """Rows of markdown: of each kind how many are caught, and how."""
    yield "| kind | mutants | caught | share | how |"
    yield "|---|---|---|---|---|"
    for kind in (*KINDS, "all"):
        of_kind = [each for each in verdicts if kind in (each.kind, "all")]
        if not of_kind:
            continue
        hows = Counter(each.how for each in of_kind if each.caught)
        caught = sum(hows.values())
        how = ", ".join(f"{count} {name}" for name, count in sorted(hows.items(), key=lambda each: (-each[1], each[0])))
        yield f"| {kind} | {len(of_kind)} | {caught} | {100 * caught / len(of_kind):.1f} % | {how} |"


def survivors_table(verdicts, allowances):
    """Rows of markdown: each line of which mutants survived, in how many places, and why."""
    survivors = {}
    for each in verdicts:
        if not each.caught:
            survivors.setdefault(each.key, []).append(each)
    yield "| kind | file | line | mutants | what they did | why |"
    yield "|---|---|---|---|---|---|"
    for key, of_line in sorted(survivors.items()):
        hows = ", ".join(sorted({each.how for each in of_line}))
        reason = allowances[key].reason if key in allowances else UNKNOWN
        text = key[2].replace("|", "\\|").replace("`", "'")
        yield f"| {key[0]} | {key[1]} | `{text}` | {len(of_line)} | {hows} | {reason} |"
