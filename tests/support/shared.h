// Reference models and data beside the repository; tests that need them are skipped without them.
#pragma once

#include <filesystem>

namespace trainscope::test {

inline std::filesystem::path shared_path(const std::filesystem::path& name) {
  return std::filesystem::path(TRAINSCOPE_SHARED) / name;
}

// For `TEST_CASE("..." * doctest::skip(!has_shared("models/mlp")))`.
inline bool has_shared(const std::filesystem::path& name) {
  std::error_code ignored;
  return std::filesystem::exists(shared_path(name), ignored);
}

}  // namespace trainscope::test
