// docs/ops.md is what the tables say.
#include "engine/check/ops_markdown.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "engine/core/file.h"
#include "engine/exec/backends.h"
#include "engine/ops/standard_ops.h"

namespace trainscope {
namespace {

constexpr const char* kFile = TRAINSCOPE_SOURCE_DIR "/docs/ops.md";
constexpr std::uint64_t kMaxBytes = 1 << 20;

// The first line in which two texts differ, for the message.
std::string first_difference(const std::string& have, const std::string& want) {
  const auto [a, b] = std::mismatch(have.begin(), have.end(), want.begin(), want.end());
  const auto begin = want.rfind('\n', static_cast<std::size_t>(b - want.begin()));
  return want.substr(begin == std::string::npos ? 0 : begin + 1, 200);
}

}  // namespace

TEST_CASE("ops_markdown: docs/ops.md is current") {
  const std::string want = ops_markdown(standard_ops(), cpu_kernels());
  const char* update = std::getenv("TRAINSCOPE_UPDATE_DOCS");
  if (update != nullptr && std::string(update) == "1") {
    make_directories(TRAINSCOPE_SOURCE_DIR "/docs");
    write_file_atomic(kFile, want);
  }
  REQUIRE_MESSAGE(std::filesystem::exists(kFile),
                  "run this test with TRAINSCOPE_UPDATE_DOCS=1 to write ", kFile);
  const std::string have = read_file(kFile, kMaxBytes);
  CHECK_MESSAGE(have == want,
                "run this test with TRAINSCOPE_UPDATE_DOCS=1; first line that differs: ",
                first_difference(have, want));
}

TEST_CASE("ops_markdown: a row with its attributes, gradient and kernels") {
  const std::string text = ops_markdown(standard_ops(), cpu_kernels());
  CHECK(text.find(
            "| MeanSquaredError | x, target -> mean of (x - target)^2 over all elements | 2 | "
            "1 |  | rule |  | `mean_squared_error.reference` f32 f64 |\n") != std::string::npos);
  CHECK(text.find("| Dropout | ") != std::string::npos);
}

}  // namespace trainscope
