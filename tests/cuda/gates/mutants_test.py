#!/usr/bin/python3
"""What the mutation gate counts, on small logs and lists: which waits order something, which survivors are allowed."""
import tempfile
from pathlib import Path

from mutant_verdicts import (UNKNOWN, BadList, Verdict, findings, lines_of, read_allowances, survivors_table, table,
                             write_allowances)
from stream_mutants import orders, read_log, roles, waits_that_order

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parents[2]
SURVIVORS = FOLDER / "survivors.tsv"

# Stream 8 copies, 7 computes behind it, twice over; the third wait repeats the second.
COPIES = """work 8 -
record 8 a
wait 7 a
work 7 -
record 7 b
wait 8 b
wait 8 b
work 8 -
wait 7 -
drain 7 -
work 8 -
"""
# A list of both streams, replayed; what joins it, what closes it, and what orders its replay.
LIST = """work 8 -
begin 7 -
record 7 a
wait 8 a
work 8 -
work 7 -
record 8 b
wait 7 b
end 7 -
record 8 c
wait 7 c
replay 7 -
record 7 d
wait 8 d
work 8 -
finish 0 d
"""


def log_of(text):
    with tempfile.NamedTemporaryFile("w", suffix=".log") as file:
        file.write(text)
        file.flush()
        return read_log(file.name)


def check_orders():
    log = log_of(COPIES)
    after = orders(log)
    assert after[1] == ("work", 7, {8: 1, 7: 1}), after
    assert after[2] == ("work", 8, {8: 2, 7: 1}), after
    assert after[3] == ("drain", 7, {8: 1, 7: 1}), after
    assert orders(log, 1)[1] == ("work", 7, {7: 1})
    # Without either of the two the other one orders; the last waits for nothing.
    assert waits_that_order(log) == [1]
    assert roles(log)[:2] == ["compute waits for transfer, between calls", "transfer waits for compute, between calls"]
    # The host has waited: what is given to a stream from then on comes after that.
    assert after[4] == ("work", 8, {8: 3, 7: 1}), after
    assert orders(log_of("work 7 -\ndrain 7 -\nwork 8 -\n"))[2] == ("work", 8, {8: 1, 7: 1})


def check_lists():
    log = log_of(LIST)
    assert waits_that_order(log) == [1, 2, 3, 4]
    assert roles(log) == ["transfer waits for compute, at the beginning of a list",
                          "compute waits for transfer, at the end of a list",
                          "compute waits for transfer, before a list",
                          "transfer waits for compute, behind a list"]
    after = orders(log)
    assert after[1] == ("work", 8, {8: 1}), "clocks of a list are its own"
    assert after[3] == ("end", 7, {8: 1, 7: 1}), after
    assert after[4] == ("replay", 7, {8: 1, 7: 1}), after
    # Without the first wait the second stream's work is not of the list.
    assert orders(log, 1)[1] == ("work", 8, {8: 2})


def verdicts(caught, survived, text="x = y;"):
    return ([Verdict("bound", True, "stopped", "a.cu", text)] * caught +
            [Verdict("bound", False, "never reached", "a.cu", text)] * survived)


def check_findings(folder):
    header = "# why\nkind\tfile\ttext\tmost\treason\n"
    path = folder / "survivors.tsv"
    path.write_text(header + "bound\ta.cu\tx = y;\t1\tnobody comes here\n", encoding="utf-8")
    allowances = read_allowances(path)

    def found(*words):
        return list(findings(*words))

    assert found(verdicts(19, 1), allowances, 0.95) == []
    assert len(found(verdicts(18, 2), allowances, None)) == 1, "more than the row allows"
    assert found(verdicts(1, 1), allowances, None) == [], "a sample has no share"
    assert "less than 95 %" in found(verdicts(1, 1), allowances, 0.95)[0]
    assert "no row" in found(verdicts(19, 1, "z();"), allowances, None)[0]
    assert "needed no more" in found(verdicts(20, 0), allowances, 0.95)[0]
    assert found([], {}, None) == ["there are no mutants"]
    write_allowances(path, verdicts(1, 3) + verdicts(0, 1, "z();"), allowances)
    allowances = read_allowances(path)
    assert [(each.text, each.most, each.reason) for each in allowances.values()] == [
        ("x = y;", 3, "nobody comes here"), ("z();", 1, UNKNOWN)]
    assert path.read_text(encoding="utf-8").startswith("# why\n")
    assert "says no reason" in found(verdicts(0, 1, "z();"), allowances, None)[0]
    for bad in ("bound\ta.cu\tx\tmany\twhy\n", "bounds\ta.cu\tx\t1\twhy\n", "bound\ta.cu\tx\t1\t\n",
                "bound\ta.cu\tx\t1\twhy\n" * 2):
        path.write_text(header + bad, encoding="utf-8")
        try:
            read_allowances(path)
            raise SystemExit(f"read: {bad}")
        except BadList:
            pass


def check_tables():
    rows = list(table(verdicts(3, 1)))
    assert rows[2] == "| bound | 4 | 3 | 75.0 % | 3 stopped |", rows
    assert rows[3].startswith("| all | 4 | 3 |"), rows
    assert list(survivors_table(verdicts(1, 2, "a | b"), {}))[2] == (
        f"| bound | a.cu | `a \\| b` | 2 | never reached | {UNKNOWN} |")


def check_committed_list():
    """Its rows are of lines that are there, or of code that the compiler says is of no line."""
    for allowance in read_allowances(SURVIVORS).values():
        if allowance.kind != "stream" and allowance.text != "line 0":
            assert allowance.text in lines_of(ROOT / allowance.file), f"{allowance.file} has no line {allowance.text}"


check_orders()
check_lists()
with tempfile.TemporaryDirectory() as scratch:
    check_findings(Path(scratch))
check_tables()
check_committed_list()
