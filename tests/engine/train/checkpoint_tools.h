// A small checkpoint to save, load and damage.
#pragma once

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "engine/core/file.h"
#include "engine/core/tensor.h"
#include "engine/train/checkpoint.h"
#include "tests/engine/train/faults.h"

namespace trainscope {

// The folder of checkpoints, made where there is none.
inline Folder open_root(const std::filesystem::path& root) {
  make_directories(root);
  return Folder::open(root);
}

// Two files with a few tensors whose values depend on the step.
class SmallTraining {
 public:
  explicit SmallTraining(std::int64_t step) : state_{.step = step, .samples_seen = step * 12} {
    state_.seed = 0xFFFF'FFFF'FFFF'FFF1U;  // needs all 64 bits
    state_.metrics = Json::object({{"loss", 1.0 / static_cast<double>(step + 1)}});
    state_.settings = Json::object({{"batch", 12}, {"model_hash", "00ff"}});
    const auto value = static_cast<float>(step);
    weight_ = Tensor::of<float>({2, 3}, std::array{value, 1.F, 2.F, 3.F, 4.F, 5.F});
    count_ = Tensor::scalar<std::int64_t>(step);
    moment_ = Tensor::of<float>({2, 3}, std::array{0.5F, value, 0.F, 0.F, 0.F, 0.F});
  }

  std::filesystem::path save(const std::filesystem::path& root,
                             const FileCalls& calls = TestCalls()) const {
    const std::array model = {NamedTensor{"w", weight_.view()}, NamedTensor{"n", count_.view()}};
    const std::array optimizer = {NamedTensor{"w.m", moment_.view()}};
    const std::array files = {CheckpointFile{"model", model},
                              CheckpointFile{"optimizer", optimizer}};
    return save_checkpoint(open_root(root), state_, files, calls);
  }

 private:
  CheckpointState state_;
  Tensor weight_;
  Tensor count_;
  Tensor moment_;
};

// Whether a loaded checkpoint holds exactly what SmallTraining(step) saves.
inline bool is_small_training(const Checkpoint& checkpoint, std::int64_t step) {
  const Tensor weight = checkpoint.file("model").tensor("w");
  const Tensor moment = checkpoint.file("optimizer").tensor("w.m");
  return checkpoint.state.step == step && checkpoint.state.samples_seen == 12 * step &&
         weight.values<float>()[0] == static_cast<float>(step) &&
         moment.values<float>()[1] == static_cast<float>(step) &&
         checkpoint.file("model").tensor("n").values<std::int64_t>()[0] == step;
}

}  // namespace trainscope
