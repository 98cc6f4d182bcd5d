"""Folders of ONNX Runtime's StatisticsSubscriber: reads them, writes them, compares them with
traces.

A folder has step_N/ with order.txt and a text for each output of a module and direction:
CLASS_INDEX_Kth_output_forward. In what ONNX Runtime 1.19 wrote, std is wrong unless run_on_cpu was
given (its sums of buckets are taken for means), so that comparisons leave it out.
"""
import math
import re
from collections import namedtuple
from pathlib import Path

import numpy

from .elements import elements_of
from .errors import TrainscopeError

# name: "Linear_1_0th_output"; direction: "forward" or "backward"; shape: tuple of int; dtype:
# "f32"; least, most, mean, std (n - 1): float; nan, infinite, negative, positive, zeros: int;
# samples: f64 of the first 128 elements, to the six digits that are written; depth: int, 1 for the
# whole model.
ModuleStatistics = namedtuple("ModuleStatistics", "name direction shape dtype least most mean std nan "
                                                  "infinite negative positive zeros samples "
                                                  "depth")
# A value that a comparison finds apart: of a ModuleStatistics and a trace's row, in units of the
# root mean square of the row's elements.
Apart = namedtuple("Apart", "name direction value what theirs ours relative")

_SAMPLES = 128
_TYPES = {"float32": "f32", "float64": "f64", "float16": "f16", "bfloat16": "bf16", "int64": "i64",
          "int32": "i32", "bool": "bool", "uint8": "u8", "int8": "i8", "int16": "i16"}
_BLOCK = re.compile(
    r"(?P<depth>>+)(?P<name>\S+) (?P<direction>forward|backward) run "
    r"shape: torch\.Size\(\[(?P<shape>[0-9, ]*)\]\) "
    r"dtype: torch\.(?P<dtype>\w+) size: torch\.Size\(\[[0-9]*\]\)\s*\n"
    r"min: (?P<least>\S+) max: (?P<most>\S+), mean: (?P<mean>\S+), std: (?P<std>\S+)\s*\n"
    r"nan: (?P<nan>\d+), inf: (?P<infinite>\d+)\s*\n"
    r"samples\(top \d+\): tensor\(\[?(?P<samples>[^\]\)]*)\]?.*?\)\s*\n"
    r"neg: (?P<negative>\d+), pos: (?P<positive>\d+), zero: (?P<zeros>\d+),", re.DOTALL)


def read_statistics(folder):
    """{step: [ModuleStatistics]}, in the order in which they were written.

    Raises TrainscopeError for a folder without steps, and for a file that is something else.
    """
    steps = {}
    for path in sorted(Path(folder).glob("step_*"), key=lambda path: path.name):
        if path.name[5:].isdigit() and path.is_dir():
            steps[int(path.name[5:])] = _step(path)
    if not steps:
        raise TrainscopeError(f"'{folder}' holds no step_N folders of a StatisticsSubscriber")
    return dict(sorted(steps.items()))


def _step(folder):
    order = folder / "order.txt"
    names = order.read_text(encoding="utf-8").split() if order.is_file() else sorted(
        path.name for path in folder.iterdir())
    found = []
    for name in dict.fromkeys(names):
        path = folder / name
        if not path.is_file():
            raise TrainscopeError(f"'{order}' names '{name}', which is not there")
        blocks = list(_BLOCK.finditer(path.read_text(encoding="utf-8")))
        if not blocks:
            raise TrainscopeError(f"'{path}' is no text of a StatisticsSubscriber")
        found += [_statistics(block) for block in blocks]
    return found


def _statistics(block):
    texts = block.groupdict()
    shape = tuple(int(size) for size in texts["shape"].replace(",", " ").split())
    samples = [_number(text) for text in re.split(r"[,\s]+", texts["samples"]) if text]
    return ModuleStatistics(texts["name"], texts["direction"], shape,
                            _TYPES.get(texts["dtype"], texts["dtype"]),
                            *(_number(texts[key]) for key in ("least", "most", "mean", "std")),
                            *(int(texts[key]) for key in ("nan", "infinite", "negative", "positive",
                                                          "zeros")),
                            numpy.array(samples), len(texts["depth"]))


