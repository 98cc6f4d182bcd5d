// Conversion of elements between any two types.
#pragma once

#include <cstdint>

#include "kernels/api/storage_types.h"

namespace trainscope {

struct ConversionRule {
  Overflow overflow = Overflow::kSaturate;
  PowerRounding rounding = PowerRounding::kUp;  // to f8e8m0
};

// `count` elements from x to y. Floats beyond an integer's range give its nearest, NaN gives 0;
// integers keep their low bits in a narrower integer, and so do floats in one of less than 8 bits;
// any number but 0 is true. x and y do not
// overlap, or are the same memory and elements of the same size.
struct ElementsOf {
  DType dtype = DType::kF32;
  void* data = nullptr;
};
void convert_elements(const ElementsOf& x, const ElementsOf& y, std::int64_t count,
                      const ConversionRule& rule = {});

}  // namespace trainscope
