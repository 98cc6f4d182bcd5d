// RNN, LSTM and GRU: ours with the batch behind the steps, which keep what their gradients need.
#include <string_view>

#include "engine/onnx/composites/composites.h"

namespace trainscope {
namespace {

constexpr std::size_t kStepsInput = 0;
constexpr std::size_t kRecurrenceInput = 2;
constexpr std::size_t kLengthsInput = 4;
constexpr std::size_t kFirstStateInput = 5;  // h, then c
constexpr std::size_t kPeepholesInput = 7;

// States are [batch, directions, H] with layout 1.
ValueId with_batch_second(Composition& c, ValueId v) { return c.transpose(v, {1, 0, 2}); }

void check_hidden_size(const Composition& c) {
  const Shape r = c.shape(c.input(kRecurrenceInput));
  const std::int64_t hidden = c.attributes().integer("hidden_size", r.rank == 3 ? r[2] : 0);
  c.require(r.rank == 3 && r[2] == hidden, "hidden_size is {}, but R is {}", hidden, shape_text(r));
}

std::vector<ValueId> inputs_of(Composition& c, bool batch_first) {
  std::vector<ValueId> inputs = c.inputs();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] == kNoValue) continue;
    if (i == kLengthsInput) inputs[i] = c.cast(inputs[i], DType::kI64);
    const bool of_batch = i == kStepsInput || (i >= kFirstStateInput && i < kPeepholesInput);
    if (!batch_first || !of_batch) continue;
    c.require(c.shape(inputs[i]).rank == 3, "input {} is {}, it must have 3 axes", i,
              shape_text(c.shape(inputs[i])));
    inputs[i] = with_batch_second(c, inputs[i]);
  }
  return inputs;
}

// ONNX's `states` last states are outputs of our op too; `outputs` counts what it has.
void compose_cell(Composition& c, std::string_view op, std::size_t states, std::size_t outputs) {
  c.require(c.has(0) && c.has(1) && c.has(2), "X, W and R must be given");
  check_hidden_size(c);
  const std::int64_t layout = c.attributes().integer("layout", 0);
  c.require(layout == 0 || layout == 1, "layout is {}, expected 0 or 1", layout);
  Attributes attributes = c.attributes();
  attributes.erase("hidden_size");
  attributes.erase("layout");
  const std::vector<ValueId> made =
      c.multi(op, inputs_of(c, layout == 1), outputs, std::move(attributes));
  if (c.wants(0)) c.result(0, layout == 1 ? c.transpose(made[0], {2, 0, 1, 3}) : made[0]);
  for (std::size_t state = 1; state <= states; ++state) {
    if (!c.wants(state)) continue;
    c.result(state, layout == 1 ? with_batch_second(c, made[state]) : made[state]);
  }
}

void compose_rnn(Composition& c) { compose_cell(c, "Rnn", 1, 2); }
void compose_lstm(Composition& c) { compose_cell(c, "Lstm", 2, 4); }
void compose_gru(Composition& c) { compose_cell(c, "Gru", 1, 3); }

constexpr CompositeOp kRows[] = {
    {"RNN", 7, 6, 2, "activation_alpha activation_beta activations clip direction hidden_size",
     compose_rnn},
    {"RNN", 14, 6, 2,
     "activation_alpha activation_beta activations clip direction hidden_size layout", compose_rnn},
    {"LSTM", 7, 8, 3,
     "activation_alpha activation_beta activations clip direction hidden_size input_forget",
     compose_lstm},
    {"LSTM", 14, 8, 3,
     "activation_alpha activation_beta activations clip direction hidden_size input_forget layout",
     compose_lstm},
    {"GRU", 7, 6, 2,
     "activation_alpha activation_beta activations clip direction hidden_size linear_before_reset",
     compose_gru},
    {"GRU", 14, 6, 2,
     "activation_alpha activation_beta activations clip direction hidden_size layout "
     "linear_before_reset",
     compose_gru},
};

}  // namespace

std::span<const CompositeOp> recurrent_composites() { return kRows; }

}  // namespace trainscope
