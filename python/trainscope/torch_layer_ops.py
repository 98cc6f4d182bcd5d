"""ONNX ops on torch tensors, part two: products, convolutions, pools, norms and activations.

Entered into torch_ops.OPS; see there.
"""
import torch
from torch.nn import functional

from .errors import TrainscopeError
from .torch_ops import attribute, input_at, op


@op("MatMul")
def matmul(node, x):
    return torch.matmul(x[0], x[1])


@op("Gemm")
def gemm(node, x):
    a = x[0].t() if attribute(node, "transA", 0) else x[0]
    b = x[1].t() if attribute(node, "transB", 0) else x[1]
    alpha, beta = attribute(node, "alpha", 1.0), attribute(node, "beta", 1.0)
    if input_at(x, 2) is None:
        product = a @ b
        return product if alpha == 1.0 else alpha * product
    return torch.addmm(x[2], a, b, beta=beta, alpha=alpha)


@op("Einsum")
def einsum(node, x):
    return torch.einsum(attribute(node, "equation"), *x)


def _window(node, dims):
    """(strides, dilations, pads before, pads after) of a convolution or pool, dims int each."""
    strides = attribute(node, "strides", [1] * dims)
    dilations = attribute(node, "dilations", [1] * dims)
    pads = attribute(node, "pads", [0] * (2 * dims))
    if attribute(node, "auto_pad", "NOTSET") not in ("NOTSET", "VALID"):
        raise TrainscopeError(f"node '{node.name}': auto_pad is not supported: write pads")
    return list(strides), list(dilations), list(pads[:dims]), list(pads[dims:])


def _padded(x, before, after, fill=0.0, most=None):
    """x with these pads, where they differ on both sides or are more than `most` (ints, by axis),
    and the pads that are left for torch to do."""
    if before == after and (most is None or all(a <= b for a, b in zip(before, most))):
        return x, before
    amounts = [pad for pair in reversed(list(zip(before, after))) for pad in pair]
    return functional.pad(x, amounts, value=fill), [0] * len(before)


@op("Conv")
def convolution(node, x):
    dims = x[0].dim() - 2
    strides, dilations, before, after = _window(node, dims)
    data, pads = _padded(x[0], before, after)
    convolve = (functional.conv1d, functional.conv2d, functional.conv3d)[dims - 1]
    return convolve(data, x[1], input_at(x, 2), strides, pads, dilations,
                    attribute(node, "group", 1))


@op("ConvTranspose")
def transposed_convolution(node, x):
    dims = x[0].dim() - 2
    strides, dilations, before, after = _window(node, dims)
    if before != after or "output_shape" in node.attributes:
        raise TrainscopeError(f"node '{node.name}': pads that differ, and output_shape, are not "
                              "supported")
    convolve = (functional.conv_transpose1d, functional.conv_transpose2d,
                functional.conv_transpose3d)[dims - 1]
    return convolve(x[0], x[1], input_at(x, 2), strides, before,
                    attribute(node, "output_padding", [0] * dims), attribute(node, "group", 1),
                    dilations)


