#!/usr/bin/python3
"""Recording a PyTorch loop by hooks, against the interpreter on the exported graph.

Exit code 77 (skipped) without numpy, torch or onnx.
"""
import unittest
import warnings

from support import MODELS, FolderCase, skip_without

skip_without("numpy", "torch", "onnx")
import numpy  # noqa: E402
import torch  # noqa: E402
import trainscope  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402
from trainscope.batches import reference_batches  # noqa: E402
from trainscope.graph_training import GraphTraining  # noqa: E402
from trainscope.module_names import module_values  # noqa: E402
from trainscope.onnx_graph import Graph  # noqa: E402
from trainscope.trace import TraceReader  # noqa: E402

LOSS = {"kind": "cross_entropy", "output": "logits", "label": "labels"}


class Block(nn.Module):
    """Convolution, batch norm and a Relu that works in place and is called twice."""

    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(channels)
        self.relu = nn.ReLU(inplace=True)
        self.last = nn.Conv2d(channels, channels, 1)

    def forward(self, x):
        y = self.relu(self.norm(self.conv(x)))
        return self.relu(x + self.last(y)), y


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(2, 4, 3, padding=1), nn.Identity(), nn.Tanh())
        self.blocks = nn.ModuleList([Block(4), Block(4)])
        self.head = nn.Linear(4, 3)

    def forward(self, x):
        h = self.stem(x)
        for block in self.blocks:
            h, _ = block(h)
        return self.head(functional.gelu(h).mean((2, 3)))


def exported(model, x, path, dynamo=False):
    """Writes the training graph of a model to path, and leaves the model as it was."""
    state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    arguments = {"input_names": ["x"], "output_names": ["logits"], "opset_version": 17}
    if dynamo:
        arguments = {**arguments, "dynamo": True, "optimize": False, "opset_version": 18}
    else:
        arguments.update(training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False)
        if torch.__version__ >= "2.5":
            arguments["dynamo"] = False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(model, (x,), str(path), **arguments)
    model.load_state_dict(state)


def data(examples=6):
    generator = torch.Generator().manual_seed(5)
    return (torch.randn(examples, 2, 5, 5, generator=generator),
            torch.randint(3, (examples,), generator=generator))


def distances(first, second):
    """{(step, micro-batch, key): relative distance} of the rows that both traces have."""
    places = {(row.step, row.micro_batch, row.key()): place for place, row in enumerate(second.rows)}
    found = {}
    for place, row in enumerate(first.rows):
        at = (row.step, row.micro_batch, row.key())
        if at in places:
            gap = numpy.linalg.norm(first.sketch(place) - second.sketch(places[at]))
            found[at] = gap / max(row.statistics.l2, 1e-12)
    return found


