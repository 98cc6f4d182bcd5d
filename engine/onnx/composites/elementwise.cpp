// Ops that work element by element or along an axis, written with others.
#include "engine/onnx/composites/attention.h"
#include "engine/onnx/composites/composites.h"

namespace trainscope {
namespace {

void compose_cast_like(Composition& c) {
  const ValueId x = c.input(0);
  const DType like = c.dtype(c.input(1));
  if (c.dtype(x) == like) return c.result(0, c("Identity", {x}));
  if (!is_storage(like) && !is_storage(c.dtype(x))) return c.result(0, c.cast(x, like));
  Attributes attributes{{"to", std::int64_t{row_of(like).onnx_number}},
                        {"saturate", c.attributes().integer("saturate", 1)},
                        {"round_mode", c.attributes().text("round_mode", "up")}};
  c.result(0, c("StorageCast", {x}, std::move(attributes)));
}

// a * sigmoid(alpha a) * b
void compose_swiglu(Composition& c) {
  const ValueId a = c.input(0);
  const ValueId b = c.input(1);
  c.require(c.type(a) == c.type(b), "A is {}, B is {}; they must be alike", shape_text(c.shape(a)),
            shape_text(c.shape(b)));
  const double alpha = c.attributes().number("alpha", 1.0);
  c.result(0, c.multiply(c("Swish", {a}, {{"alpha", alpha}}), b));
}

bool is_f16(const Composition& c) { return c.dtype(c.input(0)) == DType::kF16; }

void compose_softmax(Composition& c) {
  c.result(0, softmax_by_steps(c, c.input(0), c.attributes().integer("axis", -1)));
}

constexpr CompositeOp kRows[] = {
    {"Softmax", 13, 1, 1, "axis", compose_softmax, is_f16},
    {"CastLike", 15, 2, 1, "round_mode saturate", compose_cast_like},
    {"SwiGLU", 28, 2, 1, "alpha", compose_swiglu},
};

}  // namespace

std::span<const CompositeOp> elementwise_composites() { return kRows; }

}  // namespace trainscope
