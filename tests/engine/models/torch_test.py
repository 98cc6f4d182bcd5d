#!/usr/bin/python3
"""The builders' models compute what PyTorch computes: loss, logits and every gradient, in float64.

Usage: torch_test.py TRAINSCOPE. Exit code 77 (skipped) without PyTorch or python3-onnx.

Each network is written here a second time, with torch's own functions and without the rewritings
that the builders use (shared key heads, up-convolutions).
"""
import json
import math
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

try:
    import numpy
    import onnx
    import torch
    from onnx import numpy_helper
    from torch.nn import functional as F
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

PROGRAM = Path(sys.argv.pop()).resolve()
LIMIT = 2e-6  # the graphs' constants are float32
BATCH, LENGTH = 3, 7


def write_safetensors(path, tensors):
    header, offset, chunks = {}, 0, []
    for name, array in tensors.items():
        kind = {"float64": "F64", "int64": "I64"}[str(array.dtype)]
        raw = numpy.ascontiguousarray(array).tobytes()
        header[name] = {"dtype": kind, "shape": list(array.shape),
                        "data_offsets": [offset, offset + len(raw)]}
        offset += len(raw)
        chunks.append(raw)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(chunks))


def read_safetensors(path):
    raw = path.read_bytes()
    size = struct.unpack("<Q", raw[:8])[0]
    tensors = {}
    for name, about in json.loads(raw[8:8 + size]).items():
        if name == "__metadata__":
            continue
        begin, end = (8 + size + offset for offset in about["data_offsets"])
        kind = {"F64": numpy.float64, "I64": numpy.int64}[about["dtype"]]
        tensors[name] = numpy.frombuffer(raw[begin:end], kind).reshape(about["shape"])
    return tensors


# --- the networks; p: parameters by name --------------------------------------------------------

def dense(p, path, x):
    y = x @ p[path + ".weight"]
    return y + p[path + ".bias"] if path + ".bias" in p else y


def norm(p, path, x, epsilon):
    weight = p[path + ".weight"]
    return F.layer_norm(x, weight.shape, weight, p[path + ".bias"], epsilon)


def heads_of(x, heads):
    return x.view(*x.shape[:2], heads, -1).transpose(1, 2)


def attend(q, k, v, mask=None):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores + mask
    mixed = scores.softmax(-1) @ v
    return mixed.transpose(1, 2).flatten(2)


def bert(p, x):
    ids, length = x["ids"], x["ids"].shape[1]
    path = "bert.embeddings."
    h = (p[path + "word_embeddings.weight"][ids] + p[path + "position_embeddings.weight"][:length]
         + p[path + "token_type_embeddings.weight"][x["segments"]])
    h = norm(p, path + "LayerNorm", h, 1e-12)
    mask = (1.0 - x["mask"].double())[:, None, None, :] * -10000.0
    for layer in range(2):
        path = f"bert.encoder.layer.{layer}."
        q, k, v = (heads_of(dense(p, path + "attention.self." + name, h), 2)
                   for name in ("query", "key", "value"))
        attended = dense(p, path + "attention.output.dense", attend(q, k, v, mask))
        h = norm(p, path + "attention.output.LayerNorm", h + attended, 1e-12)
        inner = F.gelu(dense(p, path + "intermediate.dense", h))
        h = norm(p, path + "output.LayerNorm", h + dense(p, path + "output.dense", inner), 1e-12)
    h = F.gelu(dense(p, "cls.predictions.transform.dense", h))
    h = norm(p, "cls.predictions.transform.LayerNorm", h, 1e-12)
    return h @ p["bert.embeddings.word_embeddings.weight"].T + p["cls.predictions.bias"]


def rms_norm(p, path, x):
    return x / (x.square().mean(-1, keepdim=True) + 1e-5).sqrt() * p[path + ".weight"]


