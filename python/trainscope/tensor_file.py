"""Safetensors files: tensors by name, by numpy alone.

A file is 8 bytes with the length of a JSON header, the header, and the tensors' bytes one after the
other, little endian and row-major.
"""
import json
import os
import struct

from .elements import FILE_NAMES, array_of, elements_from, elements_of
from .errors import TrainscopeError

_OWN_NAMES = {name: own for own, name in FILE_NAMES.items()}


def write_tensors(path, tensors, metadata=None):
    """Writes {name: tensor} (what elements_of takes); `metadata` is {str: str}. The file appears
    whole.

    Raises TrainscopeError (code 6) where it cannot be written.
    """
    header, offset, parts = {}, 0, []
    if metadata:
        header["__metadata__"] = dict(metadata)
    for name, tensor in tensors.items():
        elements = elements_of(tensor)
        data = elements.bytes()
        header[name] = {"dtype": FILE_NAMES[elements.dtype], "shape": list(elements.shape),
                        "data_offsets": [offset, offset + data.size]}
        offset += data.size
        parts.append(data)
    text = json.dumps(header, ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    unfinished = f"{path}.part"
    try:
        with open(unfinished, "wb") as file:
            file.write(struct.pack("<Q", len(text)) + text)
            for data in parts:
                file.write(data.tobytes())
        os.replace(unfinished, path)
    except OSError as error:
        raise TrainscopeError(f"'{path}' cannot be written: {error.strerror}", 6) from error


def read_elements(path):
    """{name: Elements} of a file, in its order. Raises TrainscopeError for what is none."""
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        raise TrainscopeError(f"'{path}' cannot be read: {error.strerror}", 6) from error
    try:
        size = struct.unpack_from("<Q", data)[0]
        header = json.loads(data[8:8 + size])
        tensors = {}
        for name, about in header.items():
            if name == "__metadata__":
                continue
            begin, end = (8 + size + offset for offset in about["data_offsets"])
            tensors[name] = elements_from(_OWN_NAMES[about["dtype"]], about["shape"],
                                          data[begin:end])
        return tensors
    except (struct.error, ValueError, KeyError, TypeError, AttributeError) as error:
        raise TrainscopeError(f"'{path}' is no safetensors file: {error}") from error


def read_tensors(path):
    """{name: numpy array} of a file; bf16 becomes float32, exactly."""
    return {name: array_of(elements) for name, elements in read_elements(path).items()}
