// Text from a model that predicts the next character.
#pragma once

#include <cstdint>
#include <string>

#include "datasets/vocabulary.h"
#include "engine/session.h"

namespace trainscope {

struct SamplingOptions {
  std::string input;   // graph input that takes ids [B,T]
  std::string output;  // graph output with a number for each character [B,T,V]
  std::int64_t characters = 0;
  std::string prompt;        // empty: a line end, or else the vocabulary's first character
  double temperature = 1.0;  // 0: always the likeliest
  std::uint64_t seed = 0;
};

// The prompt is not part of the result. The model sees the last T characters; unused places at the
// end of a short window are filled with id 0, which a causal model does not look at.
std::string sample_text(Executor& executor, const Vocabulary& vocabulary,
                        const SamplingOptions& options);

// Draws an index with probability proportional to exp(logits / temperature); `uniform` is in [0,1).
std::int64_t draw(std::span<const float> logits, double temperature, double uniform);

}  // namespace trainscope
