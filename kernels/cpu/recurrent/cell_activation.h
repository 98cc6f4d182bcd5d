// The functions of recurrent cells on rows of units, and their derivatives by their own results:
// no argument of theirs has to be kept. For float and double.
#pragma once

#include <cstdint>

#include "kernels/api/params.h"

namespace trainscope::cpu {

// x [n] becomes f(x), or f(x brought into [-clip, clip]) where clip is above 0.
template <typename T>
void activate(const CellActivation& f, double clip, T* x, std::int64_t n);

// d [n], the gradient of y = f(x), becomes that of x. Nothing passes where y is what f gives at a
// limit of the clip.
template <typename T>
void derive(const CellActivation& f, double clip, const T* y, T* d, std::int64_t n);

}  // namespace trainscope::cpu
