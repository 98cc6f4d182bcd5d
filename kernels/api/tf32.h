// TF32: numbers of f32 whose fraction is rounded to 10 bits, which tensor cores multiply.
#pragma once

#include <array>
#include <string_view>

namespace trainscope {

// A matmul whose factors of f32 are rounded to TF32; products and sums are f32's.
struct Tf32Form {
  std::string_view op;
  std::string_view form;  // the name under which a kernel table has its kernels, for f32
};
inline constexpr std::array<Tf32Form, 5> kTf32Forms = {{{"MatMul", "MatMul in TF32"},
                                                        {"Gemm", "Gemm in TF32"},
                                                        {"BatchMatMul", "BatchMatMul in TF32"},
                                                        {"MatMulAdd", "MatMulAdd in TF32"},
                                                        {"MultiMatMul", "MultiMatMul in TF32"}}};

// Empty: the op has no such form.
constexpr std::string_view tf32_form(std::string_view op) {
  for (const Tf32Form& each : kTf32Forms) {
    if (each.op == op) return each.form;
  }
  return {};
}

}  // namespace trainscope
