// What a model makes of every example of its data.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/core/tensor.h"
#include "engine/run/forward_programs.h"

namespace trainscope {

// An output of the model, example by example.
struct Prediction {
  std::string name;
  Tensor rows;   // [examples, ...]
  int axis = 0;  // of the examples in a batch
};

// The examples, all of the validation part, and how they are read.
struct PredictedData {
  std::shared_ptr<const Dataset> data;
  std::int64_t batch = 1;     // that the programs are for
  BatchAxes batch_axes = {};  // of inputs and outputs
};

// The outputs that have a row for each example of a batch. In whole batches: the last example
// fills up the last one, and its further rows are left out. Throws kUsage where no output has such
// rows.
std::vector<Prediction> predict(ForwardPrograms& programs, const OnnxModel& model,
                                const PredictedData& from);

}  // namespace trainscope
