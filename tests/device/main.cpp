// device_self_test: what a device does, against what it promises and against the CPU. Needs nothing
// beside it, so that it can be carried to a machine that has the device.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/exec/backends.h"
#include "engine/ops/standard_ops.h"
#include "tests/device/device_functions.h"
#include "tests/device/op_examples_suite.h"
#include "tests/device/supervised.h"
#include "tests/support/copying_device.h"

namespace trainscope::test {
namespace {

constexpr const char* kUsage =
    "usage: device_self_test [--device cpu|cuda|cuda:N|copying] [--op NAME] [--seconds N]\n"
    "Runs the device's functions, then every example of every op that it has a kernel for: "
    "against\n"
    "the CPU's f64 reference, over NaN, captured and replayed, in place, on operands that are not\n"
    "aligned. A row per op, type and kernel. Exit code 0: all within their limits; 4: no device.\n";

struct Words {
  std::string device = "cuda";
  std::string op;
  double seconds = 3600.0;
};

// What an error says, with its places.
std::string text_of(const Error& error) {
  std::vector<std::string> pieces{error.message()};
  pieces.insert(pieces.end(), error.context().begin(), error.context().end());
  return join(pieces, ": ");
}

DeviceHandle device_named(const std::string& name) {
  if (name == "copying") return std::make_shared<CopyingDevice>();
  try {
    return device_of(name);
  } catch (const Error& error) {
    throw std::runtime_error(text_of(error));
  }
}

// What is told of a kernel: a line for each example that fails, a row for all of them.
struct Tally {
  int examples = 0;
  int failed = 0;
  double worst_share = 0.0;  // of the limit
};

class Results {
 public:
  void take(const std::string& line) {
    const std::vector<std::string_view> fields = split(line, '\t');
    if (fields.size() != 6) {
      fmt::print("{}\n", line);
      return;
    }
    Tally& tally =
        tallies_[{std::string(fields[0]), std::string(fields[1]), std::string(fields[2])}];
    ++tally.examples;
    tally.worst_share =
        std::max(tally.worst_share, std::strtod(std::string(fields[4]).c_str(), nullptr));
    if (fields[5].empty()) return;
    ++tally.failed;
    ++failed_;
    fmt::print("FAIL {} {} {} \"{}\": {}\n", fields[0], fields[1], fields[2], fields[3], fields[5]);
    std::fflush(stdout);
  }
  void lose(const SuiteCase& suite_case, const std::string& how) {
    fmt::print("LOST {} \"{}\" {}: {}\n", suite_case.row->name, suite_case.text,
               name_of(suite_case.float_type), how);
    ++failed_;
    ++tallies_[{std::string(suite_case.row->name), std::string(name_of(suite_case.float_type)),
                "(lost)"}]
          .failed;
  }
  void print() const {
    int examples = 0;
    fmt::print("\n     {:32} {:5} {:28} {:>8} {:>6} {:>12}\n", "op", "type", "kernel", "examples",
               "failed", "worst/limit");
    for (const auto& [key, tally] : tallies_) {
      const auto& [op, type, kernel] = key;
      fmt::print("{:4} {:32} {:5} {:28} {:8} {:6} {:12.4f}\n", tally.failed == 0 ? "ok" : "FAIL",
                 op, type, kernel, tally.examples, tally.failed, tally.worst_share);
      examples += tally.examples;
    }
    fmt::print("total: {} rows, {} examples, {} failed\n", tallies_.size(), examples, failed_);
  }
  int failed() const { return failed_; }

