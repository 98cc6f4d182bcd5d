"""python -m trainscope COMMAND: recorders that need no script of their own."""
import argparse
import importlib
import sys

from .errors import TrainscopeError

# Command: module that has SUMMARY, add_arguments(parser) and run(arguments) -> exit code.
COMMANDS = {"interpret": "command_interpret", "onnxruntime": "command_onnxruntime",
            "ort-training": "command_ort_training", "statistics": "command_statistics",
            "reference": "command_reference"}


def main(words=None):
    """Runs a command line; the exit code (docs/exit-codes.md). One line says what is wrong."""
    parser = argparse.ArgumentParser(prog="python -m trainscope", description=__doc__)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, module in COMMANDS.items():
        command = importlib.import_module(f"{__package__}.{module}")
        own = commands.add_parser(name, help=command.SUMMARY, description=command.SUMMARY)
        command.add_arguments(own)
        own.set_defaults(function=command.run)
    arguments = parser.parse_args(words)
    try:
        return arguments.function(arguments)
    except TrainscopeError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.code
    except ImportError as error:
        print(f"error: {error}: this command needs it", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
