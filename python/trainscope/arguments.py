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
