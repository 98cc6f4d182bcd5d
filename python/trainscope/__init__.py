"""Recorders of training runs of PyTorch and ONNX Runtime, for `trainscope compare`.

numpy is needed everywhere, torch, onnx and onnxruntime only by what uses them. docs/recorders.md
shows each recorder in use.
"""
from .errors import TrainscopeError

__version__ = "0.1.0"
__all__ = ["TraceReader", "TraceWriter", "TrainscopeError", "record"]


def record(*arguments, **named):
    """Records a PyTorch training loop: see torch_recorder.Recorder, which this makes."""
    from .torch_recorder import Recorder
    return Recorder(*arguments, **named)


def __getattr__(name):
    if name in ("TraceReader", "TraceWriter"):
        from . import trace
        return getattr(trace, name)
    raise AttributeError(f"module 'trainscope' has no attribute '{name}'")
