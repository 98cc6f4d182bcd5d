// The example texts of op rows (grammar: engine/ir/op_def.h) as tensors and attributes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/core/tensor.h"
#include "engine/ir/attributes.h"

namespace trainscope::test {

enum class Fill : std::uint8_t {
  kFree,       // normal floats, small integers, coin flips
  kPositive,   // ">0": floats in [0.5, 2), integers in [1, 9]
  kAboveOne,   // ">1": floats in [1.25, 2.75), integers in [2, 10]
  kBelow,      // "<n": integers in [0, n)
  kSeparated,  // "~": floats without ties, away from 0, also against the example's other inputs
  kGiven,      // "={...}": known at compile time
};

struct ExampleInput {
  bool present = true;
  bool any_float = true;  // of the float type that the test runs in
  TensorType type;
  Fill fill = Fill::kFree;
  std::int64_t bound = 0;          // of kBelow
  std::vector<std::string> given;  // of kGiven
};

struct Example {
  std::vector<ExampleInput> inputs;
  Attributes attributes;
  int output_count = 1;
};

// Fails with kBadInput when the text does not follow the grammar.
Example parse_example(std::string_view text);

// Elements that are the same numbers in f32 and f64; equal seeds give equal numbers.
Tensor make_input(const Example& example, std::size_t input, DType float_type, std::uint64_t seed);

// Normal floats, small integers, coin flips. Floats are multiples of 2^-20 below 16.
Tensor random_tensor(const TensorType& type, std::uint64_t seed, std::uint64_t stream);

}  // namespace trainscope::test
