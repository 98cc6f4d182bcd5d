"""python -m trainscope reference export: a reference folder of a torch module, for `verify`."""
SUMMARY = "Write a folder of a torch module's numbers, in float64 and float32, for `trainscope verify`."


def add_arguments(parser):
    parser.add_argument("action", choices=("export",))
    parser.add_argument("where", metavar="MODULE", help="FILE.py:FUNCTION or MODULE:FUNCTION, which "
                                                        "returns module, batches and loss")
    parser.add_argument("--out", required=True, help="the folder, which is made")
    parser.add_argument("--threads", type=int, default=1, help="of PyTorch [1]")


def run(arguments):
    import torch

    from .reference import export, load
    torch.set_num_threads(arguments.threads)
    meta = export(load(arguments.where), arguments.out)
    noise = meta["noise"]
    print(f"{arguments.out}: {meta['parameters']['tensors']} parameters, {meta['nodes']} nodes; noise "
          f"of float32: loss {noise['loss_rel']:.1e}, gradients {noise['grad_all_rel_l2']:.1e}")
    margin = noise.get("kink_margin")
    if margin is not None and margin < 4.0:
        print(f"warning: an element of {noise['kink_nearest']} is {margin:.2g} float32 errors from "
              "where its derivative jumps, and may go the other way: take another seed or batch")
    return 0
