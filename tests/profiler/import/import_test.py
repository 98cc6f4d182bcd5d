#!/usr/bin/python3
"""Profiles of PyTorch and ONNX Runtime become runs that query and compare take; inputs that are no
such profile are refused with one error each.

Usage: import_test.py TRAINSCOPE
"""
import collections
import gzip
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAM = sys.argv[1]
DATA = Path(__file__).resolve().parents[2] / "data"


def run(folder, *words, code=0):
    done = subprocess.run([PROGRAM, *map(str, words)], cwd=folder, capture_output=True, text=True,
                          errors="replace", timeout=120)
    assert done.returncode == code, f"{words}: {done.returncode}\n{done.stderr}{done.stdout}"
    return done


def facts_of(folder, *words):
    return json.loads(run(folder, *words, "--json").stdout)


def trace(name):
    return gzip.decompress((DATA / "traces" / f"{name}.json.gz").read_bytes())


def model(name):
    return DATA / "models" / name / "model.onnx"


def check_pytorch(folder):
    """Sums are those of the trace itself; all but what stands between ops is attributed."""
    facts = facts_of(folder, "import", DATA / "traces/pytorch-gpt.json.gz", "-o", "pytorch")
    rows = json.loads(trace("pytorch-gpt"))["traceEvents"]
    steps = [row for row in rows if row["name"].startswith("ProfilerStep#")]
    assert facts["steps"] == [2, 3] and facts["tool"] == "PyTorch"
    assert abs(facts["step_ns"] - 1000 * sum(row["dur"] for row in steps)) <= 2
    assert facts["attributed"] >= 0.95, facts["attributed"]
    assert abs(facts["op_ns"] - facts["attributed_ns"] -
               sum(row["ns"] for row in facts["not_attributed"])) == 0
    by = {kind: facts_of(folder, "query", "pytorch", "--by", kind) for kind in ("op", "node", "kernel", "phase")}
    for table in by.values():
        assert table["total_ns"] == facts["step_ns"] == sum(row["ns"] for row in table["rows"])
        assert sum(row["ns"] for row in table["rows"] if row["is_call"]) == facts["attributed_ns"]
    ops = {row["name"]: row for row in by["op"]["rows"]}
    wanted = sum(row["dur"] for row in rows if row["name"] == "aten::linear")
    assert abs(ops["Gemm"]["ns"] / 1000 - wanted) < 0.1, (ops["Gemm"]["ns"], wanted)
    assert {"Attention", "AttentionGrad", "LayerNormalization", "GeluGrad", "AdamWStep"} <= set(ops)
    nodes = {row["name"]: row for row in by["node"]["rows"]}
    assert nodes["aten::gelu#0"]["count"] == 2, "the gradient is not counted for its forward op"
    assert {row["name"] for row in by["phase"]["rows"] if row["is_call"]} == {"forward", "backward", "update"}


def check_ort(folder):
    """Names of nodes are those of the model, whatever ORT's optimizers put around them."""
    shares = {"inference-gpt2": 0.95, "training-lenet": 0.95, "training-mlp": 0.95}
    for name, share in shares.items():
        base = name.split("-")[1]
        file = f"{name}.json"
        (folder / file).write_bytes(trace(f"ort-{name}"))
        facts = facts_of(folder, "import", file, "-o", f"ort-{base}", "--model", model(base))
        rows = json.loads(trace(f"ort-{name}"))
        kernels = sum(row["dur"] for row in rows if row["name"].endswith("_kernel_time"))
        runs = [row["dur"] for row in rows if row["name"] == "model_run"]
        assert facts["op_ns"] == 1000 * kernels and facts["step_ns"] == 1000 * sum(runs)
        assert facts["attributed"] >= share, (name, facts["attributed"], facts["not_attributed"])
        table = facts_of(folder, "query", f"ort-{base}", "--by", "node")
        assert table["total_ns"] == facts["step_ns"] and table["steps"] == len(runs)
        named = {row["name"] for row in table["rows"]}
        training = {"(loss)", "(gradient accumulation)"} if name.startswith("training") else set()
        assert training == {row for row in named if row in ("(loss)", "(gradient accumulation)")}, named
        kernels_of = {"(loss)": ("SCE", "SCE_Grad/"), "(gradient accumulation)": ("GradientAccumulator",)}
        for part in training:
            wanted = sum(row["dur"] for row in rows if row["name"].endswith("_kernel_time")
                         and row["name"].startswith(kernels_of[part]))
            ns = sum(row["ns"] for row in table["rows"] if row["name"] == part)
            assert ns == 1000 * wanted, (part, ns, wanted)
        plain = facts_of(folder, "import", file, "-o", f"plain-{base}")
        assert plain["attributed"] == 1.0, "every node has an op"
    gemm = [row for row in facts_of(folder, "query", "ort-mlp", "node==/2/Gemm", "--by", "phase")["rows"]]
    assert {row["name"] for row in gemm} == {"forward", "backward"}, gemm