@op("MaxPool")
def max_pool(node, x):
    dims = x[0].dim() - 2
    strides, dilations, before, after = _window(node, dims)
    halves = [size // 2 for size in attribute(node, "kernel_shape")]
    data, pads = _padded(x[0], before, after, float("-inf"), halves)
    pool = (functional.max_pool1d, functional.max_pool2d, functional.max_pool3d)[dims - 1]
    return pool(data, list(attribute(node, "kernel_shape")), strides, pads, dilations,
                bool(attribute(node, "ceil_mode", 0)))


@op("AveragePool")
def average_pool(node, x):
    dims = x[0].dim() - 2
    strides, _, before, after = _window(node, dims)
    counted = bool(attribute(node, "count_include_pad", 0))
    halves = [size // 2 for size in attribute(node, "kernel_shape")]
    data, pads = _padded(x[0], before, after, 0.0, halves)
    if pads != before and not counted:
        raise TrainscopeError(f"node '{node.name}': pads that differ, or are more than half a window, "
                              "are not supported where they do not count")
    pool = (functional.avg_pool1d, functional.avg_pool2d, functional.avg_pool3d)[dims - 1]
    return pool(data, list(attribute(node, "kernel_shape")), strides, pads,
                bool(attribute(node, "ceil_mode", 0)), counted)


@op("GlobalAveragePool", "GlobalMaxPool")
def global_pool(node, x):
    axes = list(range(2, x[0].dim()))
    return x[0].mean(axes, True) if node.op == "GlobalAveragePool" else x[0].amax(axes, True)


@op("BatchNormalization")
def batch_norm(node, x):
    """In training also the next running mean and variance: of the population, as ONNX defines it,
    of the sample in files of PyTorch, as its modules keep it."""
    data, scale, bias, mean, variance = x
    epsilon = attribute(node, "epsilon", 1e-5)
    if not attribute(node, "training_mode", 0):
        return functional.batch_norm(data, mean, variance, scale, bias, False, 0.0, epsilon)
    y = functional.batch_norm(data, None, None, scale, bias, True, 0.0, epsilon)
    if len(node.outputs) == 1:
        return y
    axes = [axis for axis in range(data.dim()) if axis != 1]
    kept = attribute(node, "momentum", 0.9)
    of_sample = bool(attribute(node, "sample_variance", 0))
    with torch.no_grad():
        of_batch = (data.mean(axes), data.var(axes, unbiased=of_sample))
        return (y, *(kept * old + (1.0 - kept) * new
                     for old, new in zip((mean, variance), of_batch)))


@op("LayerNormalization")
def layer_norm(node, x):
    """Also mean and 1 / deviation, where the node has these outputs."""
    axis = attribute(node, "axis", -1) % x[0].dim()
    epsilon = attribute(node, "epsilon", 1e-5)
    sizes = list(x[0].shape[axis:])
    y = functional.layer_norm(x[0], sizes, x[1].reshape(sizes) if x[1].numel() > 1 else
                              x[1].expand(sizes),
                              None if input_at(x, 2) is None else x[2].reshape(sizes), epsilon)
    if len(node.outputs) == 1:
        return y
    axes = list(range(axis, x[0].dim()))
    mean = x[0].mean(axes, True)
    inverse = torch.rsqrt((x[0] - mean).square().mean(axes, True) + epsilon)
    return y, mean, inverse


@op("RMSNormalization")
def rms_norm(node, x):
    axes = list(range(attribute(node, "axis", -1) % x[0].dim(), x[0].dim()))
    squares = x[0].square().mean(axes, True)
    return x[0] * torch.rsqrt(squares + attribute(node, "epsilon", 1e-5)) * x[1]


@op("InstanceNormalization")
def instance_norm(node, x):
    return functional.instance_norm(x[0], None, None, x[1], x[2],
                                    eps=attribute(node, "epsilon", 1e-5))


@op("GroupNormalization")
def group_norm(node, x):
    groups = attribute(node, "num_groups")
    scale, bias = x[1], x[2]
    if node.opset < 21:  # a number a group, then
        scale, bias = (each.repeat_interleave(x[0].shape[1] // groups) for each in (scale, bias))
    return functional.group_norm(x[0], groups, scale, bias, attribute(node, "epsilon", 1e-5))


@op("Softmax", "LogSoftmax")
def softmax(node, x):
    apply = torch.softmax if node.op == "Softmax" else torch.log_softmax
    if node.opset >= 13:
        return apply(x[0], attribute(node, "axis", -1))
    axis = attribute(node, "axis", 1) % x[0].dim()  # over all axes from this one on, then
    return apply(x[0].flatten(axis), axis).reshape(x[0].shape)


@op("Dropout")
def dropout(node, x):
    """And its mask. Where it drops anything its numbers are torch's: no other engine has them."""
    ratio = float(x[1]) if input_at(x, 1) is not None else attribute(node, "ratio", 0.5)
    training = bool(x[2]) if input_at(x, 2) is not None else False  # never before opset 12
    if not training or ratio == 0.0:
        return x[0], torch.ones_like(x[0], dtype=torch.bool)
    mask = torch.rand_like(x[0]) >= ratio
    return x[0] * mask / (1.0 - ratio), mask


@op("Gelu")
def gelu(node, x):
    return functional.gelu(x[0], approximate=attribute(node, "approximate", "none"))


@op("LeakyRelu")
def leaky_relu(node, x):
    return functional.leaky_relu(x[0], attribute(node, "alpha", 0.01))


@op("Elu")
def elu(node, x):
    return functional.elu(x[0], attribute(node, "alpha", 1.0))


@op("Celu")
def celu(node, x):
    return functional.celu(x[0], attribute(node, "alpha", 1.0))


@op("Selu")
def selu(node, x):
    alpha = attribute(node, "alpha", 1.67326319217681884765625)
    gamma = attribute(node, "gamma", 1.05070102214813232421875)
    return gamma * functional.elu(x[0], alpha)


@op("Swish")
def swish(node, x):
    return x[0] * torch.sigmoid(attribute(node, "alpha", 1.0) * x[0])


@op("HardSigmoid")
def hard_sigmoid(node, x):
    slope, shift = attribute(node, "alpha", 0.2), attribute(node, "beta", 0.5)
    return torch.clamp(slope * x[0] + shift, 0.0, 1.0)


@op("HardSwish")
def hard_swish(node, x):
    return x[0] * torch.clamp(x[0] / 6.0 + 0.5, 0.0, 1.0)
