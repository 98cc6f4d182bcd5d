"""The part `mutants`: a mutant goes through a verb drawn at random, and what passes is trained."""
import subprocess
from pathlib import Path

import hostile
import mutants
from cases import Step

MODELS_FOLDER = Path(__file__).resolve().parents[1] / "data/models"
NAME = "mutants"
KINDS = list(mutants.KINDS)
# Those of tests/data/models, and two that the program makes.
STORED = ["mlp", "lenet", "resnet18", "gpt2-dropout", "bert", "llama"]
MADE = {"vit": ["vit", "--layers", "2", "--heads", "2", "--embedding", "16", "--feed-forward", "32",
                "--patch", "4", "--image", "12", "--classes", "5"],
        "unet": ["unet", "--depth", "2", "--width", "4", "--image", "16", "--classes", "3"]}
SUBJECTS = STORED + list(MADE)
LOSS = {"lenet": "nll:output=log_probs", "unet": "cross_entropy:class_axis=1"}
OUTPUT = {"lenet": "log_probs"}
BATCH = {"vit": "2", "unet": "2"}

OPTIMIZERS = [["--optimizer", "sgd"], ["--optimizer", "sgd", "--momentum", "0.9", "--nesterov"],
              ["--optimizer", "adam"], ["--optimizer", "adamw", "--weight-decay", "0.1"],
              ["--optimizer", "adamw_hf"], ["--optimizer", "lamb"]]
# Each alone is right on every model; two of them may be refused together (exit code 2).
EXTRAS = [["--precision", "bf16"], ["--precision", "fp16"], ["--memory-budget", "1"],
          ["--memory-budget", "100KB"], ["--memory-budget", "400KB"], ["--memory-budget", "1MB"],
          ["--max-overhead", "20%"], ["--max-overhead", "30%", "--offload"],
          ["--memory-budget", "300KB", "--offload", "--precision", "bf16"], ["--recompute", "1"],
          ["--recompute", "2"], ["--loss-chunks", "3"], ["--skip-ignored"], ["--accumulate", "2"],
          ["--optimizer-in-backward"], ["--sparse-embeddings"], ["--op-order", "given"],
          ["--op-chains", "auto"], ["--kernels", "direct"], ["--kernels", "reference"],
          ["--deterministic", "strict"], ["--clip", "1"], ["--decay", "matrices"],
          ["--disable", "fold_constants"], ["--disable", "simplify"],
          ["--stop-after", "differentiate"],
          ["--freeze", "*.bias"], ["--train", "*weight*"], ["--json"], ["--json"],
          ["--group", "*.bias:weight_decay=0,lr_scale=2"]]
OTHER_LOSSES = ["mse:output={}", "l1:output={}", "bce_with_logits:output={}", "output:{}",
                "cross_entropy:output={},label_smoothing=0.1",
                "cross_entropy:output={},class_axis=1", "cross_entropy:output={},ignore_index=0"]


def prepare(program, shared):
    """The models that the program makes, into the folder of what all cases share."""
    for name, words in MADE.items():
        subprocess.run([program["path"], "model", *words, "-o", str(shared / f"{name}.onnx")],
                       check=True, stdout=subprocess.DEVNULL)


def base_model(subject, shared):
    folder = MODELS_FOLDER / subject
    return folder / "model.onnx" if folder.is_dir() else shared / f"{subject}.onnx"


def loss_words(subject, dice):
    if dice.random() < 0.15:
        return ["--loss", dice.choice(OTHER_LOSSES).format(OUTPUT.get(subject, "logits"))]
    return ["--loss", LOSS[subject]] if subject in LOSS else []


def compile_words(case, mutant, dice):
    words = [] if any("\0" in flag for flag in mutant.flags) else list(mutant.flags)
    if "--loss" not in words:
        words += loss_words(case.subject, dice)
    if "--batch" not in words and case.subject in BATCH:
        words += ["--batch", BATCH[case.subject]]
    words += ["--threads", str(dice.choice([1, 1, 2, 3]))]
    if dice.random() < 0.4:
        words += dice.choice(OPTIMIZERS)
    for _ in range(dice.choice([0, 0, 0, 1, 1, 2])):
        words += dice.choice(EXTRAS)
    return words


def first_step(case, words, dice):
    """The verb that the mutant meets first."""
    model = "../given/model.onnx"
    folder = MODELS_FOLDER / case.subject
    has_reference = (folder / "reference.safetensors").is_file()
    verb = dice.choices(["train", "check", "plan", "inspect", "gradients", "eval", "export"],
                        [40, 16, 16, 8, 8, 6, 6])[0]
    if verb == "gradients" and has_reference:
        return Step(["gradients", model, "--meta", str(folder / "meta.json"), "--tensors",
                     str(folder / "reference.safetensors"), "--batch", "0", "--out",
                     "out.safetensors", "--dtype", dice.choice(["f32", "f64"])],
                    ("work/out.safetensors",))
    if verb == "eval":
        kept = [word for word in words[:words.index("--threads") + 2]]
        return Step(["eval", model, "--data", "synthetic,validation=1,examples=4", *kept])
    if verb == "export":
        form = dice.choice([["--format", "onnx"], ["--format", "safetensors"],
                            ["--stage", "differentiate"], ["--stage", "fold_constants"]])
        return Step(["export", model, "-o", "out", *form, *words], ("work/out",))
    if verb == "inspect":
        more = dice.choice([["--stages"], ["--stages", "--explain"], ["--memory"], [],
                            ["--stage", "differentiate"], ["--node", "0"]])
        return Step(["inspect", model, *more, *words])
    if verb == "plan":
        more = dice.choice([[], [], [], ["--target", "h200", "--world", "1,8"],
                            ["--micro-batches"]])
        return Step(["plan", model, *words, *more])
    return Step(["check", model, *words]) if verb == "check" else train_step(words)


def train_step(words):
    return Step(["train", "../given/model.onnx", "--data", "synthetic,examples=40", "--steps", "2",
                 "--run-dir", "run", "--progress", "none", *words], ("work/run",), "work/run")


def build(case, shared, sandbox):
    """The commands of a case, each to be run when those before it ended with code 0."""
    base = base_model(case.subject, shared).read_bytes()
    mutant = mutants.make(case.kind, base, (case.kind, case.subject, case.seed))
    (sandbox.given / "model.onnx").write_bytes(mutant.serialized())
    for name, content in mutant.files.items():
        (sandbox.given / name).write_bytes(content)
    dice = hostile.dice_of("words", case)
    words = compile_words(case, mutant, dice)
    yield first_step(case, words, dice)
    if not (sandbox.work / "run").exists():
        yield train_step(words)
    yield Step(dice.choice([["inspect", "run"], ["inspect", "run", "--memory"],
                            ["inspect", "run", "--stage", "optimizer_step"], ["plan", "run"],
                            ["eval", "run"], ["export", "run", "-o", "out"]]), ("work/out",))
