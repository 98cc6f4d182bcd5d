// The models of tests/data/models, compiled with the loss and optimizer of their meta.json.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "engine/check/gradients.h"
#include "engine/check/reference.h"
#include "engine/core/safetensors.h"
#include "engine/onnx/import.h"
#include "engine/session.h"
#include "tests/support/copying_device.h"

namespace trainscope::test {

// gpt2-dropout stands last; the others have reference numbers.
inline const std::vector<std::string> kReferenceModels{"mlp",  "lenet", "resnet18",    "gpt2",
                                                       "bert", "llama", "gpt2-dropout"};

inline std::filesystem::path reference_folder(std::string_view model) {
  return std::filesystem::path(TRAINSCOPE_SOURCE_DIR) / "tests/data/models" / model;
}

struct ReferenceModel {
  ReferenceMeta meta;
  OnnxModel model;
  std::vector<Batch> batches;

  explicit ReferenceModel(std::string_view name)
      : meta(read_reference_meta(reference_folder(name) / "meta.json")),
        model(OnnxModel::read(reference_folder(name) / "model.onnx")) {
    const auto file = SafetensorsFile::open(reference_folder(name) / "reference.safetensors");
    for (int index : {0, 1}) batches.push_back(reference_batch(file, index, DType::kF32));
  }

  // AdamW with clipping and decay, so that every part of a step is there.
  CompileOptions options(GraphMode mode, const LowerOptions& lower = {}) const {
    CompileOptions options = reference_compile_options(
        meta, mode, {.float_type = DType::kF32, .values = {}, .lower = lower, .passes = {}});
    options.device = test_device();
    options.passes.keep = KeepGraphs::kAll;  // for plans that are kept and replayed
    options.training.keep_gradients = false;
    options.training.optimizer.weight_decay = 0.01;
    options.training.optimizer.clip_norm = 1.0;
    return options;
  }
};

// The same batches over and over.
class Cycle final : public BatchSource {
 public:
  explicit Cycle(const std::vector<Batch>& batches) : batches_(batches) {}
  const Batch* next() override { return &batches_[next_++ % batches_.size()]; }

 private:
  const std::vector<Batch>& batches_;
  std::size_t next_ = 0;
};

}  // namespace trainscope::test
