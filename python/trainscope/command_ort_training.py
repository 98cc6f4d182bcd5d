"""python -m trainscope ort-training: steps of ONNX Runtime Training's on-device API."""
from .arguments import asked_training, patterns_listed, steps_listed
from .batches import Batches
from .onnxruntime_training import record_training

SUMMARY = "Train by ONNX Runtime Training's on-device API and record losses, gradients, parameters."


def add_arguments(parser):
    parser.add_argument("model", help="model.onnx, or a folder of reference numbers")
    parser.add_argument("--data", help="safetensors: see interpret")
    parser.add_argument("--batch", type=int, help="examples in a batch")
    parser.add_argument("--steps", type=int, default=10, help="steps to train [10]")
    parser.add_argument("--loss", help="cross_entropy:output=logits,label=labels; of a folder its "
                                       "meta.json's")
    parser.add_argument("--optimizer", default="adamw",
                        help="adamw:lr=1e-3,weight_decay=0.01, sgd:lr=0.1, or the name of one in "
                             "meta.json")
    parser.add_argument("--run-dir", required=True, help="the run's folder; the trace is numerics/")
    parser.add_argument("--values", help="record these values of the graph too (commas between)")
    parser.add_argument("--record-steps", help="1,5,100: in place of 1, 2, 5, 10, 20 ... and the last")
    parser.add_argument("--record-full", help="keep all elements of these values (patterns)")


def run(arguments):
    model, data, loss, optimizer, trainable = asked_training(arguments)
    losses = record_training(
        model, loss, optimizer, Batches(data, arguments.batch).of_step, arguments.steps,
        arguments.run_dir, trainable, patterns_listed(arguments.values),
        steps_listed(arguments.record_steps) if arguments.record_steps else None,
        patterns_listed(arguments.record_full))
    for step, value in enumerate(losses, 1):
        print(f"step {step}/{len(losses)}  loss {value:.9g}")
    return 0
