#!/usr/bin/python3
"""The CUDA back end as it ships trains on a simulated GPU: training_test.py BUILD_FOLDER CASE

The programs in BUILD_FOLDER/simulated/bin load it with a simulated CUDA runtime below it. CASE is a function of
this file, or empty for all of them. Exit code 77: the back end is not built.
"""
import csv
import json
import math
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from simulated_gpu import MODELS, ZOO, call, expect, finished, graph_of, program, run_cases, tensors_of

NAMES = ("gpt2", "bert", "resnet18", "zoo/lstm")
VERIFIED = ("gpt2", "bert", "resnet18", "lstm", "gru", "rnn")
STEPS, FEW_STEPS = 20, 4
SHRINKING = ("gpt2", "bert")  # others need most memory where nothing waits for the backward phase
# Of the loss of a step, against that of the CPU's own kernels: in f32, and where activations have two bytes.
FURTHEST = 2e-4
FURTHEST_OF = {"bf16": 2e-3, "fp16": 5e-4, "tf32": 5e-4}
# What the simulated runtime says of the driver's bytes, and of those for kernels' code.
SIMULATED_BYTES = (300 << 20, 2 << 20)
# Of a gradient in f32, against the CPU's: a share of its L2 norm, or of that of all gradients together.
GRADIENT_LIMIT, VANISHING = 1e-5, 1e-6
# By the first loss scale and this weight of the loss the gradient of 80 labels' logits is 2^26 / 80 each: more
# than fp16 holds.
FIRST_SCALE, HEAVY, HEAVY_STEPS = 2**16, 1024, 10
# Who computes these ops, by model and precision. BERT's heads have 12 elements, which cuDNN refuses.
ATTENTION = ("Attention", "AttentionGrad")
CONVOLUTIONS = ("Conv", "ConvGradInput", "ConvGradWeight")
CHOSEN = {("gpt2", "bf16"): (ATTENTION, ".cudnn"), ("gpt2", "fp16"): (ATTENTION, ".cudnn"),
          ("llama", "bf16"): (ATTENTION, ".cudnn"), ("bert", "bf16"): (ATTENTION, ".tensor"),
          ("resnet18", "f32"): (CONVOLUTIONS, ".cudnn"), ("resnet18", "bf16"): (CONVOLUTIONS, ".cudnn"),
          ("resnet18", "fp16"): (CONVOLUTIONS, ".cudnn")}
# What is said of a function that fails: whose it is, what it was to do and on which stream, and what CUDA says.
OF_A_NODE = ("could not compute this: ", "at: node '")
REFUSALS = {"cudaLaunchKernel": (*OF_A_NODE, "CUDA does not launch ", ") on the compute stream: simulated error 701"),
            "cublasLtMatmul": (*OF_A_NODE, "cublasLtMatmul of ", " on the compute stream: status 13 ("),
            "cudaMemcpyAsync": ("the device failed: cudaMemcpyAsync of ", " bytes on the compute stream: error 999 ("),
            "cudaGraphLaunch": ("the device failed: cudaGraphLaunch on the compute stream: error 999 (",)}
RUN_FAILED, USAGE, NO_DEVICE = 1, 2, 4  # docs/exit-codes.md
MATMULS = ("MatMul", "Gemm", "BatchMatMul", "MatMulAdd", "MultiMatMul")


class Training:
    """A run of `trainscope train`, with what the simulated runtime counted."""

    def __init__(self, build, scratch, model, *words, device="cuda", steps=STEPS, before=(), **environment):
        folder = Path(tempfile.mkdtemp(dir=scratch))
        self.run = folder / "run"
        command = [program(build), *before, "train", graph_of(model), "--data", "synthetic",
                   "--seed", 3, "--device", device, "--steps", steps, "--validation", "none",
                   "--run-dir", self.run, *words, "--json"]
        if not before:  # several processes would write one file
            environment["TRAINSCOPE_SIMULATED_REPORT"] = folder / "report"
        self.result = json.loads(call(command, **environment).stdout)
        with open(self.run / "metrics.csv", encoding="utf-8") as file:
            self.losses = [row["loss"] for row in csv.DictReader(file) if row["kind"] == "step"]
        report = folder / "report"
        self.counts = json.loads(report.read_text()) if report.is_file() else {}

    def plan(self):
        return json.loads((self.run / "plan.json").read_text(encoding="utf-8"))


