"""Batches for recorders from a safetensors file: a reference's two, or a set of examples."""
import numpy

from .errors import TrainscopeError
from .tensor_file import read_tensors


def reference_batches(path):
    """[{name: array}] of the tensors `batch.B:NAME` of a file, in the order of B."""
    found = {}
    for name, array in read_tensors(path).items():
        category, _, own = name.partition(":")
        if category.startswith("batch.") and category[6:].isdigit():
            found.setdefault(int(category[6:]), {})[own] = array
    return [found[place] for place in sorted(found)]


class Batches:
    """The batches of a file: of a reference in turn, of examples one after the other.

    path: safetensors; either tensors `batch.B:NAME`, or NAME whose first dimension counts examples.
    batch: examples in a micro-batch, needed for the latter; each epoch has whole batches in the
    order of the file, as `trainscope train --shuffle none --validation none` reads them.
    micro_batches: how many a step has. Raises TrainscopeError where that cannot be.
    """

    def __init__(self, path, batch=None, micro_batches=1):
        self._micro_batches = micro_batches
        self._whole = reference_batches(path)
        if self._whole:
            return
        tensors = read_tensors(path)
        sizes = {name: len(array) if array.ndim else 0 for name, array in tensors.items()}
        if len(set(sizes.values())) != 1:
            raise TrainscopeError(f"'{path}': the tensors differ in their number of examples: {sizes}",
                                  2)
        examples = next(iter(sizes.values()))
        if not batch or batch < 1 or batch > examples:
            raise TrainscopeError(f"'{path}' has {examples} examples: say how many of them make a "
                                  "batch (--batch)", 2)
        self._whole = [{name: array[first:first + batch] for name, array in tensors.items()}
                       for first in range(0, examples - batch + 1, batch)]

    def of_step(self, step):
        """[{name: array}], a micro-batch each, of a step from 1 on."""
        first = (step - 1) * self._micro_batches
        return [self._whole[(first + k) % len(self._whole)] for k in range(self._micro_batches)]

    def examples(self):
        """{name: array} of all batches, one after the other along the first dimension."""
        return {name: numpy.concatenate([batch[name] for batch in self._whole])
                for name in self._whole[0]}
