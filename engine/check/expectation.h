// A batch with PyTorch's loss and names of parameters, beside what is trained here.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "engine/core/safetensors.h"
#include "engine/session.h"

namespace trainscope {

struct ExpectationResult {
  double loss = 0.0;
  double expected_loss = 0.0;
  bool loss_equal = false;  // within what f32 programs round
  bool names_given = false;
  std::size_t expected = 0;             // names, without those that the forward pass does not read
  std::vector<std::string> untrained;   // expected, but not trained here
  std::vector<std::string> unexpected;  // trained here, but not expected

  bool all_equal() const { return loss_equal && untrained.empty() && unexpected.empty(); }
};

// `expected` holds the model's inputs, the labels, `loss`, and in its metadata "parameters": names
// with line ends between them. Runs one forward pass on that batch as a training step does.
// kBadInput for a file that lacks a tensor.
ExpectationResult compare_with(const SafetensorsFile& expected, const OnnxModel& model,
                               const CompileOptions& options);

}  // namespace trainscope