def close(what, cuda, cpu, steps, furthest=FURTHEST):
    """The losses of the CPU, each no further from it, in the bytes that were predicted."""
    apart = max(abs(float(a) - float(b)) for a, b in zip(cuda.losses, cpu.losses))
    expect(f"{what}: losses", len(cuda.losses) == len(cpu.losses) == steps and apart <= furthest, f"{apart:.2g}")
    expect(f"{what}: bytes", cuda.result["predicted_bytes"] == cuda.result["used_bytes"])
    memory = cuda.result["device_memory"]
    expect(f"{what}: memory apart", memory["allocated_bytes"] >= cuda.result["used_bytes"] and
           (memory["driver_bytes"], memory["library_bytes"]) == SIMULATED_BYTES and
           "device_memory" not in cpu.result, str(memory))


def verified(build, _):
    """PyTorch's numbers, within the limits that the CPU's kernels have."""
    for name in VERIFIED:
        result = json.loads(call([program(build), "verify", MODELS / name, "--device", "cuda", "--json"]).stdout)
        rows = [row for reference in result["references"] for row in reference["rows"]]
        expect(f"{name}: verify", len(rows) > 0 and all(row["ok"] for row in rows), f"{len(rows)} rows")


def trained(build, scratch):
    """Twenty steps: losses of the CPU, the bytes that were predicted, and no wait within a step."""
    for name in NAMES:
        cuda = Training(build, scratch, name)
        cpu = Training(build, scratch, name, device="cpu")
        close(name, cuda, cpu, STEPS)
        expect(f"{name}: graphs", cuda.counts["graph_launches"] > STEPS, str(cuda.counts))


def ordered(build, scratch):
    """Whatever order CUDA allows, and whether a step is replayed or queued call by call: the same bits."""
    for name in NAMES:
        first = Training(build, scratch, name, steps=4)
        for seed in (1, 2, 3):
            other = Training(build, scratch, name, steps=4, TRAINSCOPE_SIMULATED_SEED=seed)
            expect(f"{name}: seed {seed}", first.losses == other.losses)
        eager = Training(build, scratch, name, steps=4, CUDA_LAUNCH_BLOCKING=1)
        expect(f"{name}: without graphs", first.losses == eager.losses and eager.counts["graphs"] == 0)


def waits(build, scratch):
    """The host waits for its own copies alone: a step's inputs, and the loss. Nothing is allocated."""
    for name in NAMES:
        few, many = (Training(build, scratch, name, steps=steps).counts for steps in (4, 12))
        waits_a_step, copies_a_step = ((many[what] - few[what]) / 8 for what in ("host_waits", "copies"))
        expect(f"{name}: waits", waits_a_step <= copies_a_step + 1 <= 8, f"{waits_a_step} a step")
        expect(f"{name}: allocations", many["allocations"] == few["allocations"])


def calls_of(build, model, precision, **environment):
    """The step's calls, as they are planned."""
    command = [program(build), "inspect", MODELS / model / "model.onnx", "--calls", "--device", "cuda",
               "--precision", precision, "--json"]
    return json.loads(call(command, **environment).stdout)["calls"]


def chosen(build, _):
    """Attention of two bytes and convolutions are cuDNN's, own kernels' where it has no engine and where it is off."""
    if not (build / "simulated/lib/libcudnn.so.9").is_file():
        print("skipped: this build has no cuDNN")
        return
    for (name, precision), (ops, ending) in CHOSEN.items():
        calls = [each for each in calls_of(build, name, precision) if each["op"] in ops]
        kernels = sorted({each["kernel"] for each in calls})
        expect(f"{name} {precision}: kernels", {each["op"] for each in calls} == set(ops) and
               all(kernel.endswith(ending) for kernel in kernels), ", ".join(kernels))
        if ending != ".cudnn":
            reasons = {refusal["reason"] for each in calls for refusal in each["refused"]}
            expect(f"{name} {precision}: why not cuDNN", any("cuDNN has no engine" in why for why in reasons),
                   "; ".join(sorted(reasons)))
        without = calls_of(build, name, precision, TRAINSCOPE_CUDNN="off")
        expect(f"{name} {precision}: without it", not any("cudnn" in each["kernel"] for each in without))


