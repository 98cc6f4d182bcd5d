"""What a case is, and how one is run: its commands one after the other until one is refused."""
import dataclasses
import json
import tempfile

import process
from sandbox import Sandbox


@dataclasses.dataclass(frozen=True)
class Case:
    part: str  # mutants, run_files, data_files
    kind: str
    subject: str  # the model, run or format
    seed: int

    def __str__(self):
        return f"{self.kind}:{self.subject}:{self.seed}"


@dataclasses.dataclass
class Step:
    """A command, the program's own name left out, and what it may create or change."""
    words: list
    allowed: tuple = ()
    run_folder: str = ""  # of a run that it writes, relative to the sandbox


@dataclasses.dataclass
class Verdict:
    case: Case
    verb: str
    code: int
    refused_size: bool = False  # a sanitizer ended it where std::bad_alloc is thrown without one
    seconds: float = 0.0
    peak_bytes: int = 0
    fault: str = ""
    command: str = ""
    text: str = ""  # the end of standard error, or what was changed


def sessions_of(folder):
    """The sessions of a run's manifest; none where it cannot be read, or is no file (a FIFO)."""
    try:
        manifest = folder / "manifest.json"
        sessions = json.loads(manifest.read_bytes())["sessions"] if manifest.is_file() else []
        return sessions if isinstance(sessions, list) else []
    except (OSError, ValueError, KeyError, TypeError):
        return []


def fault_of_session(folder, before, outcome):
    """A session that this process began says how it ended."""
    sessions = sessions_of(folder)
    if len(sessions) <= before:
        return None
    last = sessions[-1]
    if last.get("status") == "running":
        return f"code {outcome.code} and a session that stays `running`"
    if last.get("exit_code") != outcome.code:
        return f"code {outcome.code}, {last.get('exit_code')} in the run's manifest"
    return None


def run_step(program, step, sandbox, limits):
    """(outcome, fault or None, text that goes with it)."""
    folder = sandbox.root / step.run_folder
    before = len(sessions_of(folder)) if step.run_folder else 0
    sandbox.seal()
    outcome = process.run([program["path"], *step.words], sandbox, limits, program["sanitized"])
    trespasses = sandbox.trespasses(step.allowed)
    if trespasses:
        return outcome, "a write outside the run", "\n".join(trespasses)
    fault = process.fault_of(outcome, program["documented"])
    if fault is None and step.run_folder and outcome.code >= 0:
        fault = fault_of_session(folder, before, outcome)
    return outcome, fault, outcome.stderr.decode("utf-8", "backslashreplace")


def run_case(program, part, case, shared, limits, keep=None):
    """Builds the case in a sandbox (kept at `keep` if given) and runs it."""
    root = keep or tempfile.mkdtemp(prefix="trainscope-attack-")
    sandbox = Sandbox(root)
    verdict = Verdict(case=case, verb="", code=0)
    try:
        for step in part.build(case, shared, sandbox):
            outcome, fault, text = run_step(program, step, sandbox, limits)
            verdict.verb, verdict.code = step.words[0], outcome.code
            verdict.refused_size = process.refused_size(outcome)
            verdict.seconds += outcome.seconds
            verdict.peak_bytes = max(verdict.peak_bytes, outcome.peak_bytes)
            verdict.command = " ".join(repr(word) if not word.isprintable() or " " in word else word
                                       for word in ["trainscope", *outcome.words[1:]])[:2000]
            if fault:
                verdict.fault, verdict.text = fault, text[-3000:]
            if fault or outcome.code != 0 or verdict.refused_size:
                break
    finally:
        if not keep:
            sandbox.remove()
    return verdict
