// Trigonometric and hyperbolic functions and their inverses, by the C library.
#include <cmath>
#include <string_view>

#include "kernels/cpu/pointwise/elementwise.h"
#include "kernels/cpu/pointwise/pointwise.h"

namespace trainscope::cpu {
namespace {

constexpr std::int64_t kScalarMathGrain = 2048;  // about 10 ns for each element

template <class T>
using Function = T (*)(T);

template <class T, Function<T> kFunction>
void run_function(const RunArgs& run) {
  map_elements<T>(run, kScalarMathGrain, [](T x) { return kFunction(x); });
}

// The f32 and the f64 version of a function.
template <Function<float> kF32, Function<double> kF64>
void add_function(KernelTable& table, std::string_view op, std::string_view name) {
  table.add(op, DType::kF32, {.name = name, .run = run_function<float, kF32>});
  table.add(op, DType::kF64, {.name = name, .run = run_function<double, kF64>});
}

}  // namespace

void add_trigonometric(KernelTable& table) {
  add_function<sinf, sin>(table, "Sin", "sin");
  add_function<cosf, cos>(table, "Cos", "cos");
  add_function<tanf, tan>(table, "Tan", "tan");
  add_function<asinf, asin>(table, "Asin", "asin");
  add_function<acosf, acos>(table, "Acos", "acos");
  add_function<atanf, atan>(table, "Atan", "atan");
  add_function<sinhf, sinh>(table, "Sinh", "sinh");
  add_function<coshf, cosh>(table, "Cosh", "cosh");
  add_function<asinhf, asinh>(table, "Asinh", "asinh");
  add_function<acoshf, acosh>(table, "Acosh", "acosh");
  add_function<atanhf, atanh>(table, "Atanh", "atanh");
}

}  // namespace trainscope::cpu