def low_precision(build, scratch):
    """Two bytes an activation: the CPU's losses, the bytes that were predicted, the same bits each time."""
    for name, precision in CHOSEN:
        if precision == "f32":
            continue
        words = ("--precision", precision)
        cuda = Training(build, scratch, name, *words, steps=FEW_STEPS)
        cpu = Training(build, scratch, name, *words, device="cpu", steps=FEW_STEPS)
        close(f"{name} {precision}", cuda, cpu, FEW_STEPS, FURTHEST_OF[precision])
        other = Training(build, scratch, name, *words, steps=FEW_STEPS, TRAINSCOPE_SIMULATED_SEED=1)
        expect(f"{name} {precision}: another order", cuda.losses == other.losses)
        eager = Training(build, scratch, name, *words, steps=FEW_STEPS, CUDA_LAUNCH_BLOCKING=1)
        expect(f"{name} {precision}: without graphs", cuda.losses == eager.losses and eager.counts["graphs"] == 0)


def tf32(build, scratch):
    """Matmuls of f32 in TF32 where --precision asks for it: by the limits of such factors, and beyond f32's."""
    for name in ("gpt2", "bert", "llama", "mlp"):
        result = json.loads(call([program(build), "verify", MODELS / name, "--device", "cuda", "--precision", "tf32",
                                  "--json"]).stdout)
        rows = {(row["what"], row["name"]): row for reference in result["references"] for row in reference["rows"]}
        expect(f"{name}: verify", len(rows) > 2 and all(row["ok"] for row in rows.values()), f"{len(rows)} rows")
        exact = json.loads((MODELS / name / "meta.json").read_text(encoding="utf-8"))["noise"]["grad_all_rel_l2"]
        error = rows["grads", "all"]["error"]
        expect(f"{name}: factors are rounded", error > 64 * exact, f"{error:.2g}, in f32 {exact:.2g}")
    for name in ("gpt2", "bert"):
        used = {each["kernel"] for each in calls_of(build, name, "tf32") if each["op"] in MATMULS}
        expect(f"{name}: kernels", used and all(kernel.endswith(".tf32") for kernel in used), ", ".join(used))
        expect(f"{name}: by default none", not any(each["kernel"].endswith(".tf32")
                                                   for each in calls_of(build, name, "f32")))
        words = ("--precision", "tf32")
        run = Training(build, scratch, name, *words, steps=FEW_STEPS)
        cpu = Training(build, scratch, name, device="cpu", steps=FEW_STEPS)
        close(name, run, cpu, FEW_STEPS, FURTHEST_OF["tf32"])
        other = Training(build, scratch, name, *words, steps=FEW_STEPS, TRAINSCOPE_SIMULATED_SEED=1)
        expect(f"{name}: another order", run.losses == other.losses)
        settings = json.loads((run.run / f"checkpoints/step-{FEW_STEPS:08}/manifest.json").read_text())["settings"]
        expect(f"{name}: the run says so", settings["precision"] == "tf32", str(settings.get("precision")))
        for between, code in (((), 0), (("--between", "stages"), 2), (("--between", "precisions"), 0)):
            done = finished([program(build), "bisect", run.run, *between])
            expect(f"{name}: bisect {between}", done.returncode == code, done.stderr)
        resume = [program(build), "train", graph_of(name), "--data", "synthetic", "--device", "cuda", "--validation",
                  "none", "--steps", STEPS, "--resume", run.run]
        done = finished([*resume, "--seed", 3, "--precision", "f32"])
        expect(f"{name}: not resumed in f32", done.returncode == USAGE and 'precision was "tf32"' in done.stderr,
               done.stderr[-300:])
    done = finished([program(build), "inspect", graph_of("gpt2"), "--calls", "--precision", "tf32"])
    expect("the CPU refuses", done.returncode == USAGE and "cpu has no matmuls in TF32" in done.stderr, done.stderr)


def taken_in(file):
    """Which of the simulated library's algorithms a file of choices has, by number, as a set; and its lines."""
    first, *lines = file.read_text(encoding="utf-8").splitlines()
    expect("the file says what it is", "choices" in first, first)
    return {int(line.rsplit("\t", 1)[1][32:48], 16) for line in lines}, lines


def trained_bytes(training):
    return Path(training.result["model"]).read_bytes()


