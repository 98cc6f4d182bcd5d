#!/usr/bin/python3
"""Tests of cmake/check_layers.py on small trees in a temporary folder."""
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "cmake"))
import check_layers  # noqa: E402

LAYERS = """
[folders]
base:
low:
high: low
high/sub: low
top: high low/data.h
tests: *
[files]
low/bridge: base
[third-party]
lib/ lib.h: low
posix.h: high/sub tests
"""


class CheckLayers(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        self.write("cmake/layers.txt", LAYERS)
        for header in ["base/d.h", "low/a.h", "low/data.h", "high/b.h", "high/sub/c.h"]:
            self.write(header, "// a header\n#pragma once\n")

    def write(self, path, text):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def findings(self, path=None, *includes):
        if path:
            self.write(path, "\n".join(["// a source", *[f"#include {i}" for i in includes], ""]))
        return list(check_layers.check_tree(self.root))

    def test_accepts_allowed_includes(self):
        self.assertEqual([], self.findings("high/x.cpp", '"low/a.h"', '"high/b.h"', "<vector>"))
        self.assertEqual([], self.findings("tests/x.cpp", '"low/a.h"', '"high/sub/c.h"'))

    def test_refuses_an_arrow_against_the_layers(self):
        found = self.findings("low/x.cpp", "<vector>", '"high/b.h"')
        self.assertEqual(1, len(found))
        self.assertIn("low/x.cpp:3", found[0])

    def test_a_subfolder_with_a_row_is_not_its_parent(self):
        self.assertEqual(1, len(self.findings("high/x.cpp", '"high/sub/c.h"')))

    def test_a_source_begins_with_its_header(self):
        self.assertEqual([], self.findings("low/a.cpp", '"low/a.h"', "<vector>"))
        found = self.findings("low/a.cpp", "<vector>", '"low/a.h"')
        self.assertEqual(['low/a.cpp: its first #include is not "low/a.h"'], found)

    def test_a_folder_with_too_many_sources(self):
        paths = [f"engine/ops/f{i}.cpp" for i in range(41)] + ["engine/ops/a.txt", "cli/main.cpp"]
        self.assertEqual(list(check_layers.check_folders(paths)),
                         ["engine/ops: 41 sources, more than 40: put some in a folder below"])
        self.assertEqual(list(check_layers.check_folders(paths[1:])), [])

    def test_a_subfolder_without_a_row_is_its_parent(self):
        self.assertEqual([], self.findings("low/place/x.cpp", '"low/a.h"'))

    def test_a_single_file_may_have_a_row(self):
        self.assertEqual([], self.findings("low/bridge.cpp", '"base/d.h"'))
        self.assertEqual(1, len(self.findings("low/x.cpp", '"base/d.h"')))

    def test_a_row_may_allow_a_single_header(self):
        self.assertEqual([], self.findings("top/x.cpp", '"low/data.h"'))
        self.assertEqual(1, len(self.findings("top/y.cpp", '"low/a.h"')))

    def test_no_folder_includes_itself_by_way_of_others(self):
        self.write("cmake/layers.txt", LAYERS.replace("bridge: base", "bridge: base high/b.h"))
        self.assertEqual(["cmake/layers.txt: a cycle: low -> high -> low"], self.findings())
        self.write("cmake/layers.txt", LAYERS.replace("base:\n", "base: top/x.h\n"))
        self.assertEqual(["cmake/layers.txt: a cycle: base -> top -> low -> base"],
                         [found.replace("top -> high -> low", "top -> low")
                          for found in self.findings()])

    def test_third_party_headers_have_homes(self):
        self.assertEqual([], self.findings("low/x.cpp", "<lib/x.h>", "<lib.h>"))
        self.assertEqual(2, len(self.findings("high/x.cpp", "<lib/x.h>", "<posix.h>")))

    def test_unknown_third_party_headers_are_refused(self):
        self.assertIn("no home", self.findings("low/x.cpp", "<other/x.h>")[0])

    def test_includes_must_exist_from_the_root(self):
        self.assertIn("does not exist", self.findings("low/x.cpp", '"a.h"')[0])

    def test_refuses_long_files(self):
        self.write("low/x.cpp", "// long\n" + "\n" * 400)
        self.assertIn("401 lines", self.findings()[0])
        self.write("low/x.cpp", "// long\n" + "\n" * 399)
        self.assertEqual([], self.findings())
        self.write("scripts/x.py", "pass\n" * 401)
        self.assertEqual(["scripts/x.py: 401 lines, the limit is 400: split it"], self.findings())

    def test_refuses_long_pages_that_are_written_by_hand(self):
        self.write("docs/a/page.md", "# Page\n" + "\n" * 400)
        self.assertEqual(["docs/a/page.md: 401 lines, the limit is 400: split it"], self.findings())
        self.write("docs/a/page.md", "# Page\n\nGenerated from a table.\n" + "\n" * 400)
        self.assertEqual([], self.findings())

    def test_refuses_a_long_root_cmake_file(self):
        self.write("CMakeLists.txt", "\n" * 81)
        self.assertIn("80", self.findings()[0])

    def test_refuses_files_without_purpose_or_guard(self):
        self.write("low/x.h", "#include <vector>\n")
        self.assertEqual(2, len(self.findings()))

    def test_links_follow_the_arrows(self):
        self.write("high/CMakeLists.txt", "trainscope_module(high DEPS low LIBS top)\n")
        self.write("top/CMakeLists.txt", "trainscope_module(top DEPS high low)\n")
        self.assertEqual([], self.findings())
        self.write("low/CMakeLists.txt", "trainscope_module(low DEPS top)\n")
        self.assertEqual(1, len(self.findings()))

    def test_a_type_is_defined_in_one_header(self):
        header = "// a header\n#pragma once\nnamespace one {\nstruct Row {\n  int a;\n};\n}\n"
        self.write("low/r.h", header)
        self.write("high/r.h", header.replace("one", "two"))
        self.write("high/s.h", header.replace("struct Row {\n  int a;\n}", "struct Row"))
        self.assertEqual([], self.findings())
        self.write("high/r.h", header.replace("struct Row", "class Row final"))
        self.assertEqual(["low/r.h:4: one::Row is defined in high/r.h:4 too"], self.findings())
        self.write("high/r.h", header.replace("struct Row", "struct alignas(2 * sizeof(int)) Row"))
        self.assertEqual(["low/r.h:4: one::Row is defined in high/r.h:4 too"], self.findings())
        self.write("high/r.h", header.replace("struct Row", "struct alignas(8) Line"))
        self.write("low/s.h", header.replace("struct Row", "struct alignas(8) Place"))
        self.assertEqual([], self.findings())

    def test_a_folder_needs_a_row(self):
        self.assertIn("no row", self.findings("other/x.cpp")[0])


if __name__ == "__main__":
    unittest.main()
