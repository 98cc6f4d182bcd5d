// A trace to look things up in: rows by step, micro-batch and key, and all elements where it has
// them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "engine/core/safetensors.h"
#include "engine/core/tensor.h"
#include "profiler/numerics/trace.h"

namespace trainscope::profiler {

class IndexedTrace {
 public:
  explicit IndexedTrace(Trace trace);

  const Trace& trace() const { return trace_; }
  const TraceRow& row(std::size_t i) const { return trace_.rows()[i]; }

  // The row of what another trace calls `key`: the one that has this key, or that names.tsv says
  // has its elements.
  std::optional<std::size_t> find(std::int64_t step, std::int64_t micro_batch,
                                  const std::string& key) const;
  // Whether it says what became of it: gradients go with their values, moments with their
  // parameters.
  bool accounts_for(const std::string& key) const;
  // All elements of a row; none where they were not kept.
  std::optional<Tensor> full(const TraceRow& row) const;

 private:
  std::optional<SafetensorsFile> open_full(std::int64_t step) const;

  Trace trace_;
  std::unordered_map<std::string, std::size_t> rows_;
  std::unordered_map<std::string, std::string> renamed_;
  std::unordered_set<std::string> named_;
  mutable std::map<std::int64_t, std::optional<SafetensorsFile>> files_;  // opened when asked for
};

}  // namespace trainscope::profiler
