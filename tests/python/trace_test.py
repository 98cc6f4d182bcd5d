#!/usr/bin/python3
"""Traces in Python: equal bytes to the engine's, and what a reader does with damage.

Exit code 77 (skipped) without numpy.
"""
import math
import shutil
import unittest

from support import DATA, MODELS, FolderCase, skip_without

skip_without("numpy")
import numpy  # noqa: E402
from trainscope.elements import elements_of  # noqa: E402
from trainscope.summary import (estimated_norm, sketch_of, sketch_places,  # noqa: E402
                                statistics_of, summary_of)
from trainscope.trace import (Name, TraceReader, TraceWriter, escaped,  # noqa: E402
                              is_recorded_by_default, matches, model_hash, unescaped)
from trainscope.xxh3 import plain_xxh3_64  # noqa: E402

ENGINE = DATA / "numerics" / "mlp-trainscope"

# The library's hashes of the first N bytes of (i i 7 + i 13 + i / 256) mod 256.
HASHES = {
    0: "2d06800538d394c2", 1: "c44bdff4074eecdb", 2: "dac72d23cbf01267", 3: "6647634850539fa2",
    4: "26dfb56de65c55cd", 5: "ace05fe8fec98f42", 8: "83a192ada40b0ce9", 9: "2dac7c782402c359",
    15: "52a5435a9cd4977f", 16: "1e83ace8efbd71b2", 17: "13de6825446895bb", 32: "200d277255f7480e",
    33: "e6a1970abc497b1c", 64: "48f834e51aae01a6", 65: "bb8a1dd7f5d29311", 96: "094e301bca90ebbc",
    97: "9d86dba2cd388dad", 128: "370f45fbc0443ee5", 129: "81c5ee1d1813e394",
    160: "98dd34808a3ada98", 239: "e5471234ddf4c421", 240: "a638b2ea0d229925",
    241: "5b091583477772f7", 255: "0dc50f5fb0dda89c", 256: "01de8b22604b902a",
    257: "a9560403843bead2", 512: "6fc481a7b6bc3e5e", 1023: "e799f53d0da7e0b0",
    1024: "b8756b20ce66095f", 1025: "1ccad3e25c08280e", 1087: "d0f913d4a1825b58",
    1088: "7dd210bc5a600b3f", 1089: "5901a3ea89d3c748", 2048: "987fd563b6d9069b",
    2049: "d4ea6e660be99d76", 5000: "8a6c8abfe1638871", 16384: "ff7d5b7ee04371c0",
    19999: "96c7baf527a862a1", 20000: "adc21ad240698b35"
}


