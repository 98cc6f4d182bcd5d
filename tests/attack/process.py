"""Runs the program within limits, and tells whether what it did is a fault."""
import dataclasses
import json
import os
import re
import resource
import select
import signal
import subprocess
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
READ_BYTES = 1 << 20  # of each output, that are looked at
# The largest file that a case may write: a guard of this machine's disk.
FILE_BYTES = 1 << 30
SANITIZER_CODE = 99
# Reports of a sanitizer about a size that the allocator refuses: without it a std::bad_alloc.
REFUSED_SIZES = ("allocation-size-too-big", "AddressSanitizer: out-of-memory",
                 "calloc-overflow", "hard rss limit exhausted")
# Codes that no case may end with although they are documented: of what no case asks for.
NOT_ASKED_FOR = {1: "run_failed, a mistake of the program itself", 4: "no device was asked for",
                 8: "there are no processes", 9: "nothing was compared", 130: "no signal was sent",
                 143: "no signal was sent"}
# Words of libraries, which say neither what is wrong nor where.
FOREIGN_WORDS = re.compile(r"std::|basic_string|vector::|_M_|could not create|stoi|stol|terminate "
                           r"called|libgomp|dnnl_|terminating with|Assertion|CHECK")
# Something that tells which thing is meant: a quoted name, a flag, a file, a number.
NAMES_SOMETHING = re.compile(r"'.*'|--[a-z]|\.\w+|[0-9/]")


@dataclasses.dataclass
class Limits:
    seconds: float = 20.0  # of processor, or of waiting without any
    memory_bytes: int = 2 << 30  # of address space; under sanitizers of their resident memory


@dataclasses.dataclass
class Outcome:
    words: list
    code: int = 0  # below 0: the signal that ended it
    seconds: float = 0.0
    peak_bytes: int = 0
    stdout: bytes = b""
    stderr: bytes = b""
    timed_out: bool = False


def documented_codes():
    """The codes of the table in docs/exit-codes.md."""
    text = (ROOT / "docs/exit-codes.md").read_text()
    return {int(code) for code in re.findall(r"^\| (\d+) \|", text, re.MULTILINE)}


def is_sanitized(program):
    return b"__asan_init" in Path(program).read_bytes()


def environment(sandbox, limits):
    megabytes = limits.memory_bytes >> 20
    return {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "OMP_WAIT_POLICY": "passive",
            "HOME": str(sandbox.outside / "home"), "TMPDIR": str(sandbox.outside / "tmp"),
            "ASAN_OPTIONS": f"exitcode={SANITIZER_CODE}:detect_leaks=0:max_allocation_size_mb="
                            f"{megabytes}:hard_rss_limit_mb={2 * megabytes}:"
                            "detect_stack_use_after_return=0",
            "UBSAN_OPTIONS": f"exitcode={SANITIZER_CODE}:print_stacktrace=1:halt_on_error=1"}


def limit_process(limits, sanitized):
    """To be called in the child. A sanitizer's shadow alone is terabytes of address space."""
    if not sanitized:
        resource.setrlimit(resource.RLIMIT_AS, (limits.memory_bytes, limits.memory_bytes))
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_BYTES, FILE_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def processor_seconds(pid):
    """What a process has used so far, all threads together."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def wait_for(pid, seconds):
    """False when it has used the processor for so long, or not at all for so long: it hangs. On a
    busy machine everything takes longer without being wrong."""
    descriptor = os.pidfd_open(pid)
    waiting = select.poll()
    waiting.register(descriptor, select.POLLIN)
    used, since = 0.0, time.monotonic()
    try:
        while not waiting.poll(min(500, seconds * 1000)):
            now = processor_seconds(pid)
            if now > used:
                used, since = now, time.monotonic()
            if used > seconds or time.monotonic() - since > seconds:
                return False
        return True
    finally:
        os.close(descriptor)


def run(words, sandbox, limits, sanitized=False):
    """Runs the program in the sandbox's work folder; what does not end in time is killed."""
    outcome = Outcome(words=[str(word) for word in words])
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(outcome.words, cwd=sandbox.work, stdin=subprocess.DEVNULL,
                                   stdout=out, stderr=err, env=environment(sandbox, limits),
                                   start_new_session=True,
                                   preexec_fn=lambda: limit_process(limits, sanitized))
        outcome.timed_out = not wait_for(process.pid, limits.seconds)
        if outcome.timed_out:
            os.killpg(process.pid, signal.SIGKILL)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = outcome.code = os.waitstatus_to_exitcode(status)
        outcome.seconds = used.ru_utime + used.ru_stime
        outcome.peak_bytes = used.ru_maxrss * 1024
        for file, name in ((out, "stdout"), (err, "stderr")):
            file.seek(0)
            setattr(outcome, name, file.read(READ_BYTES))
    return outcome


def error_lines(text):
    """The lines of the last error: `error: `, `at: `, `try: `."""
    lines = text.split("\n")
    starts = [i for i, line in enumerate(lines) if line.startswith("error: ")]
    return lines[starts[-1]:] if starts else []


def refused_size(outcome):
    text = outcome.stderr.decode("utf-8", "replace")
    return any(words in text for words in REFUSED_SIZES)


def fault_of_text(outcome):
    """What is wrong with what it wrote; None: nothing."""
    for name in ("stdout", "stderr"):
        content = getattr(outcome, name)
        try:
            text = content.decode("utf-8")
        except UnicodeDecodeError as error:
            if error.start >= READ_BYTES - 4:
                continue  # a character at the end of what is looked at
            return f"{name} is not UTF-8"
        if re.search(r"[\x00-\x08\x0b-\x1f\x7f]", text):
            return f"control characters on {name}"
    text = outcome.stderr.decode("utf-8", "replace")
    error = error_lines(text)
    if outcome.code == 0:
        return "code 0 with an error" if error else None
    if not error:
        return f"code {outcome.code} without an error"
    if FOREIGN_WORDS.search("\n".join(error)):
        return f"code {outcome.code} in a library's own words"
    if outcome.code != 5 and not NAMES_SOMETHING.search("\n".join(error)[len("error: "):]):
        return f"code {outcome.code} and names nothing"
    return None


def fault_of_json(outcome):
    """With --json there is one object on standard output, with the code of the process."""
    if "--json" not in outcome.words or len(outcome.stdout) >= READ_BYTES:
        return None
    try:
        facts = json.loads(outcome.stdout)
    except ValueError:
        return "no JSON with --json"
    if outcome.code != 0 and facts.get("error", {}).get("code") != outcome.code:
        return "another code in the JSON"
    return None


def fault_of(outcome, documented):
    """Why this is a fault; None: it is none."""
    text = outcome.stderr.decode("utf-8", "replace")
    if outcome.timed_out:
        return f"time-out ({outcome.seconds:.0f} s of processor)"
    if outcome.code < 0 and not refused_size(outcome):
        return f"signal {signal.Signals(-outcome.code).name}"
    if refused_size(outcome):
        return None
    if outcome.code == SANITIZER_CODE or "Sanitizer" in text or "runtime error:" in text:
        return "a sanitizer's report"
    if outcome.code not in documented:
        return f"undocumented code {outcome.code}"
    if outcome.code in NOT_ASKED_FOR:
        return f"code {outcome.code}: {NOT_ASKED_FOR[outcome.code]}"
    return fault_of_text(outcome) or fault_of_json(outcome)