def timed(build, scratch):
    """The fastest of cuBLASLt's offers where a file is named for it: chosen once, and found there from then on."""
    name, scratch = "gpt2", Path(scratch)

    def training(fastest, file, *words, steps=FEW_STEPS):
        return Training(build, scratch, name, *words, steps=steps, TRAINSCOPE_MATMUL_CHOICES=file,
                        TRAINSCOPE_SIMULATED_FASTEST=fastest)
    plain = Training(build, scratch, name, steps=FEW_STEPS)
    cpu = Training(build, scratch, name, device="cpu", steps=FEW_STEPS)
    first_offers = training(0, scratch / "zero")
    expect("the first offer is the fastest", taken_in(scratch / "zero")[0] == {0})
    expect("the first offer: the bits without a file", trained_bytes(first_offers) == trained_bytes(plain))
    run = training(2, scratch / "two")
    numbers, lines = taken_in(scratch / "two")
    expect("the third offer is the fastest", numbers == {2} and len(lines) > 4, f"{numbers} of {len(lines)}")
    expect("another algorithm has other bits", trained_bytes(run) != trained_bytes(plain))
    close("by time", run, cpu, FEW_STEPS)
    again = training(0, scratch / "two")
    expect("what was chosen stays", trained_bytes(again) == trained_bytes(run) and taken_in(scratch / "two")[1] == lines)
    expect("no allocation in a step", again.counts["allocations"] ==
           training(0, scratch / "two", steps=2 * FEW_STEPS).counts["allocations"])
    expect("TF32 has choices of its own", training(1, scratch / "two", "--precision", "tf32").losses != run.losses
           and taken_in(scratch / "two")[0] == {1, 2})
    # What the library does not offer is not run.
    whole = (scratch / "two").read_text(encoding="utf-8")
    first_line = whole.splitlines()[0]
    foreign = [line.rsplit("\t", 1)[0] + "\t" + "f" * 16 * 8 for line in lines]
    (scratch / "foreign").write_text("\n".join([first_line, *foreign, ""]), encoding="utf-8")
    replaced = training(2, scratch / "foreign")
    expect("others are timed anew", replaced.losses == run.losses and taken_in(scratch / "foreign")[1] == lines)
    for what, text in (("damaged", whole[:-5]), ("no such file", "step,loss\n")):
        (scratch / "bad").write_text(text, encoding="utf-8")
        done = finished([program(build), "inspect", graph_of(name), "--calls", "--device", "cuda"],
                        TRAINSCOPE_MATMUL_CHOICES=scratch / "bad")
        expect(f"{what}: is told", done.returncode == NO_DEVICE and f"'{scratch / 'bad'}' are {what}" in done.stderr,
               f"{done.returncode} {done.stderr[-400:]}")
        expect(f"{what}: stays", (scratch / "bad").read_text(encoding="utf-8") == text)


def refused(build, scratch):
    """What CUDA or a library refuses ends the run: the error names the call, the stream, and the node if it has one."""
    for function, pieces in REFUSALS.items():
        for blocking in (0, 1):
            if blocking and function == "cudaGraphLaunch":
                continue  # there are no graphs then
            run = Path(tempfile.mkdtemp(dir=scratch)) / "run"
            done = finished([program(build), "train", MODELS / "gpt2/model.onnx", "--data", "synthetic", "--steps", 2,
                             "--device", "cuda", "--validation", "none", "--run-dir", run],
                            CUDA_LAUNCH_BLOCKING=blocking, TRAINSCOPE_SIMULATED_REFUSE=function)
            expect(f"{function}: ends the run", done.returncode == RUN_FAILED, str(done.returncode))
            expect(f"{function}: is told", all(piece in done.stderr for piece in pieces), done.stderr[-600:])


def interpreted(build, scratch):
    """A step through the PTX that nvcc made of own kernels: the emulator's bits."""
    texts = build / "tests/ptx/strict"
    for name in NAMES:
        words = ("--disable", "fuse_attention")  # there is no text of attention in f32
        own = {"steps": 1, "TRAINSCOPE_CUDNN": "off"}
        emulated = Training(build, scratch, name, *words, **own)
        through_ptx = Training(build, scratch, name, *words, **own, TRAINSCOPE_SIMULATED_PTX=texts)
        expect(f"{name}: PTX", emulated.losses == through_ptx.losses)


