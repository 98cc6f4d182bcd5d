// The standard workloads of `trainscope bench`: a model, its batch and its optimizer, as a table.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

#include "engine/models/models.h"
#include "engine/session.h"

namespace trainscope {

struct BenchWorkload {
  std::string_view name;
  std::string_view about;
  std::string_view model;         // builder
  ModelArguments arguments = {};  // without a context: it is as long as the examples
  std::int64_t batch = 0;
  std::int64_t sequence = 0;  // tokens in a row; 0: not a sequence model
  OptimizerOptions optimizer = {};
  double learning_rate = 0.0;
  // Of the synthetic batch: how many different numbers an integer input has, by name (else as many
  // as classes), and the fraction of the labels that count.
  std::map<std::string_view, std::int64_t> kinds = {};
  double labelled = 1.0;
};

const std::vector<BenchWorkload>& bench_workloads();
// Throws kUsage with the nearest name.
const BenchWorkload& find_workload(std::string_view name);

}  // namespace trainscope
