// Shape and in-place rules and checks that op rows share. All failures are kBadInput with the
// shapes in the message; the builder adds the op and the node.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/ir/op_def.h"
#include "kernels/api/params.h"

namespace trainscope {

using Types = std::vector<TensorType>;

// --- Sizes ---------------------------------------------------------------------------------------
// a + b, a * b; fail when the result does not fit.
std::int64_t checked_add(std::int64_t a, std::int64_t b);
std::int64_t checked_multiply(std::int64_t a, std::int64_t b);
// The shape with these dimensions; fails beyond kMaxRank, on a negative dimension and when the
// elements (of 8 bytes) would take more than 256 TiB.
Shape checked_shape(std::span<const std::int64_t> dims);
inline Shape checked_shape(const Shape& shape) { return checked_shape(shape.span()); }

// --- Requirements --------------------------------------------------------------------------------
void require_float(const OpArgs& args, int input);
void require_number(const OpArgs& args, int input);  // a float or an integer that is computed with
void require_dtype(const OpArgs& args, int input, DType dtype);
void require_index(const OpArgs& args, int input);  // i32 or i64
// Inputs `first`, ... to the last present one have the dtype of input `first`.
void require_same_dtypes(const OpArgs& args, int first = 0);
void require_rank(const OpArgs& args, int input, int rank);
void require_shape(const OpArgs& args, int input, const Shape& expected);
// Two inputs have equal types (dtype and shape).
void require_same_types(const OpArgs& args, int a, int b);

// Axes in [-rank, rank) as sorted distinct ones in [0, rank).
std::vector<int> normalized_axes(std::span<const std::int64_t> axes, int rank);

// ONNX's number of an element type (TensorProto.DataType) and back; fails for types we lack.
std::int64_t onnx_number(DType dtype);
DType dtype_of_onnx(std::int64_t number);

// --- Shape rules ---------------------------------------------------------------------------------
Types same_as_first(const OpArgs& args);        // any dtype
Types float_same_as_first(const OpArgs& args);  // f32 or f64
// The numpy broadcast of all inputs, which must have one dtype (floats or integers).
Types broadcast_numbers(const OpArgs& args);
Types broadcast_given_numbers(const OpArgs& args);  // for variadic ops: no input is left out
Types broadcast_floats(const OpArgs& args);

Shape broadcast_shapes(const Shape& a, const Shape& b);
// `shape` without the reduced axes (or with 1 in their place).
Shape reduced_shape(const Shape& shape, const ReduceParams& reduce, bool keep_dims);

// --- Windows of convolutions and pools -----------------------------------------------------------
// Kernel, stride, dilation, padding from the attributes strides, dilations, pads and auto_pad, for
// an input [N, C, spatial...] and these kernel sizes, all checked: sizes > 0, pads >= 0, and a
// rank of 1 to kMaxSpatialRank.
WindowParams window_params(const OpArgs& args, const Shape& input,
                           std::span<const std::int64_t> kernel);
enum class Rounding : std::uint8_t { kFloor, kCeil };
// Windows along spatial axis `axis` of an input of `size` elements. kCeil adds the last, partial
// window, unless it would begin beyond the input and the padding before it (as PyTorch does).
std::int64_t window_output_size(const WindowParams& window, int axis, std::int64_t size,
                                Rounding rounding = Rounding::kFloor);
// [N, channels, windows...].
Shape window_output_shape(const WindowParams& window, const Shape& input, std::int64_t channels,
                          Rounding rounding = Rounding::kFloor);

// --- In-place rules ------------------------------------------------------------------------------
// Output 0 may take over the bytes of any input of its type: for ops whose element i needs
// element i of such an input only.
std::vector<InPlace> any_input_in_place(const OpArgs& args);
std::vector<InPlace> first_in_place(const OpArgs& args);  // only input 0, if of the same type

}  // namespace trainscope
