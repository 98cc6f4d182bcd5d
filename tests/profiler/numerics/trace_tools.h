// Traces of a few tensors in scratch folders.
#pragma once

#include <doctest/doctest.h>
#include <stdlib.h>

#include <filesystem>
#include <string>
#include <vector>

#include "engine/core/tensor.h"
#include "profiler/numerics/trace.h"

namespace trainscope::profiler {

struct TraceFolder {
  std::filesystem::path path;
  TraceFolder() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "trainscope-trace-XXXXXX").string();
    REQUIRE(::mkdtemp(pattern.data()) != nullptr);
    path = pattern;
  }
  ~TraceFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  TraceFolder(const TraceFolder&) = delete;
  Folder folder() const { return Folder::open(path); }
};

// A row with the summary of these elements.
inline void add_row(TraceWriter& writer, TraceRow row, const std::vector<float>& elements) {
  const Tensor tensor =
      Tensor::of<float>(Shape{static_cast<std::int64_t>(elements.size())}, elements);
  const TensorSummary summary = summary_of(DType::kF32, {tensor.data(), tensor.bytes()});
  row.statistics = summary.statistics;
  row.hash = summary.hash;
  if (row.dtype.empty()) row.dtype = "f32";
  if (row.shape.empty()) row.shape = std::to_string(elements.size());
  writer.add(row, summary.sketch);
}

}  // namespace trainscope::profiler
