#!/usr/bin/env python3
"""Makes the models and numbers of tests/zoo: small architectures as PyTorch exports them.

    tests/zoo/make.py [NAME ...]

Each folder gets model.onnx, meta.json and reference.safetensors (README.md says what is in them).
Needs PyTorch, timm, transformers, onnx and safetensors; the tests need none of them.
"""
import copy
import json
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "bench"))

# Name here -> (name in bench/zoo_models.py or a timm model's name, the exporter's way).
MODELS = {
    "mlp-norms": ("mlp_norms", "dynamo"),
    "affine-mlp": ("affine_mlp", "dynamo"),
    "mlp-batch-norm": ("mlp_batch_norm", "plain"),
    "activations": ("activations", "dynamo"),
    "conv-batch-norm": ("conv_batch_norm", "plain"),
    "norms": ("norms", "dynamo"),
    "autoencoder": ("autoencoder", "dynamo"),
    "text-cnn": ("text_cnn", "dynamo"),
    "encoder": ("transformer_encoder", "dynamo"),
    "tied-language-model": ("tied_language_model", "dynamo"),
    "fourier-features": ("fourier_features", "dynamo"),
    "contrastive-scale": ("contrastive_scale", "plain"),
    "squeeze-excite": ("squeeze_excite", "ts"),
    "dilated-time-net": ("dilated_time_net", "dynamo"),
    "weight-norm": ("weight_norm", "plain"),
    "powers": ("powers", "plain"),
    "bert": ("transformers.bert", "plain"),
    "distilbert": ("transformers.distilbert", "ts"),
    "albert": ("transformers.albert", "plain"),
    "gpt2": ("transformers.gpt2", "plain"),
    "llama": ("transformers.llama", "dynamo"),
    "opt": ("transformers.opt", "ts"),
    "bart": ("transformers.bart", "plain"),
    "t5": ("transformers.t5", "plain"),
    "dinov2": ("transformers.dinov2", "plain"),
    "vit": ("torchvision.vit", "dynamo"),
    "lstm": ("lstm", "ts"),
    "lstm-plain": ("lstm", "plain"),
    "gru-plain": ("gru", "plain"),
    "gru": ("gru", "ts"),
    "rnn": ("rnn", "ts"),
    "resnet": ("timm.test_resnet", "plain"),
    "convnext": ("timm:test_convnext", "dynamo"),
    "efficientnet": ("timm:test_efficientnet_ln", "dynamo"),
}


def made(source):
    import torch
    import zoo_models
    torch.manual_seed(11)
    if source.startswith("timm:"):
        import timm
        module = timm.create_model(source.removeprefix("timm:"), num_classes=zoo_models.CLASSES)
        module = zoo_models.One(module, ["x"], lambda y: y)
        return module, zoo_models.images(32), zoo_models.classes(), "cross_entropy"
    return zoo_models.ZOO[source][1]()


def without_traces(file):
    """Stack traces name files of the machine that exported."""
    import onnx
    model = onnx.load(file)
    for node in model.graph.node:
        for entry in list(node.metadata_props):
            if "stack_trace" in entry.key:
                node.metadata_props.remove(entry)
    onnx.save(model, file)


def make(name, source, way):
    import torch
    import zoo
    from safetensors.torch import save_file
    module, inputs, labels, kind = made(source)
    zoo.prepared_module(module, "train")
    folder = HERE / name
    folder.mkdir(exist_ok=True)
    double = copy.deepcopy(module).double()
    zoo.exported(module, inputs, way, str(folder / "model.onnx"))
    without_traces(folder / "model.onnx")
    before = {k: v.detach().clone() for k, v in double.state_dict().items()}
    given = [v.double() if v.is_floating_point() else v for v in inputs.values()]
    target = labels.double() if labels.is_floating_point() else labels
    loss = zoo.loss_of(kind, double(*given), target)
    loss.backward()
    tensors = {f"batch.0:{k}": v.contiguous() for k, v in inputs.items()}
    tensors["batch.0:labels"] = labels.contiguous()
    tensors["loss.f64:0"] = loss.detach().reshape(1)
    parameters = []
    for key, parameter in double.named_parameters():
        if parameter.grad is not None:
            parameters.append(key)
            tensors[f"grad.f64:{key}"] = parameter.grad.float().contiguous()  # 1e-7 is enough
    save_file(tensors, folder / "reference.safetensors")
    state = {k: v.float().numpy() if v.is_floating_point() else v.numpy()
             for k, v in before.items()}
    found = zoo.counterparts(folder / "model.onnx", state)
    names = {}
    for key in parameters:
        if (key, False) not in found[key]:
            for initializer, transposed in found[key]:
                names[initializer] = {"name": key, "transposed": transposed}
    meta = {"made_by": f"torch {torch.__version__.split('+')[0]}, {way}", "source": source,
            "loss": {"kind": kind, "output": "logits", "label": "labels", "class_axis": -1,
                     "ignore_index": -100},
            "trainable": [], "frozen": [], "parameters": parameters, "names": names}
    (folder / "meta.json").write_text(json.dumps(meta, indent=1) + "\n")
    size = sum(f.stat().st_size for f in folder.iterdir())
    print(f"{name:<22} {size / 1e3:8.0f} kB  loss {loss.item():.6f}  {len(parameters)} parameters",
          flush=True)


def main():
    wanted = sys.argv[1:] or list(MODELS)
    for name in wanted:
        try:
            make(name, *MODELS[name])
        except Exception as error:  # pylint: disable=broad-except
            print(f"{name}: {type(error).__name__}: {str(error)[:300]}", flush=True)


if __name__ == "__main__":
    main()
