"""The folder of a run, as numpy has it: metrics, stages, plan, profile and trace.

Metrics, stages and trace are read from the folder's files (docs/run-format.md); plan and profile,
whose files are binary, are what the trainscope program says of them.
"""
import json
import tempfile
from pathlib import Path

import numpy

from .errors import TrainscopeError
from .program import ask
from .summary import estimated_norm
from .trace import TraceReader

_COLUMNS = {"step": ("step", "loss", "learning_rate", "gradient_norm", "step_ms", "samples",
                     "tokens"),
            "evaluation": ("step", "loss", "accuracy", "examples", "milliseconds")}


def _kept_lines(path):
    """The lines of metrics.jsonl as dicts, without those that a resumed session made void, and
    without one that is being written."""
    kept = []
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n")[:-1], 1):
        try:
            record = json.loads(line)
            kind, step = record["kind"], record["step"]
        except (ValueError, KeyError, TypeError) as error:
            raise TrainscopeError(f"{path}, line {number}: no line of metrics: {error}") from error
        if kind == "resume":
            kept = [each for each in kept if each["step"] <= step]
        kept.append(record)
    return kept


class Run:
    """What a run's folder holds. Raises TrainscopeError for a folder that is none."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.manifest = self._json("manifest.json")

    def steps(self):
        """{column: f64 [steps]} of the training steps: step, loss, learning_rate, gradient_norm,
        step_ms, samples, tokens. What was not computed, or not finite, is NaN."""
        return self._table("step")

    def evaluations(self):
        """The same of evaluations: step, loss, accuracy, examples, milliseconds."""
        return self._table("evaluation")

    def stages(self):
        """The rows of stages/stages.json, in the order of the passes."""
        return self._json("stages/stages.json")["stages"]

    def plan(self):
        """The dict that docs/plan-format.md describes, of the run's newest session."""
        path = self.folder / "plan.json"
        return self._json("plan.json") if path.is_file() else json.loads(self._exported_plan())

    def profile(self, by="op", *words):
        """`trainscope query RUN --by BY WORDS`: `rows` of the profiled steps, and `step_ms`."""
        return ask("query", self.folder, "--by", by, *words)

    def trace(self):
        """The run's trace.TraceReader."""
        return TraceReader(self.folder)

    def _json(self, name):
        path = self.folder / name
        try:
            return json.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise TrainscopeError(f"'{self.folder}' is no run: {name}: {error.strerror}") from error
        except ValueError as error:
            raise TrainscopeError(f"'{path}' is no JSON: {error}") from error

    def _table(self, kind):
        path = self.folder / "metrics.jsonl"
        kept = _kept_lines(path) if path.is_file() else []
        lines = [line for line in kept if line["kind"] == kind]
        return {column: numpy.array([_number(line.get(column)) for line in lines])
                for column in _COLUMNS[kind]}

    def _exported_plan(self):
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "plan.json"
            ask("export", self.folder, "--format", "plan-json", "-o", out)
            return out.read_text(encoding="utf-8")


def _number(value):
    return numpy.nan if value is None else float(value)


def live_bytes(plan):
    """i64 [times]: bytes of all buffers in the device's arena that are alive at each time of a
    plan."""
    live = numpy.zeros(plan["instruction_count"], numpy.int64)
    for buffer in plan["buffers"]:
        if not buffer.get("external"):
            live[buffer["birth"]:buffer["death"]] += buffer["bytes"]
    return live


def errors_between(first, second):
    """{(step, micro_batch, key): relative L2 error} of the rows that two traces share, from their
    sketches: the norm of the difference over the larger of the two norms; 0 where both are, infinite
    where one is not finite."""
    places = {(row.step, row.micro_batch, row.key()): at for at, row in enumerate(second.rows)}
    errors = {}
    for at, row in enumerate(first.rows):
        key = (row.step, row.micro_batch, row.key())
        if key not in places:
            continue
        norm = max(row.statistics.l2, second.rows[places[key]].statistics.l2)
        gap = estimated_norm(first.sketch(at) - second.sketch(places[key]))
        if not (numpy.isfinite(norm) and numpy.isfinite(gap)):
            errors[key] = numpy.inf
        else:
            errors[key] = gap / norm if norm > 0.0 else 0.0
    return errors
