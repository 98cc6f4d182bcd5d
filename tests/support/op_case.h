// One example of an op row as a runnable case, and runs of a kernel on it between guard bytes.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/core/tensor.h"
#include "engine/ops/rules/byte_ranges.h"
#include "kernels/api/kernel.h"
#include "tests/support/op_examples.h"

namespace trainscope::test {

inline constexpr std::uint64_t kSeed = 20260101;

// The row's example with inputs of one float type (f32 where the row wants it beside a type of two
// bytes), output types by the row's shape rule.
class OpCase {
 public:
  // Throws what the row's rules throw.
  OpCase(const OpDef& row, std::string_view text, DType float_type);
  OpCase(const OpCase&) = delete;

  const OpDef& row() const { return row_; }
  const Example& example() const { return example_; }
  const std::vector<Tensor>& inputs() const { return inputs_; }
  const std::vector<TensorType>& outputs() const { return outputs_; }
  const Params& params() const { return params_; }
  // Whether input i is given, and whether it is known at compile time.
  bool has(std::size_t i) const { return example_.inputs[i].present; }
  bool known(std::size_t i) const { return has(i) && example_.inputs[i].fill == Fill::kGiven; }

  OpArgs args() const;
  DType key() const;  // under which the kernel table holds the kernel
  std::vector<InPlace> in_place() const;
  ByteRanges ranges() const { return byte_ranges(row_, args()); }
  // "Softmax '[2,3]; axis=1' f32"
  std::string name() const;
  // Null for inputs that are left out: what Evaluate takes.
  std::vector<const Tensor*> input_pointers() const;

 private:
  const OpDef& row_;
  std::string text_;
  DType float_type_;
  Example example_;
  std::vector<Tensor> inputs_;
  std::vector<TensorType> input_types_;
  std::vector<const Tensor*> constants_;
  std::unique_ptr<bool[]> present_;
  std::vector<TensorType> outputs_;
  Params params_;
};

struct RunOptions {
  int threads = 1;
  unsigned char poison = 0xA5;         // what outputs and workspace hold before the run
  std::vector<InPlace> in_place = {};  // outputs that get their inputs' bytes
  int absent_output = -1;              // left out
  bool ranges = false;                 // what may lie inside another tensor does
  bool shifted = false;                // operands begin one element behind an aligned address
};

struct RunResult {
  std::vector<Tensor> outputs;
  std::vector<std::string> faults;  // bytes written where none may be
};

// The kernels of the table for the case's key that support it, the preferred one first.
std::vector<const Kernel*> kernels_for(const OpCase& op_case, const KernelTable& kernels);
RunResult run_kernel(const OpCase& op_case, const Kernel& kernel, const RunOptions& options);

bool same_bytes(const Tensor& a, const Tensor& b);
bool same_bytes(const std::vector<Tensor>& a, const std::vector<Tensor>& b);

// ||got - want|| / ||want|| of floats; infinity when shapes or the places of NaN and infinities
// differ, or when integers do.
double relative_error(const Tensor& got, const Tensor& want);

}  // namespace trainscope::test
