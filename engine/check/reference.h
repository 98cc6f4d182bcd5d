// A reference folder: a model with the numbers that another engine computed for it.
// Format: tests/data/README.md.
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "engine/core/json.h"
#include "engine/core/safetensors.h"
#include "engine/passes/training_options.h"
#include "engine/train/data.h"

namespace trainscope {

// meta.json of a reference folder: what to train, with which loss and optimizers.
struct ReferenceMeta {
  std::filesystem::path path;
  Json json;  // the whole file
  LossOptions loss;
  std::vector<std::string> trainable;
  std::vector<std::string> frozen;
  std::set<std::string> vanishing;  // gradients that are zero in exact arithmetic
};

struct ReferenceOptimizer {
  OptimizerOptions options;
  std::vector<double> learning_rates;  // by step
};

// kIo when there is no such file, kBadInput naming the key that is missing or wrong.
ReferenceMeta read_reference_meta(const std::filesystem::path& path);
// `optimizers.NAME` of meta.json, or `optimizer` of a convergence folder.
ReferenceOptimizer reference_optimizer(const Json& json);

// batch.N:* of a file; floats are converted to `float_type`. Fails with kBadInput when it has none.
Batch reference_batch(const SafetensorsFile& tensors, int index, DType float_type);

// A tab-separated table with a header line; rows by their first column that is named `key`.
class ReferenceTable {
 public:
  static ReferenceTable read(const std::filesystem::path& path, std::string_view key);
  std::size_t rows() const { return rows_.size(); }
  bool has(std::string_view row) const { return index_.contains(row); }
  // NaN for "-"; fails with kBadInput when there is no such row or column, or no number in it.
  double number(std::string_view row, std::string_view column) const;
  double number(std::size_t row, std::string_view column) const;

 private:
  std::filesystem::path path_;
  std::map<std::string, std::size_t, std::less<>> columns_;
  std::vector<std::vector<std::string>> rows_;
  std::map<std::string, std::size_t, std::less<>> index_;
};

}  // namespace trainscope
