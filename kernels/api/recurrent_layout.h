// What all kernels of Rnn, Lstm, Gru and their gradients know of their operands: which is which,
// sizes, and in which order the steps of a direction come.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>

#include "kernels/api/kernel.h"
#include "kernels/api/params.h"

namespace trainscope {

// The inputs of all three ops, from X on; an LSTM has the last two.
enum RecurrentInput : std::size_t {
  kSteps,         // X [T, N, D]
  kInputWeights,  // W [directions, gates * H, D]
  kRecurrence,    // R [directions, gates * H, H]
  kBias,          // B [directions, 2 * gates * H], of W and of R
  kLengths,       // [N], i64: steps of each sequence that count
  kFirstHidden,   // [directions, N, H]
  kFirstCell,     // [directions, N, H]
  kPeepholes,     // P [directions, 3 * H]: of i, o and f
};

// The outputs of all three gradients; an LSTM has the last two.
enum RecurrentGradient : std::size_t {
  kDSteps,
  kDInputWeights,
  kDRecurrence,
  kDBias,
  kDFirstHidden,
  kDFirstCell,
  kDPeepholes,
};

inline constexpr std::int64_t kLstmGates = 4;  // i, o, f and g (ONNX's c), each of H units
inline constexpr std::int64_t kLstmSaved = 5;  // the gates and the cell, of each step
inline constexpr std::int64_t kGruGates = 3;   // z, r and g (ONNX's h)

struct RecurrentSizes {
  std::int64_t directions = 0;
  std::int64_t time = 0;    // T
  std::int64_t batch = 0;   // N
  std::int64_t width = 0;   // D, of X
  std::int64_t hidden = 0;  // H, units

  std::int64_t rows() const { return time * batch; }
  std::int64_t states() const { return batch * hidden; }  // elements of a state of one direction
};

// `inputs` begin with X.
inline RecurrentSizes recurrent_sizes(std::span<const TensorView> inputs) {
  const Shape& x = inputs[kSteps].shape();
  const Shape& r = inputs[kRecurrence].shape();
  return {.directions = r[0], .time = x[0], .batch = x[1], .width = x[2], .hidden = r[2]};
}

inline const RecurrentParams& recurrent_params(const Params& params) {
  return std::get<RecurrentParams>(params);
}

// Blocks of H units that a GRU keeps of a step: where the reset gate scales it, the product h R'
// (and R's bias) of g too.
inline std::int64_t gru_blocks(const RecurrentParams& params) {
  return kGruGates + (params.linear_before_reset ? 1 : 0);
}

// In which order the steps of a direction come, and which of them a sequence has.
class StepOrder {
 public:
  constexpr StepOrder(std::int64_t time, bool reverse, const std::int64_t* lengths)
      : time_(time), reverse_(reverse), lengths_(lengths) {}

  // Time of step k, and the step at a time.
  constexpr std::int64_t at(std::int64_t k) const { return reverse_ ? time_ - 1 - k : k; }
  constexpr std::int64_t step_at(std::int64_t t) const { return at(t); }
  constexpr bool is_reverse() const { return reverse_; }
  constexpr bool counts(std::int64_t t, std::int64_t n) const {
    return lengths_ == nullptr || t < lengths_[n];
  }
  // Whether sequence n has a step before step k.
  constexpr bool has_before(std::int64_t k, std::int64_t n) const {
    return k > 0 && counts(at(k - 1), n);
  }

 private:
  std::int64_t time_;
  bool reverse_;
  const std::int64_t* lengths_;
};

// `inputs` begin with X.
inline StepOrder step_order(const Params& params, std::span<const TensorView> inputs,
                            std::int64_t direction) {
  const bool has_lengths = inputs.size() > kLengths && inputs[kLengths].present;
  return {inputs[kSteps].shape()[0], direction == 1 || recurrent_params(params).reverse,
          has_lengths ? inputs[kLengths].as<const std::int64_t>() : nullptr};
}

// Memory of a call, taken piece by piece; without a begin only the bytes are counted.
class RecurrentWorkspace {
 public:
  explicit RecurrentWorkspace(void* begin = nullptr) : begin_(static_cast<std::byte*>(begin)) {}

  template <typename T>
  T* take(std::int64_t elements) {
    constexpr std::size_t kAlignment = 64;
    std::byte* taken = begin_ == nullptr ? nullptr : begin_ + bytes_;
    const std::size_t bytes = static_cast<std::size_t>(elements) * sizeof(T);
    bytes_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
    return reinterpret_cast<T*>(taken);
  }
  std::size_t bytes() const { return bytes_; }

 private:
  std::byte* begin_;
  std::size_t bytes_ = 0;
};

}  // namespace trainscope
