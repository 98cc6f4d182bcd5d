// verify: the engine against the stored numbers of a reference folder, a row per tensor.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "engine/passes/pass_manager.h"
#include "engine/passes/training_options.h"
#include "engine/plan/lower.h"

namespace trainscope {

struct VerifyRow {
  std::string what;  // loss, grad, act, dact, losses, grad_norms, param, stat, validation, plan
  std::string name;  // of the tensor, with its optimizer and step
  double error = 0.0;
  double limit = 0.0;  // same unit as error: see docs/numerics.md

  bool ok() const { return error <= limit; }  // false for NaN
};

struct VerifyReport {
  std::filesystem::path folder;
  std::vector<VerifyRow> rows;
  double worst_share = 0.0;  // the largest error / limit
  std::size_t failed = 0;

  void add(VerifyRow row);
};

struct VerifyOptions {
  StepPrecision precision = StepPrecision::kF32;
  LowerOptions lower;
  PassOptions passes;
  DeviceHandle device = nullptr;  // null: the CPU
};

// Everything that the folder holds numbers for: in f32 and, on the CPU and for gradients, f64; in
// mixed precision loss and gradients. A folder without numbers fails with kUsage.
// `convergence-gpt2` is verified on ../gpt2/model.onnx.
VerifyReport verify_reference(const std::filesystem::path& folder, const VerifyOptions& options);

// ||a - b||_2 over finite elements of b, in double; infinite when the non-finite elements are not
// the same ones.
double error_norm(const Tensor& a, const Tensor& b);
// ||a||_2 over finite elements.
double norm(const Tensor& a);

}  // namespace trainscope
