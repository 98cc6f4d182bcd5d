// How long the stages of a pipeline take together.
#pragma once

#include <cstdint>
#include <span>

namespace trainscope {

// Of one micro-batch on one stage.
struct StageSeconds {
  double forward = 0.0;
  double backward = 0.0;

  double sum() const { return forward + backward; }
};

// Micro-batches whose activations a stage holds at most: stages and micro-batches counted from 0 on
// in "one forward, one backward" (Narayanan et al. 2019 and 2021).
std::int64_t micro_batches_in_flight(std::int64_t stage, std::int64_t stages,
                                     std::int64_t micro_batches);

// Until the last backward of a step is done. Each stage runs so many forwards as it may have in
// flight, then a backward and a forward in turn, each when what it reads of the neighbour is done.
// Equal stages: (micro_batches + stages - 1) micro-batches of one.
double pipeline_seconds(std::span<const StageSeconds> stages, std::int64_t micro_batches);

}  // namespace trainscope
