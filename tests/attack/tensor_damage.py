"""Damage to the data of one tensor of a model: another type, too few bytes, bytes elsewhere."""
import numpy
from onnx import TensorProto, helper

import hostile
from graph_edits import raw_numbers


def cast_tensor(tensor, dtype):
    """The same numbers in another type; the type alone where there are no such numbers."""
    numbers = raw_numbers(tensor)
    if numbers.size == 0 or numbers.size != numpy.prod(list(tensor.dims)):
        tensor.data_type = dtype
        return
    with numpy.errstate(all="ignore"):  # infinity where the other type is narrower
        made = helper.make_tensor(tensor.name, dtype, tensor.dims, numbers.tolist())
    tensor.CopyFrom(made)


def damage_tensor(tensor, dice, files=None):
    """Data that are too short, too long, in the wrong field, or elsewhere."""
    way = dice.choice(["short", "long", "values", "values", "typed", "both", "segment", "elsewhere",
                       "strings", "dims", "none"])
    real = tensor.data_type == TensorProto.FLOAT
    if way == "short":
        tensor.raw_data = hostile.cut(tensor.raw_data, dice)
    elif way == "long":
        tensor.raw_data = tensor.raw_data + bytes(dice.choice([1, 3, 4, 4096]))
    elif way == "values" and tensor.raw_data:
        array = raw_numbers(tensor)
        for _ in range(dice.choice([1, 1, 3]) if array.size > 0 else 0):
            array[dice.randrange(array.size)] = (hostile.real if real else hostile.integer)(dice)
        tensor.raw_data = array.tobytes()
    elif way in ("typed", "both"):
        if way == "typed":
            tensor.ClearField("raw_data")
        count = dice.choice([0, 1, 7, 1000])
        tensor.float_data.extend([hostile.real(dice)] * count)
        tensor.int64_data.extend([hostile.integer(dice)] * dice.choice([0, count]))
        tensor.int32_data.extend([-1] * dice.choice([0, 0, count]))
    elif way == "segment":
        tensor.segment.begin, tensor.segment.end = hostile.integer(dice), hostile.integer(dice)
    elif way == "elsewhere":
        place_elsewhere(tensor, dice, {} if files is None else files)
    elif way == "strings":
        tensor.string_data.extend([b"\xff", b"x" * 1000])
        if dice.random() < 0.5:
            tensor.data_type = TensorProto.STRING
    elif way == "dims":
        tensor.dims.extend([dice.choice([0, 1, -1, 2, 2**62])])
    else:
        tensor.ClearField("raw_data")


def place_elsewhere(tensor, dice, files):
    """External data: right, beyond the end, negative, in another folder, not there."""
    content = tensor.raw_data
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    name = dice.choice(["weights.bin", "weights.bin", "weights.bin", "../outside/notes.txt",
                        "/dev/zero", "missing.bin", "", ".", hostile.name(dice)])
    facts = {"location": name, "offset": str(dice.choice([0, 0, 0, -1, 4, 4096, 2**63, "x"])),
             "length": str(dice.choice([len(content), len(content), 0, -1, 2**40, 2**64, ""]))}
    for key in sorted(facts):
        if dice.random() < 0.9:
            tensor.external_data.add(key=key, value=facts[key])
    files["weights.bin"] = dice.choice([content, content, content[:-1], b"", bytes(1 << 16)])
