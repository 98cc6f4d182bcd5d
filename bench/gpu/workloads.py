"""The large workloads, by name: what bench/gpu times, of PyTorch and of ours, at the sizes that results quote."""

GPT2 = {"kind": "language", "model": "gpt2", "layers": 12, "heads": 12, "width": 768, "vocab": 50304,
        "activation": "gelu_tanh", "bias": True, "tied": True, "causal": True, "context": 1024,
        "dropout": 0.0, "optimizer": "adamw"}
BERT = {"kind": "language", "model": "bert", "heads": 16, "width": 1024, "layers": 24, "vocab": 30528,
        "activation": "gelu", "bias": True, "tied": True, "causal": False, "context": 512,
        "norm_last": True, "bert": True, "predictions": 20, "dropout": 0.1, "optimizer": "adamw"}
LLAMA = {"kind": "language", "model": "llama", "layers": 22, "heads": 32, "key_heads": 4, "width": 2048,
         "hidden": 5632, "vocab": 32000, "activation": "swiglu", "norm": "rms", "rotary": True,
         "bias": False, "tied": False, "causal": True, "context": 2048, "dropout": 0.0, "optimizer": "adamw"}
RESNET = {"kind": "images", "model": "resnet", "image": (3, 224, 224), "classes": 1000, "blocks": (3, 4, 6, 3),
          "width": 64, "optimizer": "sgd"}

WORKLOADS = {
    "g1": dict(GPT2, batch=32, length=1024),
    "g2": dict(GPT2, layers=24, heads=16, width=1024, batch=16, length=1024),
    "g3": dict(BERT, batch=128, length=128),
    "g3-phase2": dict(BERT, batch=32, length=512, predictions=80),
    "g4": dict(LLAMA, batch=4, length=2048),
    "g5": dict(RESNET, batch=256),
    # What traces are taken of: GPT-2 with short context, few layers and a small vocabulary.
    "small": dict(GPT2, layers=2, width=256, heads=4, vocab=1024, context=128, batch=8, length=128),
}
# The same path at a size that a CPU runs in seconds.
TOY = {"language": {"layers": 2, "width": 64, "heads": 4, "vocab": 128, "batch": 2, "length": 32, "hidden": 96,
                    "predictions": 4, "context": 64, "key_heads": 2},
       "images": {"batch": 2, "image": (3, 32, 32), "blocks": (1, 1, 1, 1), "classes": 10, "width": 8}}


def sizes_of(name, toy):
    sizes = dict(WORKLOADS[name])
    if toy:
        sizes.update({key: value for key, value in TOY[sizes["kind"]].items() if key in sizes})
    return sizes


def model_words(sizes):
    """The words of `trainscope model` that make it."""
    if sizes["kind"] == "images":
        return [sizes["model"], "--blocks", ",".join(map(str, sizes["blocks"])), "--bottleneck", "--width",
                str(sizes["width"]), "--image", str(sizes["image"][1]), "--classes", str(sizes["classes"])]
    words = [sizes["model"]]
    for flag, key in (("layers", "layers"), ("heads", "heads"), ("embedding", "width"), ("vocab", "vocab"),
                      ("context", "context")):
        words += [f"--{flag}", str(sizes[key])]
    if sizes["model"] == "llama":
        return words + ["--kv-heads", str(sizes["key_heads"]), "--feed-forward", str(sizes["hidden"])]
    if sizes["model"] == "bert":
        words += ["--feed-forward", str(4 * sizes["width"])]
    return words + ["--dropout", str(sizes["dropout"])]


def step_flags(sizes, precision="bf16"):
    """Flags of a training step: its batch, precision and optimizer."""
    flags = ["--batch", str(sizes["batch"]), "--precision", precision, "--optimizer", sizes["optimizer"]]
    if sizes.get("length"):
        flags += ["--seq", str(sizes["length"])]
    if sizes["optimizer"] == "sgd":
        flags += ["--momentum", "0.9"]
    return flags


def update_flags(sizes):
    """Flags of its update, with the numbers that PyTorch's have."""
    if sizes["optimizer"] == "sgd":
        return ["--lr", "0.01"]
    decay = ["--weight-decay", "0.1", "--decay", "matrices"]
    if sizes["optimizer"] == "lamb":
        return ["--lr", "1e-3", "--eps", "1e-6", *decay]
    return ["--lr", "3e-4", "--betas", "0.9,0.95", *decay]
