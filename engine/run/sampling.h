// Ids drawn one after the other from a model that predicts the next one.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/run/forward_programs.h"

namespace trainscope {

struct SamplingOptions {
  std::string input;                      // graph input that takes ids [B,T], i32 or i64
  std::string output;                     // graph output with a number for each id [B,T,V], f32
  std::vector<std::int64_t> prompt = {};  // at least one
  std::int64_t ids = 0;                   // there are: only 0 to ids - 1 are drawn, at most V
  std::int64_t count = 0;                 // to draw
  double temperature = 1.0;               // 0: always the likeliest
  std::uint64_t seed = 0;
};

// The ids drawn, without the prompt. The model sees the last T of all; unused places at the end of
// a short window are filled with id 0, which a causal model does not look at. Throws kUsage for a
// model of other inputs or outputs, kBadInput when it knows fewer ids.
std::vector<std::int64_t> sample_ids(ForwardPrograms& programs, const SamplingOptions& options);

// Draws an index with probability proportional to exp(logits / temperature); `uniform` is in [0,1).
std::int64_t draw(std::span<const float> logits, double temperature, double uniform);

}  // namespace trainscope
