#!/usr/bin/python3
"""What races.py finds in lines of cuda_races, and what it makes of them."""
import tempfile
import unittest
from pathlib import Path

from race_lines import BadLines, Exemption, Runs, findings, read_exceptions, rows_by_kernel

KNOWN = "known\ta missing barrier\traces\t1\nknown\ta barrier\tdoes not race\t0\n"
CASE = "case\tAdd \"[9], [9]\" f32\tadd.cuda\t0\t9\t0\nlaunched\tadd<float>\t3\nlaunched\tsum\t1\n"
FOLDERS = {"add<float>": "pointwise", "sum": "reduce"}
ONE_BLOCK = [Exemption("sum", 1, "one block adds")]


def runs_of(text):
    runs = Runs()
    runs.read(text)
    return runs


def found(text, folders=None, exceptions=None):
    return list(findings(runs_of(text), FOLDERS if folders is None else folders,
                         ONE_BLOCK if exceptions is None else exceptions))


class Findings(unittest.TestCase):
    def test_nothing_where_all_holds(self):
        self.assertEqual(found(KNOWN + CASE), [])

    def test_reports_and_bits_of_a_case(self):
        self.assertEqual(len(found(KNOWN + CASE.replace("\t0\t9\t0", "\t2\t9\t0"))), 1)
        self.assertIn("other bits in 4 of 9 orders", found(KNOWN + CASE.replace("\t0\t9\t0", "\t0\t9\t4"))[0])

    def test_known_kernels_that_are_taken_for_others(self):
        self.assertEqual(len(found(KNOWN.replace("races\t1", "races\t0") + CASE)), 1)
        self.assertEqual(len(found(KNOWN.replace("race\t0", "race\t1") + CASE)), 1)
        self.assertEqual(len(found(CASE)), 1)

    def test_each_part_is_judged_by_its_known_kernels(self):
        runs = runs_of(KNOWN + CASE)
        runs.read(KNOWN.replace("races\t1", "races\t0"))
        self.assertEqual(len(list(findings(runs, FOLDERS, ONE_BLOCK))), 1)

    def test_kernels_without_a_launch_or_with_one_block(self):
        self.assertIn("one block", found(KNOWN + CASE, exceptions=[])[0])
        self.assertIn("no launch", found(KNOWN + CASE, {**FOLDERS, "other": "norm"})[0])
        self.assertIn("not in kernels.tsv", found(KNOWN + CASE, {"sum": "reduce"})[0])

    def test_exceptions_that_hold_for_nothing(self):
        none = [*ONE_BLOCK, Exemption("gone<*>", 0, "?")]
        self.assertEqual(found(KNOWN + CASE, exceptions=none), ["exceptions.tsv: no kernel is gone<*>"])
        stale = [*ONE_BLOCK, Exemption("add<*>", 1, "?")]
        self.assertIn("add<float> has 3 blocks", found(KNOWN + CASE, exceptions=stale)[0])

    def test_lines_that_are_none(self):
        for line in ("case\tAdd", "known\ta\tperhaps\t1", "launched\tadd\t1", "other"):
            with self.assertRaises(BadLines):
                runs_of(line)


class Tables(unittest.TestCase):
    def test_instances_of_a_kernel_are_one_row(self):
        text = KNOWN + CASE + CASE.replace("add<float>", "add<double>").replace("\t3", "\t1")
        folders = {**FOLDERS, "add<double>": "pointwise"}
        self.assertEqual(rows_by_kernel(runs_of(text), folders),
                         [("pointwise", "add", 2, 2, 1, 3, 0), ("reduce", "sum", 1, 2, 0, 1, 0)])

    def test_exceptions_need_a_reason(self):
        with tempfile.TemporaryDirectory() as scratch:
            path = Path(scratch) / "exceptions.tsv"
            head = "# why\nkernel\tblocks\treason\n"
            path.write_text(head + "sum\t1\tone block adds\n", encoding="utf-8")
            self.assertEqual(read_exceptions(path), ONE_BLOCK)
            for row in ("sum\t1\t \n", "sum\t2\twhy\n", "sum\t1\n"):
                path.write_text(head + row, encoding="utf-8")
                with self.assertRaises(BadLines):
                    read_exceptions(path)


if __name__ == "__main__":
    unittest.main()