def _number(text):
    """A float; of a boolean sample 1 or 0."""
    return {"True": 1.0, "False": 0.0}.get(text) if text in ("True", "False") else float(text)


def statistics_of_tensor(name, direction, tensor, depth=1):
    """The ModuleStatistics of a tensor (what elements_of takes): std is right, over n - 1."""
    elements = elements_of(tensor)
    numbers = elements.numbers()
    few = len(numbers) < 2
    return ModuleStatistics(
        name, direction, elements.shape, elements.dtype,
        *((float(numbers.min()), float(numbers.max()), float(numbers.mean())) if len(numbers)
          else (0.0, 0.0, 0.0)),
        math.nan if few else float(numbers.std(ddof=1)), int(numpy.isnan(numbers).sum()),
        int(numpy.isinf(numbers).sum()), int((numbers < 0).sum()), int((numbers > 0).sum()),
        int((numbers == 0).sum()), numbers[:_SAMPLES], depth)


def write_statistics(folder, step, statistics):
    """Writes step_N/ with these ModuleStatistics, as a StatisticsSubscriber would."""
    to = Path(folder) / f"step_{step}"
    try:
        to.mkdir(parents=True)
        files = []
        for each in statistics:
            file = f"{each.name}_{each.direction}"
            with open(to / file, "a", encoding="utf-8") as text:
                text.write(_text(each))
            files.append(file)
        (to / "order.txt").write_text("".join(f"{file}\n" for file in files), encoding="utf-8")
    except OSError as error:
        raise TrainscopeError(f"'{to}' cannot be written: {error.strerror}", 6) from error


def _text(each):
    torch_type = {own: name for name, own in _TYPES.items()}.get(each.dtype, each.dtype)
    samples = [f"{sample: .6e}" for sample in each.samples]
    lines = [", ".join(samples[i:i + 8]) for i in range(0, len(samples), 8)]
    joined = (",\n" + " " * 8).join(lines)
    count = math.prod(each.shape)
    return (f"{'>' * each.depth}{each.name} {each.direction} run "
            f"shape: torch.Size({list(each.shape)}) "
            f"dtype: torch.{torch_type} size: torch.Size([{count}]) \n"
            f"min: {each.least} max: {each.most}, mean: {each.mean}, std: {each.std} \n"
            f"nan: {each.nan}, inf: {each.infinite}\n"
            f"samples(top {_SAMPLES}): tensor([{joined}])\n"
            f"neg: {each.negative}, pos: {each.positive}, zero: {each.zeros},\n"
            f"{'=' * 16}\n")


def names_of_modules(model):
    """{"Linear_1": path}: what a StatisticsSubscriber calls the modules of a torch module."""
    return {f"{type(module).__name__}_{place}": path
            for place, (path, module) in enumerate(model.named_modules())}


def compared(statistics, trace, step, names):
    """[Apart] of one step: of each value that both have, the furthest of least, most and mean.

    statistics: [ModuleStatistics]; trace: TraceReader; step: of the trace, from 1 (a subscriber
    counts from 0); names: {"Linear_1": value of the model}, first outputs. What the trace lacks is
    left out.
    """
    rows = {row.key(): row for row in trace.rows if row.step == step and row.micro_batch == 0}
    found = []
    for each in statistics:
        module, _, output = each.name.rpartition("_")  # Linear_1_0th, output
        module, _, place = module.rpartition("_")
        value = names.get(module)
        kind = "act" if each.direction == "forward" else "dact"
        row = rows.get(f"{kind}:{value}")
        if row is None or (place, output) != ("0th", "output"):
            continue
        s = row.statistics
        if s.count != math.prod(each.shape):
            raise TrainscopeError(f"'{each.name}' has {math.prod(each.shape)} elements, {row.key()} "
                                  f"{s.count}: not the same value, model or batch", 2)
        size = s.l2 / math.sqrt(s.count) if s.l2 > 0.0 else 1.0
        gaps = [(abs(theirs - ours) / size, what, theirs, ours) for what, theirs, ours in
                (("min", each.least, s.least), ("max", each.most, s.most), ("mean", each.mean, s.mean))]
        relative, what, theirs, ours = max(gaps)
        found.append(Apart(each.name, each.direction, value, what, theirs, ours, relative))
    return found
