#!/usr/bin/python3
"""A profiled run from end to end: query adds up, its export keeps the rules of trace events, compare
finds what is slower.

Usage: chrome_test.py TRAINSCOPE
"""
import gzip
import json
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

from chrome_rules import faults, merged_faults

PROGRAM = sys.argv[1]


def run(folder, *words, code=0):
    done = subprocess.run([PROGRAM, *words], cwd=folder, capture_output=True, text=True)
    assert done.returncode == code, f"{words}: {done.returncode}\n{done.stderr}"
    return done


def profiled_run(folder):
    """Two threads, two micro-batches, tiled sections, an evaluation between two steps."""
    run(folder, "model", "gpt2", "--layers", "2", "--heads", "2", "--embedding", "32", "--vocab", "256",
        "--context", "16", "-o", "gpt.onnx")
    (folder / "text.txt").write_text("the quick brown fox jumps over the lazy dog\n" * 100)
    run(folder, "profile", "gpt.onnx", "--data", "text:text.txt", "--seq", "16", "--batch", "4",
        "--steps", "7", "--profile", "steps=3:6", "--threads", "2", "--accumulate", "2",
        "--batch-tiles", "auto", "--eval-every", "4", "--run-dir", "run", "-q")


def check_query(folder):
    for by in ("call", "kernel", "op", "node", "layer", "phase", "pass"):
        facts = json.loads(run(folder, "query", "run", "--by", by, "--json").stdout)
        assert facts["steps"] == 4, facts["steps"]
        assert sum(row["ns"] for row in facts["rows"]) == facts["total_ns"], by
    rows = json.loads(run(folder, "query", "run", "phase==backward && op==*MatMul*", "--by", "call",
                          "--json").stdout)["rows"]
    assert rows and all(row["is_call"] and row["count"] == 2 for row in rows), rows
    table = run(folder, "query", "run", "--by", "op", "--csv").stdout.splitlines()
    assert table[0].startswith("name,ms,") and all(line.count(",") == 12 for line in table), table
    refused = run(folder, "query", "run", "ms>>1", code=2)
    assert "  at: ms>>1\n  at:    ^\n" in refused.stderr, refused.stderr
    run(folder, "train", "gpt.onnx", "--data", "text:text.txt", "--seq", "16", "--batch", "4", "--steps",
        "1", "--run-dir", "plain", "-q")
    assert "has no profile" in run(folder, "query", "plain", code=2).stderr
    check_threads_and_steps(folder, facts)
    return facts


def check_threads_and_steps(folder, facts):
    """Of each thread all of the step; steps with their spread; neither is of calls alone."""
    by_thread = json.loads(run(folder, "query", "run", "--by", "thread", "--json").stdout)
    assert len(by_thread["threads"]) == 2 and 0 < by_thread["balance"] <= 1, by_thread
    for uses in by_thread["threads"]:
        assert abs(sum(uses.values()) - 1) < 1e-9, uses
    idle = sum(row["ms"] for row in by_thread["idle"])
    shares = sum(uses["idle"] for uses in by_thread["threads"])
    assert abs(idle - shares * by_thread["step_ms"]) < 0.01 * by_thread["step_ms"], (idle, shares)
    path = by_thread["critical_path"]
    assert 0 < path["ms"] <= 1.2 * facts["step_ms"] and path["calls"] > 10, path
    by_step = json.loads(run(folder, "query", "run", "--by", "step", "--json").stdout)
    assert [row["step"] for row in by_step["steps"]] == [3, 4, 5, 6], by_step["steps"]
    assert abs(sum(row["ms"] for row in by_step["steps"]) - facts["total_ns"] / 1e6) < 1e-6
    assert by_step["least_ms"] <= by_step["median_ms"] <= by_step["most_ms"]
    assert len(by_step["deciles_ms"]) == 9 and all(row["causes"] for row in by_step["outliers"])
    assert "balance: threads work" in run(folder, "query", "run", "--by", "thread").stdout
    assert "90% within" in run(folder, "query", "run", "--by", "step").stdout
    assert "is of all that was profiled" in run(folder, "query", "run", "ms>1", "--by", "step", code=2).stderr