def check_compare(folder):
    """Ours and ORT's of one model stand in one table, row by row."""
    for base in ("mlp", "lenet"):
        run(folder, "profile", model(base), "--data", "synthetic", "--steps", "6", "--profile",
            "steps=3:6", "--run-dir", f"ours-{base}", "-q")
        rows = {row["name"]: row for row in
                facts_of(folder, "compare", f"ort-{base}", f"ours-{base}", "--by", "node")["rows"]}
        nodes = {"mlp": ["/0/Gemm", "/1/Relu", "/2/Gemm", "/3/Relu", "/4/Gemm", "(loss)"],
                 "lenet": ["/c1/Conv", "/c2/Conv", "/f1/Gemm", "/f2/Gemm", "/f3/Gemm", "(loss)"]}[base]
        for node in nodes:
            assert rows[node]["a"]["median_ms"] > 0 and rows[node]["b"]["median_ms"] > 0, node
        run(folder, "compare", f"ort-{base}", f"ours-{base}", "--by", "op")


def check_compare_fused(folder):
    """Of a GPT each fuses other nodes: what one computes in one call is one row of both."""
    run(folder, "profile", model("gpt2"), "--data", "synthetic", "--steps", "6", "--profile", "steps=3:6",
        "--run-dir", "ours-gpt2", "-q")
    rows = [row for row in facts_of(folder, "compare", "ort-gpt2", "ours-gpt2", "--by", "node")["rows"]
            if row["is_call"]]
    rest = {row["name"] for row in rows if row["a"]["median_ms"] > 0 and row["b"]["median_ms"] == 0}
    # Fusions with new names, and views that only ORT has a call for.
    assert rest == {"FastGelu", "SkipLayerNormalization", "/h.0/attn/Reshape_3", "/h.1/attn/Reshape_3"}, rest
    theirs = [row for row in facts_of(folder, "query", "ort-gpt2", "--by", "node")["rows"] if row["is_call"]]
    beside = sum(row["ns"] for row in theirs if row["name"] not in rest)
    assert beside >= 0.95 * sum(row["ns"] for row in theirs), (beside, rest)
    names = {row["name"] for row in rows}
    assert {"/h.0/attn/Split", "/h.1/attn/Split"} <= names
    assert not {"/h.0/attn/Softmax", "/h.1/attn/MatMul_1"} & names, sorted(names)


def check_round_trip(folder):
    """Our own trace comes back as it was, by node and phase."""
    run(folder, "export", "ours-mlp", "--format", "chrome", "-o", "ours.json.gz")
    run(folder, "import", "ours.json.gz", "-o", "again")
    for kind in ("node", "op", "phase", "kernel"):
        before = facts_of(folder, "query", "ours-mlp", "--by", kind)
        after = facts_of(folder, "query", "again", "--by", kind)
        assert before["total_ns"] == after["total_ns"]
        ours, theirs = ({row["name"]: row["ns"] for row in table["rows"] if row["is_call"]}
                        for table in (before, after))
        assert ours == theirs, kind


