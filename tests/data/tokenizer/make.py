"""Makes the files of this folder, and datasets/samples/tokenizer.json, with Hugging Face's tokenizers 0.23."""
import json
from pathlib import Path

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

FOLDER = Path(__file__).resolve().parent
SAMPLES = FOLDER.parents[2] / "datasets" / "samples"
TEXTS = ["", " ", "the cat sees the dog.", "  two  spaces\n\tand a tab ", "don't we'll I'M they've",
         "<|endoftext|>", "a<|endoftext|>b <|end|> c<|end|><|endoftext|>", "Grüße, κόσμε 日本 🙂 123456",
         "x" * 70 + " " + "y1" * 30, "line\r\nline\n\n\nend", "<|end", "\u00a0no\u2003break"]


def made(text, prefix_space, name):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=prefix_space)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=330, special_tokens=["<|endoftext|>"],
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(text.splitlines(), trainer)
    tokenizer.add_special_tokens([AddedToken("<|end|>", special=True)])
    tokenizer.save(str(name), pretty=False)
    return [{"text": each, "ids": tokenizer.encode(each).ids} for each in TEXTS]


def main():
    text = (SAMPLES / "text.txt").read_text()
    made(text, False, SAMPLES / "tokenizer.json")
    expected = {"plain": made(text, False, FOLDER / "plain.json"),
                "prefix": made(text, True, FOLDER / "prefix.json")}
    (FOLDER / "expected.json").write_text(json.dumps(expected) + "\n")
    lines = text.splitlines()[:60]
    (SAMPLES / "lines.jsonl").write_text("".join(json.dumps({"id": i, "text": line}) + "\n"
                                                 for i, line in enumerate(lines)))


if __name__ == "__main__":
    main()
