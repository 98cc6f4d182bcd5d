// What the tests of datasets share: wanted fields, batches as plain numbers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "datasets/open.h"
#include "tests/engine/core/core_test_tools.h"

namespace trainscope {

using Ints = std::vector<std::int64_t>;

// A language model: ids in, labels of the same length.
inline DatasetOptions text_options(std::int64_t sequence) {
  DatasetOptions options;
  options.inputs = {{.name = "ids", .dtype = DType::kI64, .dims = {{WantedField::kAnySize}}}};
  options.labels =
      WantedField{.name = "labels", .dtype = DType::kI64, .dims = {{WantedField::kAnySize}}};
  options.sequence = sequence;
  options.seed = 1;
  return options;
}

// A classifier of pairs of floats into three classes.
inline DatasetOptions pair_options() {
  DatasetOptions options;
  options.inputs = {{.name = "x", .dtype = DType::kF32, .dims = {{2}}}};
  options.labels = WantedField{.name = "labels", .dtype = DType::kI64, .dims = Ints{}, .bound = 3};
  options.seed = 1;
  return options;
}

// Images of 28x28 in ten classes.
inline DatasetOptions digit_options() {
  DatasetOptions options;
  options.inputs = {{.name = "x", .dtype = DType::kF32, .dims = {{1, 28, 28}}}};
  options.labels = WantedField{.name = "labels", .dtype = DType::kI64, .dims = Ints{}, .bound = 10};
  return options;
}

// Four measurements, three classes.
inline DatasetOptions flower_options() {
  DatasetOptions options = pair_options();
  options.inputs[0].dims = {{4}};
  return options;
}

inline Batch read_batch(const Dataset& dataset, Split split, std::int64_t epoch,
                        const Ints& which) {
  Batch batch;
  dataset.read(split, epoch, which, batch);
  return batch;
}

inline Ints ints_of(const Tensor& tensor) { return as_ints(tensor); }

inline std::string source(std::string_view kind, const std::filesystem::path& file,
                          std::string_view rest = "") {
  return std::string(kind) + ":" + file.string() + std::string(rest);
}

// Message and hint of the error that opening gives, and its code.
inline Error opening_error(const std::string& text, const DatasetOptions& options) {
  return error_of([&] { open_dataset(text, options); });
}

}  // namespace trainscope
