"""Traces: a row of statistics, a sketch and a hash for each tensor of the steps that were recorded.

A trace is a folder with trace.json, values.tsv, sketch.bin, names.tsv and full/STEP.safetensors;
docs/run-format.md says what is in them, and `trainscope compare` reads them.
"""
import json
import re
import struct
from collections import namedtuple
from pathlib import Path

import numpy

from .elements import elements_of
from .errors import TrainscopeError
from .summary import BUCKETS, SEED, Statistics, summary_of
from .tensor_file import read_elements, write_tensors
from .xxh3 import hex_digits, xxh3_64

FORMAT = 1
PHASES = ("input", "forward", "backward", "update")
KINDS = ("input", "act", "loss", "dact", "grad", "param", "state", "own")
COLUMNS = ("step", "micro_batch", "phase", "order", "kind", "value", "op", "node", "kernel", "dtype",
           "shape", "count", "nan", "+inf", "-inf", "zeros", "mean", "std", "min", "max", "l1", "l2",
           "hash")
NAME_COLUMNS = ("value", "fate", "row", "reason")
_HEADER = struct.Struct("<8sIIQQ")
_MAGIC = b"TSSKETCH"


class Row(namedtuple("Row", "step micro_batch phase order kind value op node kernel dtype shape "
                            "statistics hash")):
    """A line of values.tsv. shape: "2x3" or "scalar"; statistics: summary.Statistics; hash: int."""

    __slots__ = ()

    def key(self):
        """"grad:w1": unique within a step and micro-batch."""
        return f"{self.kind}:{self.value}"


# What became of a value of the model, where rows have other names or none: all str.
Name = namedtuple("Name", NAME_COLUMNS)


def is_recorded_by_default(step):
    """Whether step (from 1) is one of 1, 2, 5, 10, 20, 50 ..."""
    digits = str(step)
    return digits[0] in "125" and not digits[1:].strip("0")


def matches(name, pattern):
    """Whether a name is as the pattern says: * stands for any characters, ? for one."""
    parts = (".*" if c == "*" else "." if c == "?" else re.escape(c) for c in pattern)
    return re.fullmatch("".join(parts), name, re.DOTALL) is not None


def escaped(text):
    """A name as a cell of a table."""
    for character, written in (("\\", "\\\\"), ("\t", "\\t"), ("\n", "\\n"), ("\r", "\\r")):
        text = text.replace(character, written)
    return text


def unescaped(text):
    """The name of a cell."""
    return re.sub(r"\\(.)", lambda m: {"t": "\t", "n": "\n", "r": "\r"}.get(m[1], m[1]), text)


def model_hash(path):
    """The `model` of trace.json: 16 hexadecimal digits of a model file's bytes."""
    try:
        return hex_digits(xxh3_64(Path(path).read_bytes()))
    except OSError as error:
        raise TrainscopeError(f"'{path}' cannot be read: {error.strerror}", 6) from error


def shape_cell(shape):
    """(2, 3) -> "2x3", () -> "scalar"."""
    return "x".join(str(size) for size in shape) or "scalar"


