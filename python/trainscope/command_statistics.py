"""python -m trainscope statistics: folders of ONNX Runtime's StatisticsSubscriber."""
from .arguments import json_file
from .errors import TrainscopeError
from .onnxruntime_statistics import (compared, read_statistics, statistics_of_tensor,
                                     write_statistics)
from .trace import TraceReader

SUMMARY = "Show a folder of ONNX Runtime's StatisticsSubscriber, compare it with a trace, or write one."


def add_arguments(parser):
    parser.add_argument("folder", help="with step_0, step_1 ...; with --write: to be made")
    parser.add_argument("--run", help="a run or trace to compare with, or to write from")
    parser.add_argument("--names", help='a JSON file: {"Linear_1": "/0/Gemm_output_0"}')
    parser.add_argument("--limit", type=float, default=1e-5,
                        help="exit with 9 where minimum, maximum or mean is further off, in units of "
                             "the root mean square [1e-5]")
    parser.add_argument("--write", action="store_true",
                        help="write the folder from the whole tensors that the run kept")


def run(arguments):
    if (arguments.run is None) != (arguments.names is None) or arguments.write and not arguments.run:
        raise TrainscopeError("--run and --names go together, and --write needs both", 2)
    if arguments.write:
        return _write(arguments)
    steps = read_statistics(arguments.folder)
    if not arguments.run:
        for step, statistics in steps.items():
            print(f"step {step}")
            for s in statistics:
                print(f"  {s.name:<28} {s.direction:<8} {'x'.join(map(str, s.shape)):>12} "
                      f"mean {s.mean:>11.4g}  min {s.least:>11.4g}  max {s.most:>11.4g}  "
                      f"nan {s.nan}  inf {s.infinite}")
        return 0
    trace, names = TraceReader(arguments.run), json_file(arguments.names)
    apart = [(step, each) for step, statistics in steps.items()
             for each in compared(statistics, trace, step + 1, names)]
    if not apart:
        raise TrainscopeError(f"'{arguments.folder}' and '{arguments.run}' have no value in common", 2)
    for step, each in apart:
        mark = " <- over the limit" if each.relative > arguments.limit else ""
        print(f"step {step}  {each.name:<28} {each.direction:<8} {each.value:<28} {each.what:<4} "
              f"{each.theirs:>12.6g} {each.ours:>12.6g} {each.relative:>9.2e}{mark}")
    return 9 if any(each.relative > arguments.limit for _, each in apart) else 0


def _write(arguments):
    """Steps of a StatisticsSubscriber count from 0, a trace's from 1."""
    trace, names = TraceReader(arguments.run), json_file(arguments.names)
    modules = {value: module for module, value in reversed(names.items())}
    written = 0
    for step in trace.steps():
        kept = trace.elements(step)
        rows = [row for row in trace.rows if row.step == step and row.key() in kept
                and row.kind in ("act", "dact") and row.value in modules and row.micro_batch == 0]
        statistics = [statistics_of_tensor(f"{modules[row.value]}_0th_output",
                                           "forward" if row.kind == "act" else "backward",
                                           kept[row.key()]) for row in rows]
        if statistics:
            write_statistics(arguments.folder, step - 1, statistics)
            written += len(statistics)
    if written == 0:
        raise TrainscopeError(f"'{arguments.run}' kept no whole tensor of these values: record it "
                              "with --record-full", 2)
    print(f"{written} tensors of {len(trace.steps())} steps")
    return 0
