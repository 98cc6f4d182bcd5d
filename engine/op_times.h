// Measures how long each instruction of a program takes.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <vector>

#include "engine/exec/executor.h"

namespace trainscope {

// Keeps the last kSamples times of each instruction; measuring allocates nothing.
class OpTimes final : public Executor::Observer {
 public:
  explicit OpTimes(const Program& program);

  void before(std::size_t instruction) override;
  void after(std::size_t instruction) override;

  // The median of each node's times, by NodeId; 0 for views and for what never ran.
  std::vector<double> seconds() const;
  // As a file for CompileOptions::costs.
  void write(const std::filesystem::path& path) const;

 private:
  static constexpr std::size_t kSamples = 31;
  struct Samples {
    std::array<float, kSamples> seconds = {};
    std::size_t count = 0;  // of all times measured
  };

  const Program& program_;
  std::vector<Samples> samples_;  // by instruction
  std::chrono::steady_clock::time_point start_;
};

}  // namespace trainscope
