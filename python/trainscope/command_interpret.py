"""python -m trainscope interpret: trains an ONNX model by PyTorch, node by node, and records it."""
from .arguments import asked_training, names_listed, patterns_listed, steps_listed
from .batches import Batches

SUMMARY = "Train an ONNX model by PyTorch, node by node, and record every value and gradient."


def add_arguments(parser):
    parser.add_argument("model", help="model.onnx, or a folder of reference numbers")
    parser.add_argument("--data", help="safetensors: inputs and labels by name, an example a row, or "
                                       "batch.B:NAME; of a folder its reference.safetensors")
    parser.add_argument("--batch", type=int, help="examples in a batch of such rows")
    parser.add_argument("--accumulate", type=int, default=1, help="micro-batches in a step [1]")
    parser.add_argument("--steps", type=int, default=10, help="steps to train [10]")
    parser.add_argument("--loss", help="cross_entropy:output=logits,label=labels,class_axis=-1; of a "
                                       "folder its meta.json's")
    parser.add_argument("--optimizer", default="adamw",
                        help="adamw:lr=1e-3,weight_decay=0.01,betas=0.9:0.95,clip_norm=1, "
                             "sgd:lr=0.1,momentum=0.9, adam, rmsprop; or the name of one in meta.json")
    parser.add_argument("--meta", help="meta.json with trainable, loss, optimizers")
    parser.add_argument("--parameters", help="a file of the names to train, one a line")
    parser.add_argument("--dtype", choices=("f32", "f64"), default="f32")
    parser.add_argument("--run-dir", required=True, help="the run's folder; the trace is numerics/")
    parser.add_argument("--record-steps", help="1,5,100: in place of 1, 2, 5, 10, 20 ... and the last")
    parser.add_argument("--record-full", help="keep all elements of these values (patterns)")
    parser.add_argument("--batch-norm", choices=("batch", "running"), default="batch",
                        help="what batch norms of a file exported to evaluate normalize by [batch]")
    parser.add_argument("--threads", type=int, default=1, help="of PyTorch [1]")
    parser.add_argument("--seed", type=int, default=0, help="of dropout [0]")


def run(arguments):
    import torch

    from .graph_training import GraphTraining
    model, data, loss, optimizer, trainable = asked_training(arguments)
    if arguments.parameters:
        trainable = names_listed(arguments.parameters)
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(arguments.seed)
    training = GraphTraining(model, loss, optimizer, trainable, arguments.dtype,
                             batch_norm=arguments.batch_norm)
    batches = Batches(data, arguments.batch, arguments.accumulate)
    losses = training.train(
        batches.of_step, arguments.steps, arguments.run_dir,
        steps_listed(arguments.record_steps) if arguments.record_steps else None,
        patterns_listed(arguments.record_full))
    for step, value in enumerate(losses, 1):
        print(f"step {step}/{len(losses)}  loss {value:.9g}")
    return 0
