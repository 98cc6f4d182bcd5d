// The standard workloads of `trainscope bench`: a model, its batch and its optimizer, as a table.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "engine/models/models.h"
#include "engine/session.h"

namespace trainscope {

struct BenchWorkload {
  std::string_view name;
  std::string_view about;
  std::string_view model;  // builder
  ModelArguments arguments = {};
  std::int64_t batch = 0;
  std::int64_t sequence = 0;  // tokens in a row; 0: not a sequence model
  OptimizerOptions optimizer = {};
  double learning_rate = 0.0;
};

const std::vector<BenchWorkload>& bench_workloads();
// Throws kUsage with the nearest name.
const BenchWorkload& find_workload(std::string_view name);

}  // namespace trainscope
