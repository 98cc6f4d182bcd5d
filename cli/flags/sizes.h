// --batch, --seq and --shape: sizes for the dimensions that a model leaves open.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "cli/flags/settings.h"
#include "engine/session.h"

namespace trainscope {

inline constexpr std::int64_t kDefaultBatch = 8;

std::span<const Flag> size_flags();

struct SizeRequest {
  std::int64_t batch = 0;              // 0: not asked for
  std::int64_t sequence = 0;           // 0: not asked for
  std::map<std::string, Ints> shapes;  // whole inputs, or one number for a symbol
};

SizeRequest size_request(const Settings& settings);

// Sizes that fit a model: what a graph can be made with.
struct Sizes {
  std::int64_t batch = 0;     // examples; 0 for a model without inputs, or one that fixes it so
  std::string empty_input;    // the input that fixes the batch at 0
  std::int64_t sequence = 0;  // 0: no integer input of two dimensions, or still open
  std::map<std::string, std::int64_t> dims;  // by symbol
  std::map<std::string, Ints> shapes;        // by input
};

// Throws kUsage for a size that contradicts the model's own, a name that it does not have, or a
// batch of 0 examples by --shape.
// Symbols that nothing binds are left for the importer to complain about.
Sizes resolve_sizes(const OnnxModel& model, const SizeRequest& request);

// Throws kUsage for a model without inputs or without a batch dimension, kBadInput for one with
// batches of no examples.
void require_examples(const OnnxModel& model, const Sizes& sizes);

// Symbols of the inputs that have no size yet.
std::vector<std::string> open_symbols(const OnnxModel& model, const Sizes& sizes);

}  // namespace trainscope