def check_threads_and_device(folder):
    """The engine's thread has the driver's gap; kernels are tied to the op that launched them."""
    def row(name, cat, begin, dur, tid=1, **args):
        return {"ph": "X", "cat": cat, "name": name, "pid": 0 if cat == "kernel" else 9, "tid": tid,
                "ts": begin, "dur": dur, "args": args}
    key = "Sequence number"
    rows = [row("ProfilerStep#7", "user_annotation", 0, 100),
            row("aten::linear", "cpu_op", 10, 20, **{key: 4, "External id": 1}),
            row("aten::addmm", "cpu_op", 12, 15, **{key: 5, "External id": 2}),
            row("mine::odd", "cpu_op", 31, 4, **{"External id": 3}),
            row("autograd::engine::evaluate_function: AddmmBackward0", "cpu_op", 40, 30, 2,
                **{key: 5, "Fwd thread id": 1, "External id": 4}),
            row("gemm", "kernel", 20, 50, 7, **{"External id": 2, "stream": 7, "correlation": 1}),
            row("gemm_grad", "kernel", 60, 45, 7, **{"External id": 4, "stream": 7, "correlation": 2})]
    (folder / "two.json").write_text(json.dumps({"schemaVersion": 1, "traceEvents": rows}))
    facts = facts_of(folder, "import", "two.json", "-o", "two")
    assert facts["not_attributed"] == [{"name": "mine::odd", "ns": 4000}], facts
    table = {r["name"]: r for r in facts_of(folder, "query", "two", "--by", "node")["rows"]}
    # The step lasts until gemm_grad has ended, at 105 us.
    assert table["aten::linear#0"]["ns"] == 50000 and table["nothing recorded"]["ns"] == 55000, table
    assert facts["step_ns"] == 105000 and facts["device_ns"] == facts["device_attributed_ns"] == 85000, facts
    kernels = {r["name"]: r for r in facts_of(folder, "query", "two", "--by", "kernel")["rows"]}
    assert kernels["gemm"]["busy_ms"] == 0.05 and kernels["gemm_grad"]["busy_ms"] == 0.035, kernels


def device_rows(rows):
    return [row for row in rows if row.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]


def check_gpu(folder):
    """Kernels of a GPU are tied to the ops that launched them, and have their FLOPs."""
    facts = facts_of(folder, "import", DATA / "traces/pytorch-gpu-waiting.json.gz", "-o", "gpu")
    rows = json.loads(trace("pytorch-gpu-waiting"))["traceEvents"]
    work = device_rows(rows)
    assert facts["steps"] == [2, 3, 4] and len(work) == 456
    assert abs(facts["device_ns"] - 1000 * sum(row["dur"] for row in work)) <= len(work)
    assert facts["device_attributed_ns"] == facts["device_ns"], "an op launched each kernel"
    table = {row["name"]: row for row in facts_of(folder, "query", "gpu", "--by", "kernel")["rows"]}
    for name in {row["name"] for row in work}:
        ms = sum(row["dur"] for row in work if row["name"] == name) / 1000 / 3
        assert abs(table[name]["busy_ms"] - ms) < 1e-5, (name, table[name], ms)
    flops = 0
    for row in rows:
        shapes = row.get("args", {}).get("Input Dims", [])
        if row["name"] in ("aten::mm", "aten::addmm"):
            (m, k), (_, n) = shapes[:2] if row["name"] == "aten::mm" else shapes[1:3]
            flops += 2 * m * k * n
    kernels = {row["name"] for row in work if row["cat"] == "kernel"}
    of_kernels = sum(table[name]["flops"] for name in kernels)
    assert abs(of_kernels - flops / 3) < 1 and flops > 0, (of_kernels, flops / 3)
    assert sum(row["flops"] for row in table.values()) == of_kernels, "FLOPs are counted twice"