def gradients_of(build, scratch, folder, device, **environment):
    """Of the folder's batch: what `trainscope gradients` says, and the loss and the gradients that it wrote."""
    out = Path(tempfile.mkdtemp(dir=scratch)) / "gradients.safetensors"
    command = [program(build), "gradients", folder / "model.onnx", "--meta", folder / "meta.json", "--tensors",
               folder / "reference.safetensors", "--device", device, "--out", out, "--json"]
    facts = json.loads(call(command, **environment).stdout)
    return facts, tensors_of(out)


def norm(elements):
    return math.sqrt(sum(each * each for each in elements))


def zoo(build, scratch):
    """A step of each graph of tests/zoo: the CPU's loss and gradients, in the bytes that were predicted."""
    folders = sorted(file.parent for file in ZOO.glob("*/model.onnx"))
    expect("zoo: graphs", len(folders) >= 24, str(len(folders)))
    report = Path(scratch) / "report"
    for folder in folders:
        facts, cuda = gradients_of(build, scratch, folder, "cuda", TRAINSCOPE_SIMULATED_REPORT=report)
        _, cpu = gradients_of(build, scratch, folder, "cpu")
        apart = abs(cuda.pop("loss")[0] - cpu.pop("loss")[0])
        expect(f"{folder.name}: loss", apart <= FURTHEST, f"{apart:.2g}")
        expect(f"{folder.name}: gradients", len(cpu) > 0 and cuda.keys() == cpu.keys(), str(len(cpu)))
        all_norm = math.hypot(*(norm(gradient) for gradient in cpu.values()))
        shares = {name: math.dist(cuda[name], gradient) / max(GRADIENT_LIMIT * norm(gradient), VANISHING * all_norm)
                  for name, gradient in cpu.items()}
        over = {name: share for name, share in shares.items() if not share <= 1.0}
        expect(f"{folder.name}: within the limits", not over, f"{max(shares.values()):.2g} of them {over}")
        expect(f"{folder.name}: bytes", facts["predicted_bytes"] == facts["used_bytes"])
        expect(f"{folder.name}: on the device", json.loads(report.read_text(encoding="utf-8"))["launches"] > 0)


def recomputed(build, scratch):
    """Ops that run twice, within a budget too, and updates in the backward phase: the bits of a plain training."""
    for name in NAMES:
        plain = Training(build, scratch, name, steps=FEW_STEPS)
        cpu = Training(build, scratch, name, device="cpu", steps=FEW_STEPS)
        budget = plain.result["predicted_bytes"] * 98 // 100
        plans = [("--recompute", 1), ("--recompute", 2), ("--optimizer-in-backward",)]
        if name in SHRINKING:
            plans.append(("--recompute", "auto", "--memory-budget", budget))
        for words in plans:
            what = f"{name} {' '.join(map(str, words))}"
            run = Training(build, scratch, name, *words, steps=FEW_STEPS)
            plan = run.plan()
            if "--recompute" in words:
                expect(f"{what}: ops run twice", plan["recompute"]["repeats"] > 0)
            else:
                expect(f"{what}: no update phase", plan["update_begin"] == plan["instruction_count"])
            if budget in words:
                expect(f"{what}: the budget", run.result["used_bytes"] <= budget
                       and run.counts["most_device_bytes"] < plain.counts["most_device_bytes"])
            expect(f"{what}: the same bits", run.losses == plain.losses)
            close(what, run, cpu, FEW_STEPS)


