// What the rows of Rnn, Lstm and Gru share: their forms, sizes and parameters.
#pragma once

#include <cstdint>
#include <string_view>

#include "engine/ir/op_def.h"
#include "engine/ops/rules/shape_rules.h"

namespace trainscope {

// The inputs of all three ops; an LSTM has the last two.
struct CellInput {
  enum : int {
    kSteps,         // X [T, N, D]
    kInputWeights,  // W [directions, gates * H, D]
    kRecurrence,    // R [directions, gates * H, H]
    kBias,          // B [directions, 2 * gates * H], of W and of R
    kLengths,       // [N], i64
    kFirstHidden,   // [directions, N, H]
    kFirstCell,     // [directions, N, H]
    kPeepholes,     // P [directions, 3 * H]
  };
};

// One kind of recurrent cell. The op's outputs are Y, the last states and, where a cell has more
// than Y, what is saved for the gradient.
struct CellForm {
  std::string_view op;
  std::string_view gradient;
  int gates = 1;
  int inputs = 6;              // of the op
  int states = 1;              // h, and c of an LSTM
  bool saves = true;           // more than Y
  std::string_view functions;  // the defaults, of one direction
  // Of a unit at a step beside the products, with the default functions: an addition or a
  // multiplication 1, the sigmoid 12, tanh 16, what their gradients are of their results 3.
  int pointwise_flops = 0;
  int gradient_flops = 0;  // ... of the gradient

  constexpr int outputs() const { return 1 + states + (saves ? 1 : 0); }
  // Inputs of the gradient before those of the op: gradients of Y and the last states, Y, saved.
  constexpr int gradient_first() const { return 1 + states + 1 + (saves ? 1 : 0); }
};

inline constexpr CellForm kRnnForm{.op = "Rnn",
                                   .gradient = "RnnGrad",
                                   .gates = 1,
                                   .inputs = 6,
                                   .states = 1,
                                   .saves = false,
                                   .functions = "Tanh",
                                   .pointwise_flops = 16,         // tanh
                                   .gradient_flops = 1 + 3 + 1};  // dy + dh, tanh, the bias's sum
inline constexpr CellForm kLstmForm{.op = "Lstm",
                                    .gradient = "LstmGrad",
                                    .gates = 4,
                                    .inputs = 8,
                                    .states = 2,
                                    .saves = true,
                                    .functions = "Sigmoid Tanh Tanh",
                                    // 3 gates, g and tanh(c); f c + i g; o tanh(c).
                                    .pointwise_flops = 3 * 12 + 2 * 16 + 3 + 1,
                                    // dy + dh; tanh(c); o; dc; i, f, g; f dc; the bias's sums.
                                    .gradient_flops = 1 + 16 + 4 + 5 + 3 * 4 + 1 + 4};
inline constexpr CellForm kGruForm{.op = "Gru",
                                   .gradient = "GruGrad",
                                   .gates = 3,
                                   .inputs = 6,
                                   .states = 1,
                                   .saves = true,
                                   .functions = "Sigmoid Tanh",
                                   // z, r and g; r times the state; (1 - z) g + z h.
                                   .pointwise_flops = 2 * 12 + 16 + 1 + 4,
                                   // dy + dh; z; g; r; r times the product; z dh; the bias's sums.
                                   .gradient_flops = 1 + 5 + 5 + 4 + 1 + 2 + 3};

struct CellSizes {
  std::int64_t directions = 0;
  std::int64_t time = 0;    // T
  std::int64_t batch = 0;   // N
  std::int64_t width = 0;   // D
  std::int64_t hidden = 0;  // H

  TensorType state(DType dtype) const { return {dtype, {directions, batch, hidden}}; }
};

// Of the op's inputs, which begin at input `first`. kBadInput where they do not belong together.
CellSizes checked_cell_sizes(const OpArgs& args, const CellForm& form, int first);

// The attributes as parameters of kernels. kBadInput, or unsupported, where they are not sound.
RecurrentParams recurrent_params(const OpArgs& args, const CellForm& form);

// Blocks of H numbers that are saved of each sequence at each step.
std::int64_t saved_blocks(const OpArgs& args, const CellForm& form);

}  // namespace trainscope
