"""The trainscope program, asked for facts: what its verbs print with --json."""
import json
import os
import shutil
import subprocess

from .errors import TrainscopeError

MISMATCH = 9  # what compare and bisect exit with where they find something


def program_path():
    """Path of the program: the environment variable TRAINSCOPE, else `trainscope` on PATH."""
    named = os.environ.get("TRAINSCOPE")
    found = shutil.which(named or "trainscope")
    if found is None:
        raise TrainscopeError(f"there is no program '{named or 'trainscope'}': set TRAINSCOPE to its "
                              "path, or put it on PATH", 2)
    return found


def ask(*words):
    """What `trainscope WORDS --json` prints, as a dict; of other exit codes than 0 and 9 it raises
    a TrainscopeError with the program's own line and code."""
    done = subprocess.run([program_path(), *map(str, words), "--json"], capture_output=True,
                          text=True, check=False)
    if done.returncode not in (0, MISMATCH):
        line = (done.stderr.strip().splitlines() or ["no message"])[0]
        raise TrainscopeError(f"trainscope {words[0]}: {line}", done.returncode)
    return json.loads(done.stdout)