def file_of_events(spans):
    """events.cols as docs/run-format.md has it, of spans: begin, nanoseconds, id, kind, thread."""
    def checked(data):
        return data + struct.pack("<I", zlib.crc32(data))
    columns = b"".join(struct.pack(f"<{len(spans)}{form}", *column)
                       for form, column in zip("qQIHH", zip(*spans)))
    chunk = checked(b"CHNK" + struct.pack("<IQI", len(spans), 0, 0)) + columns
    first, last = min(span[0] for span in spans), max(span[0] + span[1] for span in spans)
    chunk = checked(chunk + struct.pack("<qqI", first, last, len(spans)))
    return checked(b"TSEVTS\r\n" + struct.pack("<IIqI", 1, 1, 0, 0)) + chunk


def events_file(step_ns):
    """Four steps, half of each in call 0."""
    spans = []
    for step in range(4):
        begin = step * 2 * step_ns
        spans += [(begin, step_ns // 2, 0, 7, 0), (begin, step_ns, step + 1, 1, 0)]
    return file_of_events(spans)


def check_compare(folder):
    """A run beside itself differs in nothing; one of slower steps is exit code 9."""
    facts = json.loads(run(folder, "compare", "run", "run", "--fail-if-slower", "0%", "--json").stdout)
    assert not facts["slower"] and facts["step"]["difference_ms"] == 0
    assert facts["rows"] and not any(row["significant"] for row in facts["rows"])
    for name, step_ns in (("a", 100_000), ("b", 110_000)):
        shutil.copytree(folder / "run", folder / name)
        (folder / name / "events.cols").write_bytes(events_file(step_ns))
    assert json.loads(run(folder, "query", "a", "--json").stdout)["total_ns"] == 400_000
    slower = run(folder, "compare", "a", "b", "--fail-if-slower", "5%", code=9).stdout
    assert "+10.0% *  (step)" in slower and slower.endswith("B is slower\n"), slower
    run(folder, "compare", "a", "b", "--fail-if-slower", "0.2")
    run(folder, "compare", "b", "a", "--fail-if-slower", "5%")
    assert "expected a share" in run(folder, "compare", "a", "b", "--fail-if-slower", "x", code=2).stderr


def check_several_runs(folder):
    """Runs of one command are one side; of others they are refused."""
    facts = json.loads(run(folder, "compare", "a,a", "b,b", "--json").stdout)
    assert facts["step"]["a"]["steps"] == 8 and facts["step"]["significant"], facts["step"]
    assert abs(facts["step"]["b"]["undisturbed_ms"] - 0.11) < 1e-9, facts["step"]
    by_op = json.loads(run(folder, "compare", "run,run", "run", "--by", "op", "--json").stdout)
    assert by_op["step"]["a"]["steps"] == 8 and by_op["step"]["b"]["steps"] == 4, by_op["step"]
    assert by_op["changed"] == [] and by_op["between"] >= 0.0125, by_op
    # An error is known where both sides have the row, and is never less than two runs of one program differ by.
    errors = [row["error"] for row in by_op["rows"] if row["a"]["undisturbed_ms"] > 0 < row["b"]["undisturbed_ms"]]
    assert errors and all(error >= 0.0125 for error in errors), by_op["rows"]
    refused = run(folder, "compare", "run,plain", "run", code=2).stderr
    assert "have not the same calls" in refused and "one command" in refused, refused
    assert "nowhere" in run(folder, "compare", "run,nowhere", "run", code=6).stderr


def check_windows(folder):
    """Steps that are profiled again and again: what is between them is in no number, and in no row."""
    words = ["profile", "gpt.onnx", "--data", "text:text.txt", "--seq", "16", "--batch", "4", "--threads", "2",
             "--steps", "43", "--eval-every", "12", "-q"]
    run(folder, *words, "--profile", "steps=+3:5,every=18", "--run-dir", "again")
    facts = json.loads(run(folder, "query", "again", "--json").stdout)
    by_step = json.loads(run(folder, "query", "again", "--by", "step", "--json").stdout)["steps"]
    assert [row["step"] for row in by_step] == [3, 4, 5, 21, 22, 23, 39, 40, 41], by_step
    assert abs(sum(row["ms"] for row in by_step) * 1e6 - facts["total_ns"]) < 1, facts["total_ns"]
    by_thread = json.loads(run(folder, "query", "again", "--by", "thread", "--json").stdout)
    for uses in by_thread["threads"]:
        assert abs(sum(uses.values()) - 1) < 1e-9 and 0 <= uses["unnamed"] < 0.5, uses
    idle = sum(row["ms"] for row in by_thread["idle"])
    shares = sum(uses["idle"] for uses in by_thread["threads"])
    assert abs(idle - shares * by_thread["step_ms"]) < 0.01 * by_thread["step_ms"], (idle, shares)
    assert 0 < by_thread["critical_path"]["ms"] <= 1.2 * facts["step_ms"], by_thread["critical_path"]
    for name, flags in (("chrome", ()), ("chrome", ("--as-device",))):
        run(folder, "export", "again", "--format", name, *flags, "-o", "again.json")
        text = (folder / "again.json").read_text()
        found = faults(text, as_device=bool(flags), windows=3)
        assert not found, "\n".join(found[:20])
        assert faults(text, as_device=bool(flags)), "steps that are left out are said"
    assert "evaluation" not in text, "between the windows"
    run(folder, "export", "again", "--format", "speedscope", "-o", "again.json")
    scope = json.loads((folder / "again.json").read_text())["profiles"][0]
    assert sum(scope["weights"]) == facts["total_ns"]
    run(folder, "report", "again")
    run(folder, *words, "--profile", "steps=3:5,every=18,repeat=2", "--run-dir", "twice")
    twice = json.loads(run(folder, "query", "twice", "--by", "step", "--json").stdout)["steps"]
    assert [row["step"] for row in twice] == [3, 4, 5, 21, 22, 23], twice
    for wrong in ("steps=3:5,every=2", "steps=3:5,every=", "steps=3:5,every=18,repeat=0", "steps=3:5,repeat=2",
                  "steps=3:5,every=18,repeat=2,x", "steps=3:5,", "steps=5:3,every=18", "steps=3:5,every=-9",
                  "steps=3:5,every=18,repeat=9223372036854775807"):
        refused = run(folder, *words, "--profile", wrong, "--run-dir", "refused", code=2).stderr
        assert f"--profile is '{wrong}'" in refused and "every=N[,repeat=K]" in refused, refused


def check_masked(folder):
    """FLOPs of rows whose label is a blank are not counted where they are not computed."""
    flops = {}
    for ignored in ("1", "-100"):  # the second character of the text's alphabet is the blank
        run(folder, "profile", "gpt.onnx", "--data", "text:text.txt", "--seq", "16", "--batch", "4", "--steps",
            "12", "--profile", "steps=3:12", "--loss", f"cross_entropy:ignore_index={ignored}",
            "--skip-ignored", "--run-dir", f"masked{ignored}", "-q")
        flops[ignored] = {row["name"]: (row["flops"], row["direct_flops"]) for row in json.loads(
            run(folder, "query", f"masked{ignored}", "op==CompactMatMul", "--by", "call",
                "--json").stdout)["rows"]}
    assert len(flops["1"]) == 3 and flops["1"].keys() == flops["-100"].keys(), flops
    shares = []
    for call, (executed, direct) in flops["1"].items():
        every, same = flops["-100"][call]
        assert direct == same, flops
        shares.append(executed / every)
    assert max(shares) - min(shares) < 1e-9, shares
    assert abs(shares[0] - 36 / 44) < 0.05, shares  # 8 blanks in a line of 44


def check_damage(folder):
    """Every truncation is read as far as it is whole; a damaged byte is one line of an error."""
    file = folder / "run/events.cols"
    whole = file.read_bytes()
    file.write_bytes(whole[:-1])  # the last chunk is another thread's, or of what came after a step
    assert "are skipped" in run(folder, "query", "run").stderr
    file.write_bytes(whole[:1000])
    assert "no whole step" in run(folder, "query", "run", code=2).stderr
    file.write_bytes(whole[:5000] + bytes([whole[5000] ^ 1]) + whole[5001:])
    error = run(folder, "query", "run", code=3).stderr
    assert error.startswith("error: ") and "is damaged" in error, error
    file.write_bytes(whole[:8] + b"\x09" + whole[9:])
    assert "its version is 9" in run(folder, "export", "run", "--format", "chrome", "-o", "x.json",
                                     code=3).stderr
    file.write_bytes(whole)


def broken(text):
    """Traces that break a rule each: the validator has to find them."""
    yield text.replace('"rank": 0', '"rank":0')
    yield text.replace('"schemaVersion": 1,\n', "", 1)
    yield text.replace('"cat": "cpu_op"', '"cat": "kernel"', 1)
    yield text.replace('"args": {"External id": 5', '"args": {"stream": 7, "External id": 5', 1)
    yield text.replace('"External id": 5}', '"External id": 4}').replace('"External id": 5,',
                                                                        '"External id": 4,')
    yield text.replace('"ProfilerStep#4"', '"ProfilerStep#9"')
    yield text.replace(', "bp": "e"', "", 1)
    yield text.replace('"cat": "fwdbwd", "name": "fwdbwd"', '"cat": "onnx_node", "name": "onnx_node"')
    yield re.sub(r'\{"ph": "[sf]"[^\n]*"cat": "onnx_node"[^\n]*\n', "", text)
    yield re.sub(r'("ph": "f", "id": 1, [^}]*"ts": )', r"\g<1>1", text, count=1)
    yield text.replace("\n],", ",\n],")
    yield text.replace('"name": "thread_name"', '"name": "thread_title"', 1)
    yield text.replace('"allocated": ', '"allocated": NaN, "x": ', 1)
    head, first, rest = text.partition('"name": "onnx::')
    at = rest.index('"dur": ') + 7
    yield head + first + rest[:at] + "1000000000.000" + rest[rest.index(",", at):]  # beyond its phase


def check_export(folder, facts):
    run(folder, "export", "run", "--format", "chrome", "-o", "trace.json")
    run(folder, "export", "run", "--format", "chrome", "-o", "trace.json.gz")
    text = (folder / "trace.json").read_text()
    assert gzip.decompress((folder / "trace.json.gz").read_bytes()).decode() == text
    found = faults(text)
    assert not found, "\n".join(found[:20])
    rows = json.loads(text)["traceEvents"]
    assert {row["ph"] for row in rows} == set("MXCsf"), {row["ph"] for row in rows}
    steps = [row for row in rows if row["name"].startswith("ProfilerStep#")]
    assert abs(sum(row["dur"] for row in steps) * 1000 - facts["total_ns"]) < 1, "steps"
    calls = [row for row in rows if "call" in row.get("args", {})]
    assert any(row["args"]["onnx_node"] and row["args"]["phase"] == "backward" for row in calls)
    assert any(row["ph"] == "X" and row["tid"] != steps[0]["tid"] for row in rows), "one thread"
    for number, wrong in enumerate(broken(text)):
        assert wrong != text and faults(wrong), f"the validator lets trace {number} pass"


def without_rank(text):
    """Arrows by numbers that other ranks have too."""
    return re.sub(r'("ph": "[sf]", "id": )(\d+)', lambda m: m[1] + str(int(m[2]) & 0xffffffff), text)


def check_ranks(folder):
    """Traces of two runs, each a rank of a world, keep every rule; also merged into one, and with their calls
    as a device's."""
    texts, devices = [], []
    for rank in (0, 1):
        run(folder, "profile", "gpt.onnx", "--data", "text:text.txt", "--seq", "16", "--batch", "4",
            "--steps", "5", "--profile", "steps=3:5", "--threads", "2", "--seed", str(rank + 1),
            "--run-dir", f"rank-{rank}", "-q")
        for name, flags in (("rank", ()), ("device", ("--as-device",))):
            run(folder, "export", f"rank-{rank}", "--format", "chrome", *flags, "--rank", str(rank), "--ranks",
                "2", "-o", f"{name}-{rank}.json")
        texts.append((folder / f"rank-{rank}.json").read_text())
        devices.append((folder / f"device-{rank}.json").read_text())
    found = merged_faults(texts) + merged_faults(devices, as_device=True)
    assert not found, "\n".join(found[:20])
    wrong = [texts[:1] * 2, texts[::-1], [texts[0], texts[1].replace('"world_size": 2', '"world_size": 3')],
             [texts[0], texts[1].replace('"pid": 2000', '"pid": 1000')], [texts[0], without_rank(texts[1])],
             [texts[0], texts[1].replace("ProfilerStep#", "ProfilerStep#1")]]
    for number, both in enumerate(wrong):
        assert merged_faults(both), f"the validator lets both traces {number} pass"
    first, second = devices
    one_device = re.sub('"(pid|device|id)": 1,', r'"\1": 0,', second)
    for number, other in enumerate([second.replace('"pid": 1,', '"pid": 0,'), one_device,
                                    without_rank(second)]):
        assert other != second and merged_faults([first, other], as_device=True), \
            f"the validator lets both traces of devices {number} pass"


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        profiled_run(folder)
        facts = check_query(folder)
        check_export(folder, facts)
        check_compare(folder)
        check_several_runs(folder)
        check_windows(folder)
        check_masked(folder)
        check_damage(folder)
        check_ranks(folder)


if __name__ == "__main__":
    main()