 private:
  std::map<std::tuple<std::string, std::string, std::string>, Tally> tallies_;
  int failed_ = 0;
};

std::string line_of(const SuiteRow& row) {
  std::string faults = join(row.faults, "; ");
  std::ranges::replace(faults, '\t', ' ');
  std::ranges::replace(faults, '\n', ' ');
  return fmt::format("{}\t{}\t{}\t{}\t{:.6e}\t{}", row.op, row.dtype, row.kernel, row.example,
                     row.error / std::max(row.limit, 1e-300), faults);
}

// The functions in one piece, before the examples, which run in others.
int run_functions(const Words& words) {
  int failed = 0;
  const auto piece = [&](std::size_t, const Report& report) {
    for (const Promise& promise : check_device_functions(*device_named(words.device))) {
      report(fmt::format("{:4} {}{}{}", promise.fault.empty() ? "ok" : "FAIL", promise.name,
                         promise.fault.empty() ? "" : ": ", promise.fault));
    }
    return true;
  };
  const SupervisedEvents events{.line =
                                    [&failed](const std::string& line) {
                                      if (line.starts_with("FAIL")) ++failed;
                                      fmt::print("{}\n", line);
                                    },
                                .lost =
                                    [&failed](std::size_t, const std::string& how) {
                                      ++failed;
                                      fmt::print("LOST the device's functions: {}\n", how);
                                    }};
  (void)run_supervised(
      {.pieces = 1, .total_seconds = words.seconds}, [] {}, piece, events);
  fmt::print("functions: {} failed\n", failed);
  return failed;
}

int run_examples(const Words& words) {
  const OpTable ops = standard_ops();
  const std::vector<SuiteCase> cases = suite_cases(ops, words.op);
  Results results;
  DeviceHandle device;
  std::unique_ptr<ExampleSuite> suite;
  const auto start = [&] {
    device = device_named(words.device);
    suite = std::make_unique<ExampleSuite>(*device, ops);
  };
  const auto piece = [&](std::size_t i, const Report& report) {
    bool goes_on = true;
    try {
      for (const SuiteRow& row : suite->run(cases[i])) {
        report(line_of(row));
        goes_on = goes_on && !row.device_lost;
      }
    } catch (const Error& error) {
      report(line_of({.op = std::string(cases[i].row->name),
                      .kernel = "(none)",
                      .dtype = std::string(name_of(cases[i].float_type)),
                      .example = std::string(cases[i].text),
                      .faults = {text_of(error)}}));
    }
    return goes_on;
  };
  const SupervisedEvents events{
      .line = [&results](const std::string& line) { results.take(line); },
      .lost = [&](std::size_t i, const std::string& how) { results.lose(cases[i], how); }};
  const std::size_t began = run_supervised({.pieces = cases.size(), .total_seconds = words.seconds},
                                           start, piece, events);
  results.print();
  if (began < cases.size()) fmt::print("{} cases did not begin\n", cases.size() - began);
  return results.failed() + (began < cases.size() ? 1 : 0);
}

// Empty when the device is there. In a process of its own: a driver does not survive a fork.
std::string why_absent(const Words& words) {
  std::string why;
  const auto piece = [&](std::size_t, const Report& report) {
    const DeviceHandle device = device_named(words.device);
    report(fmt::format("device {}", device->facts().name));
    if (words.device.starts_with("cuda")) {
      for (const std::string& line : cuda_description(words.device)) report("       " + line);
    }
    return true;
  };
  const auto start = [&words] { (void)device_named(words.device); };
  (void)run_supervised({.pieces = 1}, start, piece,
                       {.line =
                            [&why](const std::string& line) {
                              if (line.starts_with("! ")) why = line.substr(2);
                              fmt::print("{}\n", line);
                            },
                        .lost = [&why](std::size_t, const std::string& how) { why = how; }});
  return why;
}

int run(int count, char** arguments) {
  Words words;
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string_view flag = arguments[i];
    if (flag == "--device") words.device = arguments[i + 1];
    if (flag == "--op") words.op = arguments[i + 1];
    if (flag == "--seconds") words.seconds = std::strtod(arguments[i + 1], nullptr);
  }
  if (count % 2 == 0) {
    fmt::print("{}", kUsage);
    return 2;
  }
  if (!why_absent(words).empty()) return static_cast<int>(ErrorCode::kNoDevice);
  const int failed = run_functions(words) + run_examples(words);
  fmt::print("{}\n", failed == 0 ? "all is well" : fmt::format("{} failures", failed));
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace trainscope::test

int main(int count, char** arguments) { return trainscope::test::run(count, arguments); }