def hashed_bytes():
    i = numpy.arange(20000)
    return ((i * i * 7 + i * 13 + i // 256) % 256).astype(numpy.uint8).tobytes()


class Hash(unittest.TestCase):
    def test_is_the_librarys(self):
        data = hashed_bytes()
        for size, digits in HASHES.items():
            self.assertEqual(f"{plain_xxh3_64(data[:size]):016x}", digits, size)


class Sketch(unittest.TestCase):
    def test_places_are_those_of_the_documentation(self):
        for index, place, sign in ((0, 64, -1), (1, 80, 1), (2, 88, 1), (3, 9, 1), (1000, 51, -1),
                                   (1000000, 88, 1), (4294967296, 55, -1),
                                   (1099511627776, 119, -1)):
            bucket, signs = sketch_places(index, 1)
            self.assertEqual((bucket[0], signs[0]), (place, sign), index)

    def test_of_a_large_tensor_is_one_sum_in_order(self):
        numbers = numpy.random.default_rng(1).standard_normal((1 << 20) + 3000)
        expected = numpy.zeros(128)
        bucket, sign = sketch_places(0, len(numbers))
        numpy.add.at(expected, bucket, numbers * sign)
        self.assertEqual(sketch_of(numbers).tobytes(), expected.tobytes())
        norm = numpy.linalg.norm(numbers)
        self.assertLess(abs(estimated_norm(sketch_of(numbers)) / norm - 1.0), 0.2)

    def test_leaves_out_what_is_not_finite(self):
        numbers = numpy.array([1.0, math.nan, 3.0, math.inf, -math.inf])
        self.assertEqual(sketch_of(numbers).tobytes(),
                         sketch_of(numpy.array([1.0, 0.0, 3.0, 0.0, 0.0])).tobytes())


class Summaries(unittest.TestCase):
    def test_count_what_is_not_finite(self):
        s = statistics_of(numpy.array([0.0, math.nan, 3.0, math.inf, -math.inf, -1.0]))
        self.assertEqual(s[:5], (6, 1, 1, 1, 1))
        self.assertAlmostEqual(s.mean, 2.0 / 3.0)
        self.assertEqual((s.least, s.most, s.l1), (-1.0, 3.0, 4.0))
        self.assertAlmostEqual(s.l2, math.sqrt(10.0))

    def test_of_nothing_are_zeros(self):
        self.assertEqual(statistics_of(numpy.zeros(0)), (0,) * 11)

    def test_of_the_largest_numbers_are_finite(self):
        s = statistics_of(numpy.array([4e307, -4e307, 4e307, 4e307]))
        self.assertAlmostEqual(s.l2 / 8e307, 1.0)
        s = statistics_of(numpy.array([1e308, -1e308, 1e308, 1e308]))
        self.assertTrue(all(math.isfinite(x) for x in s))

    def test_know_every_type_of_a_trace(self):
        for dtype, name in (("float16", "f16"), (">f4", "f32"), ("float64", "f64"), ("bool", "bool"),
                            ("int8", "i8"), ("uint64", "u64"), ("int64", "i64")):
            elements = elements_of(numpy.array([[1, 0]], dtype))
            self.assertEqual((elements.dtype, elements.shape), (name, (1, 2)))
            self.assertEqual(elements.numbers().tolist(), [1.0, 0.0])

    def test_see_the_elements_of_a_transposed_tensor_in_its_order(self):
        array = numpy.arange(6, dtype=numpy.float32).reshape(2, 3)
        same = summary_of(array.T.copy())
        self.assertEqual(summary_of(array.T).hash, same.hash)
        self.assertEqual(summary_of(array.T).sketch.tobytes(), same.sketch.tobytes())
        self.assertNotEqual(summary_of(array).hash, same.hash)


class Engine(FolderCase):
    """The engine's trace of two steps of mlp, most elements kept, against the same made here."""

    def test_sketches_and_hashes_are_equal_bytes(self):
        trace = TraceReader(ENGINE)
        self.assertEqual(trace.steps(), [1, 2])
        kept = trace.elements(1)
        self.assertEqual(len(kept), 15)
        compared = 0
        for place, row in enumerate(trace.rows):
            if row.step != 1 or row.key() not in kept:
                continue
            summary = summary_of(kept[row.key()])
            self.assertEqual(summary.sketch.tobytes(), trace.sketch(place).tobytes(), row.key())
            self.assertEqual(summary.hash, row.hash, row.key())
            self.assertEqual(summary.statistics[:5], row.statistics[:5], row.key())
            numpy.testing.assert_allclose(summary.statistics[5:], row.statistics[5:], rtol=1e-12,
                                          atol=1e-15, err_msg=row.key())
            compared += 1
        self.assertEqual(compared, 15)

    def test_model_is_known_by_its_hash(self):
        header = TraceReader(ENGINE).header
        self.assertEqual(model_hash(MODELS / "mlp" / "model.onnx"), header["model"])

    def test_pytorchs_trace_of_the_same_steps_is_near(self):
        engine, torch = TraceReader(ENGINE), TraceReader(DATA / "numerics" / "mlp-pytorch")
        self.assertEqual(torch.header["producer"], "pytorch")
        places = {(row.step, row.key()): place for place, row in enumerate(torch.rows)}
        paired = 0
        for place, row in enumerate(engine.rows):
            if row.kind == "own":
                continue
            at = places[row.step, row.key()]
            gap = estimated_norm(engine.sketch(place) - torch.sketch(at))
            limit = 0.0 if row.phase == "input" or row.step == 0 else 1e-6 * row.statistics.l2
            self.assertLessEqual(gap, limit, row.key())
            paired += 1
        self.assertEqual(paired, len(torch.rows))

    def test_written_again_has_equal_sketches_and_elements(self):
        trace = TraceReader(ENGINE)
        kept = trace.elements(1)
        with TraceWriter(self.folder, "pytorch", "2.0", trace.header["model"], full=["*"]) as writer:
            rows = [row for row in trace.rows if row.step == 1 and row.key() in kept]
            for row in rows:
                writer.add(1, row.phase, row.kind, row.value, kept[row.key()], op=row.op)
            writer.write_names(trace.names)
        again = TraceReader(self.folder)
        self.assertEqual([row.key() for row in again.rows], [row.key() for row in rows])
        self.assertEqual([row.hash for row in again.rows], [row.hash for row in rows])
        self.assertEqual(again.names, trace.names)
        for key, elements in again.elements(1).items():
            self.assertEqual(elements.raw.tobytes(), kept[key].raw.tobytes(), key)


class Files(FolderCase):
    def write(self, **named):
        with TraceWriter(self.folder / "t", "pytorch", "1", **named) as writer:
            for step in (1, 2):
                writer.add(step, "forward", "act", "a\tb\\c\n", numpy.arange(3.0), op="Relu")
                writer.add(step, "backward", "grad", "w", numpy.float32(2.0), micro_batch=1)
        return self.folder / "t"

    def test_names_of_any_characters_come_back(self):
        rows = TraceReader(self.write()).rows
        self.assertEqual(rows[0].value, "a\tb\\c\n")
        self.assertEqual((rows[1].key(), rows[1].shape, rows[1].order), ("grad:w", "scalar", 1))
        self.assertEqual(rows[2].order, 0)
        for name in ("\\t", "\\", "a\\\tb", ""):
            self.assertEqual(unescaped(escaped(name)), name)

    def test_elements_are_kept_of_the_named_alone(self):
        kept = TraceReader(self.write(full=["w"])).elements(2)
        self.assertEqual(list(kept), ["grad:w@1"])

    def test_a_last_line_without_end_is_left_out(self):
        folder = self.write()
        text = (folder / "values.tsv").read_text()
        (folder / "values.tsv").write_text(text[:-9])
        self.assertEqual(len(TraceReader(folder).rows), 3)

    def test_rows_without_a_sketch_are_left_out(self):
        folder = self.write()
        data = (folder / "sketch.bin").read_bytes()
        (folder / "sketch.bin").write_bytes(data[:-5])
        self.assertEqual(len(TraceReader(folder).rows), 3)

    def test_a_runs_folder_is_read_too(self):
        folder = self.write()
        shutil.move(folder, self.folder / "run" / "numerics")
        self.assertEqual(len(TraceReader(self.folder / "run").rows), 4)

    def test_is_not_written_over(self):
        self.write()
        self.refuses("holds a trace already", 2, self.write)

    def test_damage_is_named(self):
        folder = self.write()
        table = folder / "values.tsv"
        text = table.read_text()
        for old, new, said in (("\tgrad\t", "\tgrid\t", "values.tsv, line 3"),
                               ("2.0", "two", "could not convert"), ("\tRelu\t", "\t", "22 columns"),
                               ("micro_batch", "batch", "expected the columns")):
            table.write_text(text.replace(old, new))
            self.refuses(said, 3, TraceReader, folder)
        table.write_text(text)
        (folder / "sketch.bin").write_bytes(b"TSSKETCH")
        self.refuses("no file of sketches", 3, TraceReader, folder)
        (folder / "trace.json").write_text('{"format": 1}')
        self.refuses("sketch_seed", 3, TraceReader, folder)
        (folder / "trace.json").write_text('{"format": 9}')
        self.refuses("newer than this package", 3, TraceReader, folder)
        self.refuses("holds no trace", 3, TraceReader, self.folder)

    def test_steps_by_default(self):
        recorded = [step for step in range(1, 600) if is_recorded_by_default(step)]
        self.assertEqual(recorded, [1, 2, 5, 10, 20, 50, 100, 200, 500])

    def test_patterns(self):
        self.assertTrue(matches("/h.0/attn/Add", "/h.?/*"))
        self.assertFalse(matches("/h.0/attn", "/h.0"))
        self.assertFalse(matches("/hx0/attn", "/h.0/*"))

    def test_names_table(self):
        folder = self.write()
        names = [Name("act:a\tb", "folded", "", "A constant.")]
        writer = TraceWriter(self.folder / "u", "onnxruntime", "1")
        writer.write_names(names)
        writer.close()
        self.assertEqual(TraceReader(self.folder / "u").names, names)
        self.assertEqual(TraceReader(folder).names, [])


if __name__ == "__main__":
    unittest.main()