class TraceWriter:
    """Writes a trace as its tensors come. A context manager; close() otherwise.

    folder: is made; must hold no trace yet. producer, version, model, mode ("fused", "all",
    "modules"), micro_batches and more (a dict): what trace.json has. full: patterns of the values
    of which all elements are kept. Raises TrainscopeError (code 2 where a trace is there already, 6
    where something cannot be written).
    """

    def __init__(self, folder, producer, version, model="", mode="all", micro_batches=1, full=(),
                 more=None):
        self.folder = Path(folder)
        self.rows = 0
        self._full = tuple(full)
        self._order = {}
        self._lines, self._sketches, self._elements = [], [], {}
        if (self.folder / "trace.json").exists():
            raise TrainscopeError(f"'{folder}' holds a trace already: name another folder", 2)
        self._header = {"format": FORMAT, "producer": producer, "version": version, "model": model,
                        "mode": mode, "micro_batches": micro_batches, "sketch_seed": str(SEED),
                        "more": more or {}}
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._write_header()
            self._values = open(self.folder / "values.tsv", "w", encoding="utf-8", newline="\n")
            self._values.write("\t".join(COLUMNS) + "\n")
            self._sketch = open(self.folder / "sketch.bin", "wb")
            self._sketch.write(_HEADER.pack(_MAGIC, 1, BUCKETS, SEED, 0))
        except OSError as error:
            raise TrainscopeError(f"no trace can be written to '{folder}': {error.strerror}",
                                  6) from error

    def _write_header(self):
        text = json.dumps(self._header, indent=2, ensure_ascii=False) + "\n"
        (self.folder / "trace.json").write_text(text, encoding="utf-8")

    def set_micro_batches(self, count):
        """Says how many micro-batches a step has, where that is known only later."""
        if count != self._header["micro_batches"]:
            self._header["micro_batches"] = count
            self._write_header()

    def add(self, step, phase, kind, value, tensor, micro_batch=0, op="", node="", kernel=""):
        """A row of a tensor (what elements_of takes). Rows of a step are numbered as they come."""
        elements = elements_of(tensor)
        summary = summary_of(elements)
        order = self._order.get(step, 0)
        self._order = {step: order + 1}
        s = summary.statistics
        cells = (step, micro_batch, phase, order, kind, escaped(value), escaped(op), escaped(node),
                 escaped(kernel), elements.dtype, shape_cell(elements.shape), *s,
                 hex_digits(summary.hash))
        self._lines.append("\t".join(str(cell) for cell in cells) + "\n")
        self._sketches.append(summary.sketch)
        self.rows += 1
        # Step 0, the state before the first step, has no file of elements.
        if step > 0 and any(matches(value, pattern) for pattern in self._full):
            later = f"@{micro_batch}" if micro_batch > 0 else ""
            kept = elements._replace(raw=elements.raw.copy())
            self._elements.setdefault(step, {})[f"{kind}:{value}{later}"] = kept

    def flush(self):
        """Rows of a finished step are in the files then: sketches first, so that each row has
        its."""
        try:
            for sketch in self._sketches:
                self._sketch.write(sketch.astype("<f8").tobytes())
            self._sketch.flush()
            self._values.writelines(self._lines)
            self._values.flush()
            for step, tensors in self._elements.items():
                (self.folder / "full").mkdir(exist_ok=True)
                write_tensors(self.folder / "full" / f"{step}.safetensors", tensors)
        except OSError as error:
            raise TrainscopeError(f"'{self.folder}' cannot be written: {error.strerror}",
                                  6) from error
        self._lines, self._sketches, self._elements = [], [], {}

    def write_names(self, names):
        """names.tsv, of Name tuples."""
        with open(self.folder / "names.tsv", "w", encoding="utf-8", newline="\n") as file:
            for cells in (NAME_COLUMNS, *names):
                file.write("\t".join(escaped(cell) for cell in cells) + "\n")

    def close(self):
        self.flush()
        self._values.close()
        self._sketch.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class TraceReader:
    """What a trace's folder, or a run's that holds one in numerics/, has in it.

    header: dict; rows: list of Row; names: list of Name. Rows that were cut short, or have no
    sketch, are left out with all after them. Raises TrainscopeError for what is no trace.
    """

    def __init__(self, folder):
        self.folder = Path(folder)
        if not (self.folder / "trace.json").is_file():
            self.folder = self.folder / "numerics"
        if not (self.folder / "trace.json").is_file():
            raise TrainscopeError(f"'{folder}' holds no trace")
        self.header = self._read_header()
        self.sketches = self._read_sketches()
        lines = self._lines("values.tsv", COLUMNS)[:len(self.sketches)]
        self.rows = [self._row(number, cells) for number, cells in lines]
        self.names = []
        if (self.folder / "names.tsv").is_file():
            self.names = [Name(*(unescaped(cell) for cell in cells))
                          for _, cells in self._lines("names.tsv", NAME_COLUMNS)]

    def sketch(self, row):
        """f64 [128] of the row at this place in rows."""
        return self.sketches[row]

    def steps(self):
        """Steps whose forward phase was recorded, ascending: where a run was resumed, parameters and
        states alone are of the step before."""
        return sorted({row.step for row in self.rows if row.step > 0 and row.phase != "update"})

    def elements(self, step):
        """{KEY: Elements} of the tensors of which all elements were kept in a step."""
        path = self.folder / "full" / f"{step}.safetensors"
        return read_elements(path) if path.is_file() else {}

    def _read_header(self):
        path = self.folder / "trace.json"
        try:
            header = json.loads(path.read_text(encoding="utf-8"))
            known = 1 <= header["format"] <= FORMAT
            if known:
                int(header["sketch_seed"])
        except (ValueError, KeyError, TypeError) as error:
            raise TrainscopeError(f"'{path}' is no header of a trace: {error}") from error
        if not known:
            raise TrainscopeError(f"'{path}': trace format {header['format']} is newer than this "
                                  f"package, which reads up to {FORMAT}")
        return header

    def _read_sketches(self):
        path = self.folder / "sketch.bin"
        data = path.read_bytes() if path.is_file() else b""
        expected = (_MAGIC, 1, BUCKETS, int(self.header["sketch_seed"]), 0)
        if len(data) < _HEADER.size or _HEADER.unpack_from(data) != expected:
            raise TrainscopeError(f"'{path}' is no file of sketches of {BUCKETS} buckets and the "
                                  "trace's seed")
        count = (len(data) - _HEADER.size) // (8 * BUCKETS)
        sketches = numpy.frombuffer(data, "<f8", count * BUCKETS, _HEADER.size)
        return sketches.reshape(count, BUCKETS)

    def _lines(self, name, columns):
        """[(line number, cells)] of the whole lines after the first."""
        path = self.folder / name
        if not path.is_file():
            raise TrainscopeError(f"'{path}' is missing")
        lines = path.read_bytes().decode("utf-8", "replace").split("\n")[:-1]
        if not lines or tuple(lines[0].split("\t")) != columns:
            raise TrainscopeError(f"{path}, line 1: expected the columns {' '.join(columns)}")
        split = [(number, line.split("\t")) for number, line in enumerate(lines[1:], 2)]
        for number, cells in split:
            if len(cells) != len(columns):
                raise TrainscopeError(f"{path}, line {number}: {len(cells)} columns, expected "
                                      f"{len(columns)}")
        return split

    def _row(self, number, cells):
        try:
            counts = [int(cell) for cell in cells[11:16]]
            moments = [float(cell) for cell in cells[16:22]]
            row = Row(int(cells[0]), int(cells[1]), cells[2], int(cells[3]), cells[4],
                      *(unescaped(cell) for cell in cells[5:9]), cells[9], cells[10],
                      Statistics(*counts, *moments), int(cells[22], 16))
        except ValueError as error:
            raise TrainscopeError(f"{self.folder / 'values.tsv'}, line {number}: {error}") from error
        if row.phase not in PHASES or row.kind not in KINDS:
            raise TrainscopeError(f"{self.folder / 'values.tsv'}, line {number}: phase "
                                  f"'{row.phase}' or kind '{row.kind}' is unknown")
        return row
