// docs/ops.md and docs/passes.md are what the tables say.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "engine/check/ops_markdown.h"
#include "engine/check/passes_markdown.h"
#include "engine/compile.h"
#include "engine/core/file.h"
#include "engine/exec/backends.h"
#include "engine/ops/standard_ops.h"

namespace trainscope {
namespace {

constexpr std::uint64_t kMaxBytes = 1 << 20;

// The first line in which two texts differ, for the message.
std::string first_difference(const std::string& have, const std::string& want) {
  const auto [a, b] = std::mismatch(have.begin(), have.end(), want.begin(), want.end());
  const auto begin = want.rfind('\n', static_cast<std::size_t>(b - want.begin()));
  return want.substr(begin == std::string::npos ? 0 : begin + 1, 200);
}

void check_current(const std::string& name, const std::string& want) {
  const std::filesystem::path docs = TRAINSCOPE_SOURCE_DIR "/docs";
  const char* update = std::getenv("TRAINSCOPE_UPDATE_DOCS");
  if (update != nullptr && std::string(update) == "1") {
    make_directories(docs);
    write_file_atomic(docs / name, want);
  }
  REQUIRE_MESSAGE(std::filesystem::exists(docs / name),
                  "run this test with TRAINSCOPE_UPDATE_DOCS=1 to write docs/", name);
  const std::string have = read_file(docs / name, kMaxBytes);
  CHECK_MESSAGE(have == want,
                "run this test with TRAINSCOPE_UPDATE_DOCS=1; first line that differs: ",
                first_difference(have, want));
}

}  // namespace

TEST_CASE("ops_markdown: docs/ops.md is current") {
  check_current("ops.md", ops_markdown(standard_ops(), cpu_kernels()));
}

TEST_CASE("passes_markdown: docs/passes.md is current") {
  check_current("passes.md", passes_markdown(default_passes(), program_stages()));
}

TEST_CASE("passes_markdown: a pass that runs twice is one row with both places") {
  const Pass a{.name = "a", .doc = "First.", .run = nullptr};
  const Pass b{.name = "b", .formerly = "c", .doc = "Second.", .run = nullptr};
  const Pass pipeline[] = {a, b, a};
  const ProgramStage stage{.name = "d",
                           .when = "always",
                           .doc = "Fourth.",
                           .page = "d.md",
                           .applies = nullptr,
                           .run = nullptr};
  const std::string text = passes_markdown(pipeline, {&stage, 1});
  CHECK(text.ends_with("| d | always | Fourth. ([d.md](d.md)) |\n"));
  CHECK(text.find("| 01, 03 | a | First. |\n| 02 | b | Second. Formerly `c`, which is "
                  "accepted too. |\n") != std::string::npos);
}

TEST_CASE("ops_markdown: a row with its attributes, gradient and kernels") {
  const std::string text = ops_markdown(standard_ops(), cpu_kernels());
  CHECK(
      text.find(
          "| MeanSquaredError | loss | x, target -> mean of (x - target)^2 over all elements | 2 | "
          "1 |  | rule |  |  | no |  | light | `mean_squared_error.reference` f32 f64 |\n") !=
      std::string::npos);
  CHECK(text.find("| Dropout | ") != std::string::npos);
}

}  // namespace trainscope
