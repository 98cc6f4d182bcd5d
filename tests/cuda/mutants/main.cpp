// The kernels' PTX without one barrier, wait for copies or bound check at a time: do the examples
// show it?
//
// Usage: cuda_mutants PTX_FOLDER [--kernels TEXT] [--seed N --count N] [--part I/N]
// --kernels: those whose names have the text in them.
// Each line is a mutant's: kind, "caught" or "survived", how, source file, its line, kernel, line
// of the PTX; tabs divide. Exit code 1: the kernels fail as they are; 2: the command line is wrong.
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>

#include "tests/cuda/mutants/gate.h"

namespace {

struct Options {
  std::string_view folder;
  std::string_view kernels = {};  // empty: all
  std::uint64_t seed = 1;
  std::size_t count = 0;  // 0: all
  std::size_t part = 0;
  std::size_t parts = 1;
};

bool read(std::string_view text, std::uint64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

std::optional<Options> options_of(int count, char** words) {
  if (count < 2 || count % 2 != 0) return std::nullopt;
  Options options{.folder = words[1]};
  for (int i = 2; i < count; i += 2) {
    const std::string_view name = words[i];
    const std::string_view value = words[i + 1];
    const std::size_t slash = value.find('/');
    bool is_right = false;
    if (name == "--kernels") {
      options.kernels = value;
      is_right = true;
    } else if (name == "--seed") {
      is_right = read(value, options.seed);
    } else if (name == "--count") {
      is_right = read(value, options.count) && options.count > 0;
    } else if (name == "--part" && slash != std::string_view::npos) {
      is_right = read(value.substr(0, slash), options.part) &&
                 read(value.substr(slash + 1), options.parts) && options.part < options.parts;
    }
    if (!is_right) return std::nullopt;
  }
  return options;
}

}  // namespace

int main(int count, char** words) {
  const std::optional<Options> options = options_of(count, words);
  if (!options) {
    std::fputs(
        "usage: cuda_mutants PTX_FOLDER [--kernels TEXT] [--seed N --count N] [--part I/N]\n",
        stderr);
    return 2;
  }
  try {
    trainscope::test::MutationGate gate{std::filesystem::path(options->folder)};
    gate.keep_named(options->kernels);
    if (options->count != 0) gate.choose(options->count, options->seed);
    gate.keep_part(options->part, options->parts);
    gate.run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "cuda_mutants: %s\n", error.what());
    return 1;
  }
  return 0;
}
