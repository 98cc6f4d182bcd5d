"""Architectures of the zoo as files, by each way that PyTorch has: 1.13 and its kin by one."""
import inspect


def prepared_module(module, mode):
    """In training mode with dropout and dropped paths off, or in eval mode."""
    from torch import nn
    if mode == "eval":
        return module.eval()
    module.train()
    for each in module.modules():
        if isinstance(each, (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d)):
            each.p = 0.0
        for name in ("drop_prob", "attn_dropout", "dropout_p"):
            if isinstance(getattr(each, name, None), float):
                setattr(each, name, 0.0)
        if isinstance(each, nn.MultiheadAttention):
            each.dropout = 0.0
        if type(each).__name__ == "StochasticDepth":
            each.p = 0.0
    return module


def exported(module, inputs, way, file, mode="train"):
    """The module as a file, by one of WAYS."""
    import torch
    given = tuple(inputs.values())
    names = {"input_names": list(inputs), "output_names": ["logits"]}
    has_two = "dynamo" in inspect.signature(torch.onnx.export).parameters
    if way == "ts":
        training = getattr(torch.onnx.TrainingMode, {"train": "TRAINING", "eval": "EVAL"}[mode])
        which = {"dynamo": False} if has_two else {}
        torch.onnx.export(module, given, file, opset_version=17, training=training,
                          do_constant_folding=False, **which, **names)
    elif has_two:
        torch.onnx.export(module, given, file, dynamo=True, external_data=False,
                          optimize=way == "dynamo", **names)
    else:
        raise RuntimeError(f"torch {torch.__version__} has the TorchScript exporter alone")
