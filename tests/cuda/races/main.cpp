// CUDA kernels in the emulator under the thread sanitizer, to which each CUDA thread is a thread of
// its own, ordered by barriers and the end of a grid alone: what do two of them touch unordered?
//
// Usage: cuda_races [--whole] [--part I/N]
// One example for each kernel, in the order of threads and blocks by number; --whole: every
// example, in eight other orders, too. --part: each N-th example, from number I on. Tabs divide the
// words of a line:
//   known     what it is, "races" or "does not race", reports
//   case      name, kernel of the table, reports, orders, those of other bits than the first
//   launched  symbol, blocks: by the case above
// Reports of the sanitizer go to the standard error. Exit code 1: an example launches nothing, or
// writes where it may not; 2: the command line is wrong. races.py judges what the lines say.
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

#include "kernels/cuda/emulator/emulator.h"
#include "tests/cuda/races/cases.h"
#include "tests/cuda/races/faulty_kernels.h"

namespace {

std::int64_t reports = 0;  // of the sanitizer so far

}  // namespace

// The sanitizer's own hooks.
extern "C" {
void __tsan_on_report(void* /*report*/) { ++reports; }                                    // NOLINT
const char* __tsan_default_options() { return "exitcode=0:suppress_equal_addresses=0"; }  // NOLINT
}

namespace trainscope::test {
namespace {

constexpr std::uint64_t kOrders = 8;

struct Options {
  bool whole = false;
  std::size_t part = 0;
  std::size_t parts = 1;
};

bool read(std::string_view text, std::size_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

std::optional<Options> options_of(int count, char** words) {
  Options options;
  for (int i = 1; i < count; ++i) {
    const std::string_view word = words[i];
    if (word == "--whole") {
      options.whole = true;
    } else if (word == "--part" && i + 1 < count) {
      const std::string_view value = words[++i];
      const std::size_t slash = value.find('/');
      if (slash == std::string_view::npos || !read(value.substr(0, slash), options.part) ||
          !read(value.substr(slash + 1), options.parts) || options.part >= options.parts) {
        return std::nullopt;
      }
    } else {
      return std::nullopt;
    }
  }
  return options;
}

// Reports on what f does.
template <class F>
std::int64_t reports_on(F f) {
  const std::int64_t before = reports;
  f();
  return reports - before;
}

void run_known() {
  for (const KnownKernel& kernel : known_kernels()) {
    const std::int64_t found = reports_on(kernel.run);
    std::printf("known\t%s\t%s\t%lld\n", kernel.name.c_str(),
                kernel.races ? "races" : "does not race", static_cast<long long>(found));
  }
}

RunResult run_in_order(const RaceCase& each, std::uint64_t seed) {
  cuda::emulator::set_seed(seed);
  RunResult result = run_kernel(*each.op_case, *each.kernel, {});
  cuda::emulator::set_seed(0);
  for (const std::string& fault : result.faults) {
    throw std::runtime_error(each.name() + ": " + fault);
  }
  return result;
}

void run_case(const RaceCase& each, std::uint64_t orders) {
  std::uint64_t other_bits = 0;
  const std::int64_t found = reports_on([&] {
    const RunResult first = run_in_order(each, 0);
    for (std::uint64_t seed = 1; seed < orders; ++seed) {
      if (!same_bytes(first.outputs, run_in_order(each, seed).outputs)) ++other_bits;
    }
  });
  std::printf("case\t%s\t%s\t%lld\t%llu\t%llu\n", each.name().c_str(),
              std::string(each.kernel->name).c_str(), static_cast<long long>(found),
              static_cast<unsigned long long>(orders), static_cast<unsigned long long>(other_bits));
  for (const Launched& launched : each.launched) {
    std::printf("launched\t%s\t%llu\n", launched.symbol.c_str(),
                static_cast<unsigned long long>(launched.blocks));
  }
  std::fflush(stdout);
}

void run(const Options& options) {
  run_known();
  const RaceCases cases;
  const std::vector<RaceCase> chosen = options.whole ? cases.all() : cases.one_for_each_kernel();
  const std::uint64_t orders = options.whole ? kOrders + 1 : 1;
  for (std::size_t i = options.part; i < chosen.size(); i += options.parts) {
    run_case(chosen[i], orders);
  }
}

}  // namespace
}  // namespace trainscope::test

int main(int count, char** words) {
  const std::optional<trainscope::test::Options> options =
      trainscope::test::options_of(count, words);
  if (!options) {
    std::fputs("usage: cuda_races [--whole] [--part I/N]\n", stderr);
    return 2;
  }
  try {
    trainscope::test::run(*options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "cuda_races: %s\n", error.what());
    return 1;
  }
  return 0;
}