def offloaded(build, scratch):
    """Values that wait in host memory: the bits of a plain training, each transfer once a step, in any order."""
    for name in SHRINKING:
        plain = Training(build, scratch, name, steps=FEW_STEPS)
        cpu = Training(build, scratch, name, device="cpu", steps=FEW_STEPS)
        # Of a machine whose ops take a millisecond each, and a transfer of these small values a hundredth of that.
        costs = plain.run.parent / "costs.csv"
        values = [each["outputs"][0] for each in plain.plan()["calls"] if each["kind"] == "kernel"]
        costs.write_text("value,seconds\n" + "".join(f"{value},1e-3\n" for value in values), encoding="utf-8")
        words = ("--offload", "--link-rate", "10TB", "--max-overhead", "5%", "--costs", costs)
        run = Training(build, scratch, name, *words, steps=FEW_STEPS)
        plan = run.plan()
        transfers = [each["op"] for each in plan["calls"] if each["kind"] == "transfer"]
        expect(f"{name}: transfers", transfers.count("Offload") > 0 and transfers.count("Fetch") > 0
               and plan["host_arena_bytes"] > 0, f"{len(transfers)}, {plan['host_arena_bytes']} bytes")
        expect(f"{name}: the device has less", run.result["used_bytes"] < plain.result["used_bytes"]
               and run.counts["most_device_bytes"] < plain.counts["most_device_bytes"])
        expect(f"{name}: the same bits", run.losses == plain.losses)
        close(name, run, cpu, FEW_STEPS)
        for seed in (1, 2, 3):
            other = Training(build, scratch, name, *words, steps=FEW_STEPS, TRAINSCOPE_SIMULATED_SEED=seed)
            expect(f"{name}: seed {seed}", run.losses == other.losses)
        eager, plain_eager = (Training(build, scratch, name, *flags, steps=FEW_STEPS, CUDA_LAUNCH_BLOCKING=1)
                              for flags in (words, ()))
        expect(f"{name}: without graphs", run.losses == eager.losses)
        copies = eager.counts["copies"] - plain_eager.counts["copies"]
        expect(f"{name}: each transfer is made in each step", copies == FEW_STEPS * len(transfers), str(copies))


def scales_of(training):
    """After each step the loss scale, and how many steps were taken. A step that is left out halves the scale, and
    parameters and moments (0 at first) stay as they were."""
    scale, taken, before, scales = FIRST_SCALE, 0, None, []
    for step in range(1, HEAVY_STEPS + 1):
        folder = training.run / f"checkpoints/step-{step:08}"
        model, optimizer = (tensors_of(folder / f"{file}.safetensors") for file in ("model", "optimizer"))
        last_scale, last_taken = scale, taken
        scale, taken, _ = (optimizer.pop("ai.trainscope.loss_scale" + each)[0]
                           for each in ("", ".taken_steps", ".good_steps"))
        is_taken = taken == last_taken + 1 and scale == last_scale
        is_left_out = taken == last_taken and scale == last_scale / 2
        stayed = (model, optimizer) == before if before else not any(map(any, optimizer.values()))
        expect(f"step {step}: {'left out' if stayed else 'taken'}", is_left_out if stayed else is_taken,
               f"scale {scale}")
        before = model, optimizer
        scales.append((scale, taken))
    return scales


def overflowed(build, scratch):
    """fp16 whose first gradients are not finite: such steps are left out as on the CPU, and training goes on."""
    for name in ("gpt2", "bert"):
        words = ("--precision", "fp16", "--loss", f"{HEAVY}*cross_entropy:output=logits,labels=labels",
                 "--save-every", 1, "--keep", HEAVY_STEPS)
        cuda = Training(build, scratch, name, *words, steps=HEAVY_STEPS)
        cpu = Training(build, scratch, name, *words, device="cpu", steps=HEAVY_STEPS)
        scales = scales_of(cuda)
        expect(f"{name}: the first step is left out", scales[0] == (FIRST_SCALE / 2, 0))
        expect(f"{name}: training goes on", scales[-1][1] > 1, f"{scales[-1][1]} of {HEAVY_STEPS} steps")
        expect(f"{name}: as on the CPU", scales == scales_of(cpu))
        close(name, cuda, cpu, HEAVY_STEPS, HEAVY * FURTHEST_OF["fp16"])
        eager = Training(build, scratch, name, *words, steps=HEAVY_STEPS, CUDA_LAUNCH_BLOCKING=1)
        expect(f"{name}: without graphs", cuda.losses == eager.losses)


def ranks(build, scratch):
    """Data-parallel ranks, each with a GPU, through NCCL."""
    for count in (2, 4):
        one = Training(build, scratch, "gpt2", "--accumulate", count, steps=4)
        several = Training(build, scratch, "gpt2", steps=4, before=("launch", "-n", count, "--"))
        expect(f"{count} ranks", one.losses == several.losses)


run_cases(verified, trained, ordered, waits, chosen, low_precision, tf32, timed, refused, interpreted, zoo, recomputed,
          offloaded, overflowed, ranks)