class Loops(FolderCase):
    def setUp(self):
        super().setUp()
        torch.set_num_threads(1)
        torch.manual_seed(1)

    def interpreted(self, path, optimizer, batches, steps, statistics=None):
        training = GraphTraining(path, LOSS, optimizer, statistics=statistics)
        training.train(batches, steps, self.folder / "interpreted")
        return TraceReader(self.folder / "interpreted")

    def test_mlp_pairs_with_the_interpreter_on_the_exporters_graph(self):
        path = MODELS / "mlp" / "model.onnx"
        model = nn.Sequential(nn.Linear(33, 64), nn.ReLU(), nn.Linear(64, 48), nn.ReLU(),
                              nn.Linear(48, 10))
        model.load_state_dict({name: torch.from_numpy(array.copy())
                               for name, array in Graph(path).initializers.items()})
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01)
        batches = reference_batches(MODELS / "mlp" / "reference.safetensors")
        with trainscope.record(model, optimizer, self.folder / "hooks", names=path) as recorder:
            for step in range(5):
                batch = {name: torch.from_numpy(array.copy())
                         for name, array in batches[step % 2].items()}
                recorder.batch(labels=batch["labels"])
                loss = recorder.loss(functional.cross_entropy(model(batch["x"]), batch["labels"]))
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        hooks = TraceReader(self.folder / "hooks")
        self.assertEqual(hooks.steps(), [1, 2, 5])
        other = self.interpreted(path, {"kind": "adamw", "lr": 1e-3, "weight_decay": 0.01},
                                 lambda step: [batches[(step - 1) % 2]], 5)
        found = distances(hooks, other)
        self.assertEqual(len(found), len(hooks.rows))
        self.assertEqual({row.key() for row in hooks.rows}, {row.key() for row in other.rows})
        self.assertLess(max(found.values()), 2e-6, max(found, key=found.get))
        self.assertEqual(hooks.header["model"], other.header["model"])

    def check_network(self, dynamo):
        model, (x, labels) = Network().train(), data()
        path = self.folder / "model.onnx"
        exported(model, x, path, dynamo)
        fresh = {name: tensor.numpy().copy() for name, tensor in model.named_buffers()
                 if tensor.is_floating_point()}
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
        with trainscope.record(model, optimizer, self.folder / "hooks", names=path,
                               steps=(1, 2)) as recorder:
            for _ in range(2):
                optimizer.zero_grad()
                recorder.loss(functional.cross_entropy(model(x), labels)).backward()
                optimizer.step()
        hooks = TraceReader(self.folder / "hooks")
        batch = {"x": x.numpy(), "labels": labels.numpy()}
        other = self.interpreted(path, {"kind": "sgd", "lr": 0.05, "momentum": 0.9},
                                 lambda step: [batch], 2, fresh)
        return hooks, other, distances(hooks, other)

    def test_convolutions_with_shared_modules_in_place(self):
        hooks, other, found = self.check_network(dynamo=False)
        alone = [row.key() for row in hooks.rows if row.kind == "own"]
        self.assertEqual(alone, [])
        self.assertEqual(len(found), len(hooks.rows))
        values = {row.value for row in hooks.rows if row.kind == "act"}
        # Each module's output: stem and its two, twice norm, convolutions and both calls of relu; a
        # block's own is that of its second relu, the whole model's that of the head.
        self.assertEqual(len(values), 2 + 2 * 5 + 1)
        gradients = {row.value for row in hooks.rows if row.kind == "dact"}
        self.assertEqual(gradients, values)
        self.assertLess(max(found.values()), 1e-5, max(found, key=found.get))

    @unittest.skipUnless(torch.__version__ >= "2.6", "torch.onnx.export(dynamo=True) is of torch 2.6")
    def test_the_other_exporters_graph(self):
        try:
            import onnxscript  # noqa: F401
        except ImportError:
            self.skipTest("onnxscript is not installed")
        hooks, _, found = self.check_network(dynamo=True)
        acts = [at for at in found if at[2].startswith("act:")]
        self.assertEqual(len(acts), 2 * 13)
        self.assertLess(max(found.values()), 1e-5, max(found, key=found.get))

    def test_micro_batches_of_a_scaled_loss(self):
        model, (x, labels) = nn.Sequential(nn.Flatten(), nn.Linear(50, 3)), data()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        path = self.folder / "model.onnx"
        exported(model, x[:3], path)
        with trainscope.record(model, optimizer, self.folder / "hooks", names=path,
                               loss_scale=0.5) as recorder:
            for part in (slice(0, 3), slice(3, 6)):
                recorder_loss = functional.cross_entropy(model(x[part]), labels[part])
                recorder.batch(labels=labels[part])
                (recorder.loss(recorder_loss) * 0.5).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1e-9)  # later than what is recorded
            optimizer.step()
        hooks = TraceReader(self.folder / "hooks")
        self.assertEqual(hooks.header["micro_batches"], 2)
        halves = [{"x": x[part].numpy(), "labels": labels[part].numpy()}
                  for part in (slice(0, 3), slice(3, 6))]
        other = self.interpreted(path, {"kind": "sgd", "lr": 0.1}, lambda step: halves, 1)
        found = distances(hooks, other)
        gradients = {at: gap for at, gap in found.items() if at[2].startswith(("grad:", "dact:"))}
        self.assertEqual(len(gradients), 2 * 3)
        self.assertLess(max(gradients.values()), 1e-5)
        self.assertEqual({at[1] for at in found}, {0, 1})

    def test_evaluation_between_is_no_micro_batch(self):
        model, (x, labels) = nn.Sequential(nn.Flatten(), nn.Linear(50, 3)), data()
        optimizer = torch.optim.Adam(model.parameters())
        with trainscope.record(model, optimizer, self.folder / "r"):
            for _ in range(2):
                with torch.no_grad():
                    model(torch.zeros_like(x))
                functional.cross_entropy(model(x), labels).backward()
                with torch.no_grad():
                    model(torch.zeros_like(x))
                optimizer.step()
                optimizer.zero_grad()
        trace = TraceReader(self.folder / "r")
        self.assertEqual(trace.header["micro_batches"], 1)
        rows = [row for row in trace.rows if row.step == 2]
        self.assertEqual([row.key() for row in rows],
                         ["input:input", "act:0", "act:1", "act:Sequential", "dact:1", "dact:Sequential",
                          "grad:1.bias", "grad:1.weight", "param:1.weight", "param:1.bias",
                          "state:ai.trainscope.adam.m/1.weight", "state:ai.trainscope.adam.m/1.bias",
                          "state:ai.trainscope.adam.v/1.weight",
                          "state:ai.trainscope.adam.v/1.bias"])

    def test_leaves_model_and_optimizer_as_they_were(self):
        model, (x, labels) = nn.Sequential(nn.Flatten(), nn.Linear(50, 3)), data()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with trainscope.record(model, optimizer, self.folder / "r", steps=[1, 2, 3]):
            schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1)
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                for _ in range(3):
                    optimizer.zero_grad()
                    functional.cross_entropy(model(x), labels).backward()
                    optimizer.step()
                    schedule.step()
        rows = TraceReader(self.folder / "r").rows
        self.assertEqual(sorted({row.step for row in rows}), [0, 1, 2, 3])
        functional.cross_entropy(model(x), labels).backward()
        optimizer.step()
        self.assertEqual(len(TraceReader(self.folder / "r").rows), len(rows))
        self.assertFalse(any(module._forward_hooks for module in model.modules()))
        self.refuses("holds a trace already", 2, trainscope.record, model, optimizer,
                     self.folder / "r")

    def test_tied_and_frozen_parameters_and_bf16(self):
        class Tied(nn.Module):
            def __init__(self):
                super().__init__()
                self.table = nn.Embedding(7, 4)
                self.head = nn.Linear(4, 7, bias=False)
                self.head.weight = self.table.weight
                self.frozen = nn.Linear(4, 4)
                self.frozen.requires_grad_(False)

            def forward(self, ids, shift=None):
                return self.head(self.frozen(self.table(ids)) + shift)

        model = Tied().to(torch.bfloat16)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        ids = torch.arange(6)
        with trainscope.record(model, optimizer, self.folder / "r", full=["*weight"]):
            model(ids, shift=torch.ones(4, dtype=torch.bfloat16)).float().logsumexp(1).sum().backward()
            optimizer.step()
        trace = TraceReader(self.folder / "r")
        keys = [row.key() for row in trace.rows if row.step == 1]
        self.assertEqual([key for key in keys if key.startswith(("grad", "param"))],
                         ["grad:table.weight", "param:table.weight"])
        kept = trace.elements(1)["param:table.weight"]
        self.assertEqual(kept.dtype, "bf16")
        self.assertTrue(torch.equal(torch.from_numpy(kept.numbers()).bfloat16().reshape(7, 4),
                                    model.table.weight.detach()))


class Names(unittest.TestCase):
    def test_of_modules_in_an_exporters_graph(self):
        values = module_values(Graph(MODELS / "resnet18" / "model.onnx"))
        self.assertEqual(values["layers.0.conv1"], ["/layers/layers.0/conv1/Conv_output_0"])
        self.assertEqual(values["layers.0"], ["/layers/layers.0/Relu_1_output_0"])
        self.assertEqual(values[""], ["logits"])
        values = module_values(Graph(MODELS / "gpt2" / "model.onnx"))
        self.assertEqual(values["h.1.attn.proj"], ["/h.1/attn/proj/Add_output_0"])


if __name__ == "__main__":
    unittest.main()
