"""Arguments that several commands of this package take."""
import json
from pathlib import Path

from .errors import TrainscopeError


def steps_listed(text):
    """ "1,5,100" -> {1, 5, 100}. Raises TrainscopeError for anything else."""
    try:
        steps = {int(word) for word in text.split(",")}
    except ValueError:
        steps = set()
    if not steps or min(steps) < 1:
        raise TrainscopeError(f"'{text}': expected steps from 1 on, with commas between", 2)
    return steps


def patterns_listed(text):
    """ "a,b*" -> ["a", "b*"]; nothing -> []."""
    return text.split(",") if text else []


def names_listed(path):
    """The names in a file, one a line: names of exporters may hold spaces."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise TrainscopeError(f"'{path}' cannot be read: {error.strerror}", 6) from error
    except ValueError as error:
        raise TrainscopeError(f"'{path}' is no text in UTF-8: {error}") from error
    return [line.strip() for line in text.splitlines() if line.strip()]


def json_file(path):
    """What a JSON file holds."""
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise TrainscopeError(f"'{path}' cannot be read: {error.strerror}", 6) from error
    except ValueError as error:
        raise TrainscopeError(f"'{path}' is no JSON: {error}") from error


def described(text, kind):
    """A dict of JSON ('{"kind": "sgd", "lr": 0.1}') or of `sgd:lr=0.1,momentum=0.9`: `kind` is
    first.

    Numbers become numbers, A:B lists of them. Raises TrainscopeError for what is neither.
    """
    if text.startswith("{"):
        try:
            return json.loads(text)
        except ValueError as error:
            raise TrainscopeError(f"'{text}' is no JSON: {error}", 2) from error
    name, _, rest = text.partition(":")
    about = {kind: name}
    for part in rest.split(",") if rest else []:
        key, equal, value = part.partition("=")
        if not equal:
            raise TrainscopeError(f"'{part}' in '{text}': expected KEY=VALUE", 2)
        about[key] = _value(value)
    return about


def asked_training(arguments):
    """What a command trains, of its --model, --data, --loss, --optimizer and --meta: paths of the
    model and the data, descriptions of loss and optimizer, and the names of what is trained (None:
    not said). Of a folder of reference numbers all that is not given.

    Raises TrainscopeError where data or loss are not known.
    """
    folder = Path(arguments.model) if Path(arguments.model).is_dir() else None
    meta_file = getattr(arguments, "meta", None) or (folder and folder / "meta.json")
    meta = json_file(meta_file) if meta_file else {}
    model = folder / "model.onnx" if folder else Path(arguments.model)
    data = arguments.data or (folder and folder / "reference.safetensors")
    loss = described(arguments.loss, "kind") if arguments.loss else meta.get("loss")
    if not data or not loss:
        raise TrainscopeError("--data and --loss say what to train on: only a reference's folder "
                              "has both", 2)
    optimizer = meta.get("optimizers", {}).get(arguments.optimizer) or described(
        arguments.optimizer, "kind")
    return model, data, loss, optimizer, meta.get("trainable")


def _value(text):
    numbers = []
    for word in text.split(":"):
        try:
            numbers.append(int(word))
        except ValueError:
            try:
                numbers.append(float(word))
            except ValueError:
                return text
    return numbers if len(numbers) > 1 else numbers[0]
