#!/usr/bin/python3
"""nanoGPT's small CPU recipe in PyTorch on a text file: prints one JSON line.

    torch_recipe.py --text FILE --seed 1

Batches are random windows of the first 90 % of the text, as nanoGPT draws them; the loss is that of
all the other text in windows that do not overlap. bench/recipe.py runs the same with Trainscope.
"""
import argparse
import json
import math
import time

import torch
from torch.nn import functional as F

import torch_models

CONTEXT, BATCH = 64, 12
RATE, LEAST_RATE, WARM_UP_STEPS = 1e-3, 1e-4, 100


def learning_rate(step, steps):
    if step <= WARM_UP_STEPS:
        return RATE * step / WARM_UP_STEPS
    part = (step - WARM_UP_STEPS) / (steps - WARM_UP_STEPS)
    return LEAST_RATE + (RATE - LEAST_RATE) * (1 + math.cos(math.pi * part)) / 2


def read_text(path):
    with open(path, encoding="utf-8", newline="") as file:
        text = file.read()
    characters = sorted(set(text))
    ids = {character: i for i, character in enumerate(characters)}
    data = torch.tensor([ids[character] for character in text])
    split = int(0.9 * len(data))
    return data[:split], data[split:], len(characters)


def validation_loss(model, data):
    """Mean over every character after the first."""
    total = 0.0
    with torch.no_grad():
        for begin in range(0, len(data) - 1, CONTEXT):
            window = data[begin: begin + CONTEXT + 1]
            loss = F.cross_entropy(model.logits(window[None, :-1])[0], window[1:], reduction="sum")
            total += loss.item()
    return total / (len(data) - 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()

    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    train, validation, vocab = read_text(options.text)
    model = torch_models.Gpt(layers=4, heads=4, width=128, vocab=vocab, context=CONTEXT,
                             bias=False, gelu="none")
    optimizer = torch_models.adamw(model, lr=RATE, betas=(0.9, 0.99))
    start = time.perf_counter()
    for step in range(1, options.steps + 1):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, options.steps)
        begins = torch.randint(len(train) - CONTEXT, (BATCH,)).tolist()
        rows = torch.stack([train[begin: begin + CONTEXT + 1] for begin in begins])
        loss = model(rows[:, :-1].contiguous(), rows[:, 1:].contiguous())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    seconds = time.perf_counter() - start
    print(json.dumps({"peer": f"torch {torch.__version__}", "seed": options.seed,
                      "steps": options.steps, "training_s": seconds, "last_loss": loss.item(),
                      "validation_loss": validation_loss(model, validation),
                      "validation_characters": len(validation) - 1}), flush=True)


if __name__ == "__main__":
    main()
