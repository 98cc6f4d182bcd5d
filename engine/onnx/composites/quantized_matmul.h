// Matmuls of com.microsoft whose weights are stored in a few bits.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/onnx/composites/composition.h"

namespace trainscope {

void compose_quantized_matmul(Composition& c);
void compose_four_bit_float_matmul(Composition& c);

// The numbers of an input that must be known and hold `count` of them at least.
std::vector<double> known_numbers(Composition& c, std::size_t input, std::int64_t count);
// The same of bytes: numbers from 0 to 255.
std::vector<double> known_bytes(Composition& c, std::size_t input, std::int64_t count);

}  // namespace trainscope
