"""Elements of a tensor of any framework: their type, shape, bytes and values as numbers.

Takes numpy arrays (bfloat16 of ml_dtypes among them), PyTorch tensors on any device and Python
numbers, and needs numpy alone: what is asked of a PyTorch tensor is asked of its methods.
"""
from collections import namedtuple

import numpy

from .errors import TrainscopeError

# What a trace calls a type, and what a safetensors file does.
FILE_NAMES = {"f16": "F16", "bf16": "BF16", "f32": "F32", "f64": "F64", "bool": "BOOL",
              "i8": "I8", "i16": "I16", "i32": "I32", "i64": "I64",
              "u8": "U8", "u16": "U16", "u32": "U32", "u64": "U64"}
_FLOATS = ("f16", "bf16", "f32", "f64")


class Elements(namedtuple("Elements", "dtype shape raw")):
    """dtype: "f32", "bf16", "i64", "bool" ...; shape: tuple of int; raw: a contiguous numpy array
    of that shape, little endian (of bf16 the bits as uint16)."""

    __slots__ = ()

    def numbers(self):
        """f64 [elements], row-major: each element converted."""
        flat = self.raw.reshape(-1)
        if self.dtype == "bf16":
            flat = (flat.astype(numpy.uint32) << 16).view(numpy.float32)
        return flat.astype(numpy.float64)

    def bytes(self):
        """uint8 [bytes]: the elements as they are in memory."""
        return self.raw.reshape(-1).view(numpy.uint8)

    def is_float(self):
        return self.dtype in _FLOATS


def elements_of(tensor):
    """The Elements of a tensor, copied where it is not in the host's memory in row-major order.

    Raises TrainscopeError for complex numbers, strings and other types that traces do not have.
    """
    if isinstance(tensor, Elements):
        return tensor
    bits = False
    if hasattr(tensor, "detach"):
        tensor = tensor.detach().cpu().contiguous()
        if str(tensor.dtype) == "torch.bfloat16":
            shape = tuple(tensor.shape)
            tensor = tensor.reshape(-1).view(_int16_of(tensor)).numpy().view(numpy.uint16)
            tensor, bits = tensor.reshape(shape), True
        else:
            tensor = tensor.numpy()
    array = numpy.asarray(tensor)
    if array.dtype.name == "bfloat16":
        array, bits = array.view(numpy.uint16), True
    array = numpy.ascontiguousarray(array).reshape(array.shape)
    if array.dtype.byteorder == ">":
        array = array.astype(array.dtype.newbyteorder("<"))
    dtype = "bf16" if bits else _name_of(array.dtype)
    return Elements(dtype, array.shape, array)


def elements_from(dtype, shape, data):
    """The Elements of `data` (bytes) that a file holds as this type (as traces name it) and
    shape."""
    kind = "<u2" if dtype == "bf16" else _numpy_type(dtype)
    return Elements(dtype, tuple(shape), numpy.frombuffer(data, kind).reshape(shape))


def array_of(elements):
    """A numpy array of these elements; of bf16 as float32, exactly."""
    if elements.dtype == "bf16":
        return (elements.raw.astype(numpy.uint32) << 16).view(numpy.float32)
    return elements.raw


def _int16_of(tensor):
    """torch.int16, without importing torch here."""
    return getattr(__import__(type(tensor).__module__.split(".")[0]), "int16")


def _name_of(dtype):
    if dtype.kind == "b":
        return "bool"
    name = f"{dtype.kind}{8 * dtype.itemsize}"
    if name not in FILE_NAMES:
        raise TrainscopeError(f"a tensor has the type {dtype}: traces have {', '.join(FILE_NAMES)}")
    return name


def _numpy_type(name):
    if name not in FILE_NAMES:
        raise TrainscopeError(f"unknown element type '{name}'")
    return "?" if name == "bool" else f"<{name[0]}{int(name[1:]) // 8}"