def rotated(x):
    size, length = x.shape[-1], x.shape[-2]
    frequencies = 10000.0 ** (-torch.arange(0, size, 2).double() / size)
    angles = torch.arange(length).double()[:, None] * frequencies
    angles = torch.cat((angles, angles), -1)
    rotated = torch.cat((-x[..., size // 2:], x[..., : size // 2]), -1)
    return x * angles.cos() + rotated * angles.sin()


def llama(p, x, tied=False):
    table, length = p["model.embed_tokens.weight"], x["ids"].shape[1]
    h = table[x["ids"]]
    mask = torch.full((length, length), -math.inf, dtype=torch.float64).triu(1)
    for layer in range(2):
        path = f"model.layers.{layer}."
        y = rms_norm(p, path + "input_layernorm", h)
        q = rotated(heads_of(dense(p, path + "self_attn.q_proj", y), 4))
        k = rotated(heads_of(dense(p, path + "self_attn.k_proj", y), 2)).repeat_interleave(2, 1)
        v = heads_of(dense(p, path + "self_attn.v_proj", y), 2).repeat_interleave(2, 1)
        h = h + dense(p, path + "self_attn.o_proj", attend(q, k, v, mask))
        y = rms_norm(p, path + "post_attention_layernorm", h)
        inner = F.silu(dense(p, path + "mlp.gate_proj", y)) * dense(p, path + "mlp.up_proj", y)
        h = h + dense(p, path + "mlp.down_proj", inner)
    return rms_norm(p, "model.norm", h) @ (table.T if tied else p["lm_head.weight"])


def vit(p, x):
    h = F.conv2d(x["x"], p["conv_proj.weight"], p["conv_proj.bias"], stride=4)
    h = h.flatten(2).transpose(1, 2)
    h = torch.cat((p["class_token"].expand(len(h), -1, -1), h), 1) + p["encoder.pos_embedding"]
    for layer in range(2):
        path = f"encoder.layers.encoder_layer_{layer}."
        y = norm(p, path + "ln_1", h, 1e-6)
        q, k, v = (heads_of(dense(p, path + "self_attention." + name, y), 2)
                   for name in ("query", "key", "value"))
        h = h + dense(p, path + "self_attention.out_proj", attend(q, k, v))
        y = norm(p, path + "ln_2", h, 1e-6)
        h = h + dense(p, path + "mlp.3", F.gelu(dense(p, path + "mlp.0", y)))
    h = norm(p, "encoder.ln", h, 1e-6)[:, 0]
    return F.linear(h, p["heads.head.weight"], p["heads.head.bias"])


def batch_norm(p, path, x):
    return F.batch_norm(x, None, None, p[path + ".weight"], p[path + ".bias"], training=True)


def conv_norm(p, conv, bn, x, stride):
    weight = p[conv + ".weight"]
    return batch_norm(p, bn, F.conv2d(x, weight, None, stride, weight.shape[-1] // 2))


def residual(p, path, x, stride, strided):
    """strided: which of the convolutions has the stride."""
    y, number = x, 1
    while f"{path}.conv{number}.weight" in p:
        step = stride if number == strided else 1
        y = conv_norm(p, f"{path}.conv{number}", f"{path}.bn{number}", y, step)
        if f"{path}.conv{number + 1}.weight" in p:
            y = F.relu(y)
        number += 1
    if f"{path}.downsample.0.weight" in p:
        x = conv_norm(p, path + ".downsample.0", path + ".downsample.1", x, stride)
    return F.relu(x + y)


def resnet_cifar(p, x):
    h = F.relu(conv_norm(p, "conv1", "bn1", x["x"], 1))
    h = residual(p, "layer1.0", h, 1, 1)
    h = residual(p, "layer2.0", h, 2, 1)
    h = residual(p, "layer2.1", h, 1, 1)
    return F.linear(h.mean((2, 3)), p["fc.weight"], p["fc.bias"])


def resnet_bottleneck(p, x):
    h = F.relu(conv_norm(p, "conv1", "bn1", x["x"], 2))
    h = F.max_pool2d(h, 3, 2, 1)
    h = residual(p, "layer1.0", h, 1, 2)
    h = residual(p, "layer2.0", h, 2, 2)
    return F.linear(h.mean((2, 3)), p["fc.weight"], p["fc.bias"])


def lenet(p, x):
    h = x["x"]
    for layer in ("0", "3"):
        h = F.max_pool2d(F.relu(F.conv2d(h, p[layer + ".weight"], p[layer + ".bias"])), 2)
    h = h.flatten(1)
    for layer in ("7", "9"):
        h = F.relu(F.linear(h, p[layer + ".weight"], p[layer + ".bias"]))
    return F.linear(h, p["11.weight"], p["11.bias"])


def twice(p, path, x):
    for layer in (".conv1", ".conv2"):
        x = F.relu(F.conv2d(x, p[path + layer + ".weight"], p[path + layer + ".bias"], padding=1))
    return x


def unet(p, x):
    h, skips = x["x"], []
    for level in range(2):
        h = twice(p, f"down.{level}", h)
        skips.append(h)
        h = F.max_pool2d(h, 2)
    h = twice(p, "down.2", h)
    for level in (1, 0):
        weight, bias = p[f"up.{level}.upconv.weight"], p[f"up.{level}.upconv.bias"]
        inputs, outputs = weight.shape[1], len(bias)
        window = weight.view(outputs, 2, 2, inputs).permute(3, 0, 1, 2)
        h = F.conv_transpose2d(h, window, bias.flatten(), stride=2)
        h = twice(p, f"up.{level}", torch.cat((skips[level], h), 1))
    return F.conv2d(h, p["last.weight"], p["last.bias"])


class Networks(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = Path(self.folder.name)
        torch.manual_seed(1)

    def build(self, words):
        """The model with sizes instead of symbols and parameters that all matter, and these."""
        file = self.path / "model.onnx"
        subprocess.run([PROGRAM, "model", *words, "-o", file], check=True,
                       stdout=subprocess.DEVNULL)
        model = onnx.load(file)
        sizes = {"batch": BATCH, "sequence": LENGTH}
        for value in [*model.graph.input, *model.graph.output, *model.graph.value_info]:
            for dim in value.type.tensor_type.shape.dim:
                if dim.dim_param:
                    dim.dim_value = sizes[dim.dim_param]
        parameters = {}
        for each in model.graph.initializer:
            if each.name.endswith(("running_mean", "running_var")):
                continue
            array = numpy_helper.to_array(each)
            array = array + 0.2 * torch.randn(array.shape).numpy()
            array = array.astype(numpy.float32)
            each.CopyFrom(numpy_helper.from_array(array, each.name))
            parameters[each.name] = torch.tensor(array, dtype=torch.float64, requires_grad=True)
        onnx.save(model, file)
        return model, parameters

    def batch(self, model, kinds):
        fields = {}
        for value in model.graph.input:
            shape = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
            if value.type.tensor_type.elem_type == onnx.TensorProto.INT64:
                fields[value.name] = torch.randint(kinds if value.name == "ids" else 2, shape)
            else:
                fields[value.name] = torch.randn(shape, dtype=torch.float64)
        return fields

    def gradients(self, fields, parameters, class_axis):
        write_safetensors(self.path / "batch.safetensors",
                          {f"batch.0:{name}": field.numpy() for name, field in fields.items()})
        (self.path / "meta.json").write_text(json.dumps(
            {"loss": {"kind": "cross_entropy", "output": "logits", "label": "labels",
                      "class_axis": class_axis},
             "trainable": list(parameters), "frozen": []}))
        subprocess.run([PROGRAM, "gradients", "model.onnx", "--meta", "meta.json", "--tensors",
                        "batch.safetensors", "--dtype", "f64", "--values", "logits", "--out",
                        "out.safetensors"], check=True, cwd=self.path, stdout=subprocess.DEVNULL)
        return read_safetensors(self.path / "out.safetensors")

    def compare(self, network, *words, class_axis=-1):
        model, parameters = self.build(words)
        shape = [dim.dim_value for dim in model.graph.output[0].type.tensor_type.shape.dim]
        classes = shape.pop(class_axis)
        fields = self.batch(model, classes)
        logits = network(parameters, fields)
        fields["labels"] = torch.randint(classes, shape)
        loss = F.cross_entropy(logits.movedim(class_axis, -1).flatten(0, -2),
                               fields["labels"].flatten())
        loss.backward()
        found = self.gradients(fields, parameters, class_axis)
        self.near(found["act:logits"], logits, 0.0, "logits")
        self.near(found["loss"], loss, 0.0, "loss")
        self.assertEqual(len([name for name in found if name.startswith("grad:")]),
                         len(parameters))
        total = math.sqrt(sum(p.grad.square().sum().item() for p in parameters.values()))
        for name, parameter in parameters.items():
            # A key bias has no gradient but rounding: the whole gradient is its measure.
            self.near(found["grad:" + name], parameter.grad, 1e-3 * total, name)

    def near(self, found, expected, least, what):
        expected = expected.detach().numpy()
        self.assertEqual(found.size, expected.size, what)
        error = numpy.linalg.norm(found.reshape(expected.shape) - expected)
        self.assertLess(error, LIMIT * max(numpy.linalg.norm(expected), least), what)

    def test_bert(self):
        self.compare(bert, "bert", "--layers", "2", "--heads", "2", "--embedding", "16",
                     "--feed-forward", "24", "--vocab", "13", "--context", "9", "--dropout", "0",
                     "--mask")

    def test_llama(self):
        sizes = ["--layers", "2", "--heads", "4", "--kv-heads", "2", "--embedding", "32",
                 "--feed-forward", "40", "--vocab", "13", "--context", "9"]
        self.compare(llama, "llama", *sizes)
        self.compare(lambda p, x: llama(p, x, tied=True), "llama", *sizes, "--tied")

    def test_vit(self):
        self.compare(vit, "vit", "--layers", "2", "--heads", "2", "--embedding", "16",
                     "--feed-forward", "24", "--patch", "4", "--image", "12", "--classes", "5")

    def test_resnet(self):
        self.compare(resnet_cifar, "resnet", "--blocks", "1,2", "--width", "4", "--image", "10",
                     "--classes", "5", "--stem", "cifar")
        self.compare(resnet_bottleneck, "resnet", "--blocks", "1,1", "--width", "4", "--image",
                     "22", "--classes", "5", "--bottleneck")

    def test_lenet(self):
        self.compare(lenet, "lenet", "--image", "20", "--classes", "5")

    def test_unet(self):
        self.compare(unet, "unet", "--depth", "2", "--width", "4", "--image", "12", "--classes",
                     "3", class_axis=1)


if __name__ == "__main__":
    unittest.main()
