#!/usr/bin/python3
"""Runs a notebook without Jupyter: its code cells in order, in one namespace, drawing into memory.

Usage: run.py [--write] NOTEBOOK.ipynb...   --write puts what cells print into the files, as their
outputs; pictures are left out. Cells are plain Python: no magics, no shell lines.
"""
import contextlib
import io
import json
import os
import sys
import traceback
from pathlib import Path


class CellFailed(Exception):
    """A cell raised: the message says which, at which of its lines, and what."""


def source_of(cell):
    """A cell's text: nbformat keeps it as one string, or as lines."""
    text = cell["source"]
    return text if isinstance(text, str) else "".join(text)


def run_cell(text, number, namespace):
    """Runs a code cell; returns what it printed. Raises CellFailed."""
    printed = io.StringIO()
    try:
        code = compile(text, f"cell {number}", "exec")
        with contextlib.redirect_stdout(printed):
            exec(code, namespace)  # a notebook is code that is to run
    except Exception as error:
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__)
                 if frame.filename == f"cell {number}"]
        line = lines[-1] if lines else getattr(error, "lineno", "?")
        raise CellFailed(f"cell {number}, line {line}: {type(error).__name__}: {error}") from error
    return printed.getvalue()


def run_notebook(path, write=False):
    """The namespace that a notebook's code cells leave, run in the notebook's folder. `write`: the
    file then has what they printed. Raises CellFailed for the first that raises."""
    import matplotlib
    matplotlib.use("Agg")
    path = Path(path).resolve()
    notebook = json.loads(path.read_text(encoding="utf-8"))
    namespace = {"__name__": "__main__"}
    before = Path.cwd()
    os.chdir(path.parent)
    try:
        cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
        for number, cell in enumerate(cells, 1):
            printed = run_cell(source_of(cell), number, namespace)
            cell["execution_count"] = number
            cell["outputs"] = [{"name": "stdout", "output_type": "stream",
                                "text": printed.splitlines(keepends=True)}] if printed else []
    finally:
        os.chdir(before)
    if write:
        text = json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"
        path.write_text(text, encoding="utf-8")
    return namespace


def main():
    write = "--write" in sys.argv[1:]
    for path in (word for word in sys.argv[1:] if word != "--write"):
        try:
            run_notebook(path, write)
        except CellFailed as error:
            print(f"{path}: {error}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
