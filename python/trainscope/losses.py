"""The losses of references' meta.json on torch tensors."""
import torch
from torch.nn import functional

from .errors import TrainscopeError

KINDS = ("cross_entropy", "nll", "mse", "l1", "bce_with_logits")


def loss_of(about, output, labels):
    """The loss, a scalar tensor, as `about` says: {"kind": one of KINDS, "class_axis": int (default
    -1), "ignore_index": int (default -100)}, the mean over labels that count.

    output: float tensor, of the first two kinds with classes along class_axis; labels: integers
    with the shape of output without that axis, else numbers with the shape of output. Raises
    TrainscopeError for another kind.
    """
    kind = about["kind"]
    if kind in ("cross_entropy", "nll"):
        axis = about.get("class_axis", -1) % output.dim()
        rows = output.movedim(axis, -1).flatten(0, -2)
        if kind == "cross_entropy":
            rows = torch.log_softmax(rows, -1)
        return functional.nll_loss(rows, labels.reshape(-1).long(),
                                   ignore_index=about.get("ignore_index", -100))
    numbers = {"mse": functional.mse_loss, "l1": functional.l1_loss,
               "bce_with_logits": functional.binary_cross_entropy_with_logits}
    if kind not in numbers:
        raise TrainscopeError(f"unknown loss kind '{kind}': known are {', '.join(KINDS)}", 2)
    return numbers[kind](output, labels.to(output.dtype).reshape(output.shape))
