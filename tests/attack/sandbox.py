"""The folder that a case runs in, and what the program changed where it has no business.

    given/    what the case made: model, data; the program only reads it
    work/     the program's current folder; a case names what may appear there
    outside/  what hostile links point to, HOME and TMPDIR: nothing in it may change
"""
import os
import shutil
import stat
from pathlib import Path

# What links of a stranger lead to: files with whole and with unfinished lines, a folder with files.
CANARIES = {
    "notes.txt": b"line one\nline two without its end",
    "metrics.jsonl": b'{"kind": "step", "step": 1, "loss": 1.0}\n{"kind": "st',
    "model.onnx": b"not a model",
    "config.toml": b"steps = 2\n",
    "taken/data": b"kept",
    "taken/.saving-step-00000009/data": b"kept",
    "taken/.trainscope-1.tmp": b"kept",
    "home/.profile": b"kept",
    "tmp/kept": b"kept",
}


def entry_of(path):
    """What changes when a file or folder is written; times of reading are left out."""
    facts = path.lstat()
    size = 0 if stat.S_ISDIR(facts.st_mode) else facts.st_size
    return (facts.st_mode, facts.st_ino, size, facts.st_mtime_ns, facts.st_ctime_ns)


def snapshot(root):
    """Entry by path relative to root, links not followed."""
    entries = {}
    for folder, folders, files in os.walk(root):
        for name in folders + files:
            path = Path(folder) / name
            entries[str(path.relative_to(root))] = entry_of(path)
    return entries


class Sandbox:
    def __init__(self, root):
        self.root = Path(root)
        self.given = self.root / "given"
        self.work = self.root / "work"
        self.outside = self.root / "outside"
        for name, content in CANARIES.items():
            path = self.outside / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        self.given.mkdir()
        self.work.mkdir()
        self.before = {}

    def seal(self):
        """From here on every change counts."""
        self.before = snapshot(self.root)

    def trespasses(self, allowed):
        """Lines about what changed beside `allowed`: paths relative to the root, with all below."""
        after = snapshot(self.root)
        lines = []
        for path in sorted(set(self.before) | set(after)):
            if any(path == own or path.startswith(own + "/") for own in allowed):
                continue
            old, new = self.before.get(path), after.get(path)
            if old is None or new is None:
                lines.append(f"{path} {'appeared' if old is None else 'is gone'}")
            elif old != new:
                holds_own = any(own.startswith(path + "/") for own in allowed)
                if not (holds_own and old[:2] == new[:2]):
                    lines.append(f"{path} changed")
        return lines

    def remove(self):
        shutil.rmtree(self.root, ignore_errors=True)
