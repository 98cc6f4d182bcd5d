// What the kernels of RNN, LSTM and GRU move beside their operands, for Kernel::estimate: R is
// packed into panels that every step reads, and what the gates are given passes between the GEMMs
// of all steps and the steps.
#pragma once

#include <cstdint>

#include "kernels/cpu/recurrent/recurrent_grad.h"
#include "kernels/cpu/support/estimate.h"

namespace trainscope::cpu {

// Bytes of R's panels of one direction, and of numbers for `gates` gates at all steps of it.
template <typename T>
double panel_bytes(const RecurrentSizes& sizes, std::int64_t gates) {
  return multiplied(gates, PackedPanels<T>::bytes(sizes.hidden, sizes.hidden));
}
template <typename T>
double gate_bytes(const RecurrentSizes& sizes, std::int64_t gates) {
  return multiplied(sizeof(T), sizes.rows(), gates, sizes.hidden);
}

// Of Rnn, Lstm or Gru, whose operands begin with X: the products of X are written, and read by the
// steps.
template <typename T, std::int64_t kGates>
Estimate estimate_steps(const PrepareArgs& args, const Estimate& definition) {
  const RecurrentSizes sizes = recurrent_sizes(args.inputs);
  Work work(definition);
  for (std::int64_t d = 0; d < sizes.directions; ++d) {
    const double panels = panel_bytes<T>(sizes, kGates);
    work.add_copy(multiplied(sizes.time, panels), panels);
    work.add_passed_on(gate_bytes<T>(sizes, kGates));
  }
  return work.estimate();
}

// Of a gradient whose forward operands begin at `kFirst`: the gates' gradients are written, and
// read by the step before, by dX and by each gradient that is asked for; the states before all
// steps are gathered for dR.
template <typename T, std::int64_t kGates, std::size_t kFirst>
Estimate estimate_steps_back(const PrepareArgs& args, const Estimate& definition) {
  const RecurrentSizes sizes = recurrent_sizes(args.inputs.subspan(kFirst));
  double readers = 2.0;
  for (const RecurrentGradient output : {kDInputWeights, kDRecurrence, kDBias}) {
    if (is_present(args.outputs, output)) readers += 1.0;
  }
  Work work(definition);
  for (std::int64_t d = 0; d < sizes.directions; ++d) {
    const double panels = panel_bytes<T>(sizes, kGates);
    work.add_copy(multiplied(sizes.time, panels), panels);
    const double gates = gate_bytes<T>(sizes, kGates);
    work.add_copy(readers * gates, gates);
    if (is_present(args.outputs, kDRecurrence)) work.add_passed_on(gate_bytes<T>(sizes, 1));
  }
  return work.estimate();
}

}  // namespace trainscope::cpu