def check_gpu_graph(folder):
    """Replays of a CUDA graph: kernels count for the step that launched them, however late they are."""
    facts = facts_of(folder, "import", DATA / "traces/pytorch-gpu-graph.json.gz", "-o", "graph")
    rows = json.loads(trace("pytorch-gpu-graph"))["traceEvents"]
    launches = sorted((row["ts"], row["args"]["correlation"]) for row in rows if row["name"] == "cudaGraphLaunch")
    replays = [[row for row in device_rows(rows) if row["args"]["correlation"] == launch] for _, launch in launches]
    assert [len(replay) for replay in replays] == [152, 152, 152]
    dur = sum(row["dur"] for replay in replays for row in replay)
    assert facts["steps"] == [2, 3, 4] and abs(facts["device_ns"] - 1000 * dur) <= 456, facts
    assert facts["op_ns"] == 0 and facts["device_attributed_ns"] == 0, "no op of PyTorch launched them"
    ends = [max(row["ts"] + row["dur"] for row in replay) for replay in replays]
    begin = min(row["ts"] for row in rows
                if row["name"].startswith("ProfilerStep#") and row["cat"] == "user_annotation")
    assert abs(facts["step_ns"] - 1000 * (ends[-1] - begin)) <= 4, "steps end with their kernels, one after another"
    table = facts_of(folder, "query", "graph", "--by", "kernel")
    calls = [row for row in table["rows"] if row["is_call"]]
    assert table["steps"] == 3 and sum(row["count"] for row in calls) == 152, calls
    assert abs(sum(row["busy_ms"] for row in calls) - dur / 3000) < 1e-3


def spoiled(rng):
    """Name, bytes and what the error has to say, of inputs that are no profile."""
    kineto = trace("pytorch-gpt")
    ort = trace("ort-training-mlp")
    packed = gzip.compress(ort, mtime=0)
    for i in range(12):
        at = rng.randrange(1, len(ort) - 4)
        yield f"ort cut at {at}", ort[:at], "ends in the middle"
    for i in range(6):
        at = rng.randrange(1, len(kineto) - 4)
        yield f"kineto cut at {at}", kineto[:at], "ends in the middle"
    for i in range(8):
        at = rng.randrange(11, len(packed) - 9)
        yield f"gzip cut at {at}", packed[:at], "ends in the middle"
    for i in range(6):
        at = rng.randrange(12, len(packed) - 8)
        yield f"gzip damaged at {at}", packed[:at] + bytes([packed[at] ^ 0x55]) + packed[at + 1:], ""
    yield "empty", b"", "ends in the middle"
    yield "blanks", b" \n\t ", "ends in the middle"
    yield "a number", b"42", "begins with [ or {"
    yield "a model", model("mlp").read_bytes(), "begins with [ or {"
    yield "not text", bytes(range(128, 256)) * 8, "begins with [ or {"
    yield "empty array", b"[]", "no op of PyTorch"
    yield "empty object", b"{}", "no op of PyTorch"
    yield "no events", b'{"traceEvents": []}', "no op of PyTorch"
    yield "another tool", b'[{"ph": "X", "cat": "v8", "name": "x", "ts": 1, "dur": 2}]', "no op of PyTorch"
    yield "events twice", b'{"traceEvents": [], "traceEvents": []}', "a second time"
    yield "two sessions", trace("ort-training-mlp-two-sessions-one-file"), "two sessions"
    yield "text behind", ort + b"[]", "text behind the end"
    yield "deep arrays", b'{"traceEvents": [' + b"[" * 100_000, "nested deeper"
    yield "deep objects", b'{"x": ' + b'{"a":' * 100_000, "nested deeper"
    yield "long string", b'[{"ph": "' + b"x" * (2 << 20) + b'"}]', "longer than 1 MiB"
    yield "many members", ("{" + ",".join(f'"k{i}": 1' for i in range(2000)) + "}").encode(), "more than 1000"
    yield "numbers for events", b"[1, 2]", "expected an object"
    yield "no comma", b'[{"ph": "M"} {"ph": "M"}]', "expected , or ]"
    yield "no colon", b'{"traceEvents" []}', "expected :"
    yield "no key", b'{traceEvents: []}', "expected a key"
    yield "brackets mixed", b'[{"a": [1}]]', "the value at byte"
    yield "not a number", b'[{"a": 1.2.3}]', "the value at byte"
    yield "a key twice", b'[{"a": 1, "a": 2}]', "duplicate key"
    yield "bad UTF-8", b'[{"a": "\xff\xfe"}]', "the value at byte"
    yield "future schema", b'{"schemaVersion": 2, "traceEvents": [' + op_row() + b"]}", "schemaVersion 2"
    for key, value in (("ts", '"soon"'), ("ts", "1e300"), ("ts", "null"), ("dur", "-5"), ("dur", "1e17"),
                       ("ts", "{}")):
        yield f"{key} is {value}", b"[" + op_row(**{key: value}) + b"]", key
    yield "no duration", b'[{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 1}]', "'dur' is missing"
    step = b'{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#%d", "pid": 1, "tid": 1, "ts": %d, "dur": 9}'
    yield "steps overlap", b"[" + step % (1, 0) + b"," + step % (2, 5) + b"," + op_row() + b"]", "overlap"
    yield "unknown ops alone", b"[" + op_row(name='"mine::op"') + b"]", "no ops in its steps"
    yield "bomb of blanks", gzip.compress(b"[" + b" " * (200 << 20)), "expand beyond"
    yield "bomb of zeros", gzip.compress(bytes(100 << 20)), ""
    yield "bomb of events", gzip.compress(b"[" + b"{}," * (60 << 20)), "expand beyond"
    yield "bomb in a bomb", gzip.compress(gzip.compress(bytes(50 << 20))), "begins with [ or {"


