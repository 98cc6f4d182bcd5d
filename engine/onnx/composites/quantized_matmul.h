// com.microsoft's MatMulNBits, whose weights are unpacked when the model is read.
#pragma once

#include "engine/onnx/composites/composition.h"

namespace trainscope {

void compose_quantized_matmul(Composition& c);

}  // namespace trainscope
