"""The large workloads, by name: what bench/gpu's peers run, at the sizes that results quote."""

GPT2 = {"kind": "language", "layers": 12, "heads": 12, "width": 768, "vocab": 50304,
        "activation": "gelu_tanh", "bias": True, "tied": True, "causal": True, "context": 1024,
        "dropout": 0.0, "optimizer": "adamw"}
BERT = {"kind": "language", "heads": 16, "width": 1024, "layers": 24, "vocab": 30528,
        "activation": "gelu", "bias": True, "tied": True, "causal": False, "context": 512,
        "norm_last": True, "bert": True, "predictions": 20, "dropout": 0.1, "optimizer": "adamw"}
LLAMA = {"kind": "language", "layers": 22, "heads": 32, "key_heads": 4, "width": 2048,
         "hidden": 5632, "vocab": 32000, "activation": "swiglu", "norm": "rms", "rotary": True,
         "bias": False, "tied": False, "causal": True, "dropout": 0.0, "optimizer": "adamw"}
RESNET = {"kind": "images", "image": (3, 224, 224), "classes": 1000, "blocks": (3, 4, 6, 3),
          "optimizer": "sgd"}

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