def op_row(**changes):
    row = {"ph": '"X"', "cat": '"cpu_op"', "name": '"aten::mm"', "pid": "1", "tid": "1", "ts": "1",
           "dur": "2", **changes}
    return ("{" + ", ".join(f'"{key}": {value}' for key, value in row.items()) + "}").encode()


def check_refusals(folder):
    kinds = collections.Counter()
    for number, (name, data, words) in enumerate(spoiled(random.Random(20))):
        file = folder / f"bad-{number}.json"
        file.write_bytes(data)
        error = run(folder, "import", file.name, "-o", f"bad-{number}", code=3).stderr
        lines = error.splitlines()
        assert lines[0].startswith("error: ") and words in error, (name, error)
        assert sum(line.startswith("error: ") for line in lines) == 1 and len(lines) <= 4, (name, error)
        assert f"'{file.name}'" in error, (name, error)
        assert not (folder / f"bad-{number}").exists(), f"{name} left a run"
        file.unlink()
        kinds[name.split(" ")[0]] += 1
    assert sum(kinds.values()) >= 60, sum(kinds.values())
    assert run(folder, "import", "nowhere.json", "-o", "x", code=6).stderr.startswith("error: ")
    assert "needs -o" in run(folder, "import", "ours.json.gz", code=2).stderr
    run(folder, "import", "ours.json.gz", "-o", "again", code=2)


def check_other_verbs(folder):
    """An imported run has no model, weights or metrics: verbs that want them say so."""
    for words in (("export", "again", "-o", "x.onnx"), ("eval", "again"), ("inspect", "again", "--stage", "loss"),
                  ("train", "--resume", "again")):
        done = subprocess.run([PROGRAM, *words], cwd=folder, capture_output=True, text=True)
        assert done.returncode in (2, 3, 6) and done.stderr.startswith("error: "), (words, done)
    run(folder, "export", "again", "--format", "speedscope", "-o", "x.json")
    run(folder, "export", "again", "--format", "chrome", "-o", "x.json")
    run(folder, "inspect", "again")
    assert "knows nothing of memory" in run(folder, "export", "again", "--format", "memory_viz", "-o", "x",
                                            code=2).stderr


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        check_pytorch(folder)
        check_ort(folder)
        check_compare(folder)
        check_compare_fused(folder)
        check_round_trip(folder)
        check_threads_and_device(folder)
        check_gpu(folder)
        check_gpu_graph(folder)
        check_refusals(folder)
        check_other_verbs(folder)


if __name__ == "__main__":
    main()
