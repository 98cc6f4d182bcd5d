// The examples that CUDA kernels run on for the thread sanitizer, and what each launches.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/ops/standard_ops.h"
#include "kernels/api/kernel.h"
#include "tests/support/op_case.h"

namespace trainscope::test {

// What a case launches of one kernel: its name in the program's symbols, and the most blocks that
// one launch has.
struct Launched {
  std::string symbol;
  std::uint64_t blocks = 0;
};

// An example in one float type, on one of the kernels of the table that take it.
struct RaceCase {
  const OpCase* op_case = nullptr;
  const Kernel* kernel = nullptr;
  std::vector<Launched> launched;
  std::uint64_t threads = 0;  // of all of its launches

  // "Softmax '[2,3]; axis=1' f32"
  std::string name() const { return op_case->name(); }
};

class RaceCases {
 public:
  // Every example of every op row, and wide ones, in f32, f64, bf16 and f16. Nothing
  // is computed: what a case launches follows from its shapes. Throws std::runtime_error for an
  // example of several blocks that launches nothing.
  RaceCases();

  const std::vector<RaceCase>& all() const { return cases_; }
  // A case for each kernel that any launches: with at least two blocks where there is one, of as
  // few threads as there are. One case may stand for several kernels.
  std::vector<RaceCase> one_for_each_kernel() const;

 private:
  // Whether a kernel takes the example and launches something: in any type, those of two bytes with
  // sums and statistics in f32 as well, or in one.
  bool add_in_all_types(const OpDef& row, std::string_view text);
  bool add(const OpDef& row, std::string_view text, DType type);

  OpTable ops_ = standard_ops();
  KernelTable kernels_;
  std::vector<std::unique_ptr<const OpCase>> op_cases_;
  std::vector<RaceCase> cases_;
};

}  // namespace trainscope::test
