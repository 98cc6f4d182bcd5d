// A small problem to train: data, a model, a request; and a folder for its runs.
#pragma once

#include <doctest/doctest.h>
#include <stdlib.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "engine/run/train_request.h"
#include "tests/support/copying_device.h"
#include "tests/support/graph_text.h"

namespace trainscope::test {

struct ScratchFolder {
  std::filesystem::path path;
  ScratchFolder() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "trainscope-run-XXXXXX").string();
    REQUIRE(::mkdtemp(pattern.data()) != nullptr);
    path = pattern;
  }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
};

// x [N,3] and labels [N,2], which are a linear function of it.
class Points final : public Dataset {
 public:
  explicit Points(std::chrono::milliseconds delay = {}) : delay_(delay) {}

  std::span<const Field> fields() const override { return fields_; }
  std::int64_t examples(Split split) const override { return split == Split::kTrain ? 40 : 10; }
  bool can_pad() const override { return false; }
  Json description() const override { return Json::object({{"kind", "points"}}); }
  void read(Split split, std::int64_t /*epoch*/, std::span<const std::int64_t> indices,
            Batch& out) const override {
    std::this_thread::sleep_for(delay_);
    prepare_batch(fields_, static_cast<std::int64_t>(indices.size()), out);
    const std::span<float> x = out.tensors[0].second.values<float>();
    const std::span<float> labels = out.tensors[1].second.values<float>();
    for (std::size_t i = 0; i < indices.size(); ++i) {
      for (std::size_t k = 0; k < 3; ++k) {
        const auto element = static_cast<std::uint64_t>(3 * indices[i]) + k;
        x[3 * i + k] = static_cast<float>(random_normal(7, split == Split::kTrain, element));
      }
      labels[2 * i] = 2.0F * x[3 * i] - x[3 * i + 1];
      labels[2 * i + 1] = x[3 * i + 2];
    }
    out.examples = static_cast<std::int64_t>(indices.size());
    out.loss_terms = 2 * out.examples;
  }

 private:
  std::chrono::milliseconds delay_;
  std::vector<Field> fields_ = {
      {.name = "x", .example = {.dtype = DType::kF32, .shape = {3}}},
      {.name = "labels", .example = {.dtype = DType::kF32, .shape = {2}}}};
};

// A linear layer on batches of 4, with momentum.
inline TrainRequest points_request(const std::filesystem::path& run_folder, std::int64_t steps) {
  TrainRequest request{.model = model("(float[n,3] x) => (float[n,2] y)"
                                      "<float[3,2] w = {1, 0, 0, 1, 0.5, 0.5}> "
                                      "{ y = MatMul(x, w) }")};
  request.compile.device = test_device();
  request.compile.import.dims["n"] = 4;
  request.compile.training.loss = {.kind = LossKind::kMse, .output = "y"};
  request.compile.training.optimizer.kind = OptimizerKind::kSgd;
  request.compile.training.optimizer.momentum = 0.5;
  request.open_data = opened(std::make_shared<const Points>());
  request.batch = 4;
  request.steps = steps;
  request.schedule.learning_rate = 0.1;
  request.run_folder = run_folder;
  return request;
}

}  // namespace trainscope::test
