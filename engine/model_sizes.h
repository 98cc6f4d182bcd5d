// Sizes for the dimensions that a model leaves open: what is asked for, or the usual ones.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "engine/session.h"

namespace trainscope {

inline constexpr std::int64_t kDefaultBatch = 8;

// What --batch-axis calls the labels of the loss.
inline constexpr const char* kLabelsOfLoss = "labels";

struct SizeRequest {
  std::int64_t batch = 0;                   // 0: not asked for
  std::int64_t sequence = 0;                // 0: not asked for
  std::map<std::string, Ints> shapes = {};  // whole inputs, or one number for a symbol
  BatchAxes batch_axes = {};                // of inputs and outputs, "labels" among them
  std::int64_t max_trips = 0;  // 0: not asked for; it is for ImportOptions, no part of Sizes

  bool operator==(const SizeRequest&) const = default;
};

// Sizes that fit a model: what a graph can be made with.
struct Sizes {
  std::int64_t batch = 0;     // examples; 0 for a model without inputs, or one that fixes it so
  std::string empty_input;    // the input that fixes the batch at 0
  std::int64_t sequence = 0;  // 0: no integer input of two dimensions, or still open
  std::map<std::string, std::int64_t> dims;  // by symbol
  std::map<std::string, Ints> shapes;        // by input
  // By input, output or "labels": where it is not the first axis that counts examples.
  BatchAxes batch_axes = {};
};

// The axis of a batch's examples is the one that --batch-axis names, else the one whose symbol is
// called a batch ("batch", "batch_size", "N"), else the first.
//
// Throws kUsage for a size that contradicts the model's own, a name that it does not have, or a
// batch of 0 examples by --shape.
// Symbols that nothing binds are left for the importer to complain about.
Sizes resolve_sizes(const OnnxModel& model, const SizeRequest& request);

}  // namespace trainscope
