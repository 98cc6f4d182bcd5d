// How many launches the CUDA kernels of an optimizer's step take, whatever its number of tensors.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/ir/op_def.h"
#include "engine/ops/standard_ops.h"
#include "kernels/cuda/emulator/emulator.h"
#include "kernels/cuda/own_kernels.h"
#include "tests/support/op_case.h"

namespace trainscope::test {
namespace {

struct Launches {
  std::string_view op;
  int states = 0;  // beside each parameter
  std::string_view attributes;
  std::int64_t launches = 0;
};
constexpr Launches kSteps[] = {
    {.op = "SgdStep", .states = 0, .attributes = "", .launches = 1},
    {.op = "SgdStep", .states = 1, .attributes = "momentum=0.9 ", .launches = 1},
    {.op = "AdamWStep", .states = 2, .attributes = "", .launches = 1},
    {.op = "AdamWStep", .states = 2, .attributes = "mode=2 ", .launches = 1},
    {.op = "LionStep", .states = 1, .attributes = "", .launches = 1},
    {.op = "RmsPropStep", .states = 1, .attributes = "", .launches = 1},
    {.op = "LambStep", .states = 2, .attributes = "", .launches = 3},
};

// `count` tensors and another of two blocks. Those behind the first 40 have no elements: they take
// a row of a launch's table, and no block.
std::string tensors(int count, std::string_view fill) {
  std::string text;
  for (int i = 0; i < count; ++i) text += i < 40 ? fmt::format("[1]{}, ", fill) : "[0], ";
  return text + fmt::format("[8193]{}", fill);
}

// Of the example on the kernel that is preferred. Outputs that lie apart from the inputs and
// outputs in place of them have the same bits, by as many launches.
std::int64_t launches_of(std::string_view op, const std::string& text) {
  static const OpTable ops = standard_ops();
  static const KernelTable kernels = cuda::own_kernels();
  const OpDef* row = ops.find(op, kTrainscopeDomain);
  REQUIRE(row != nullptr);
  const OpCase op_case(*row, text, DType::kF32);
  const auto candidates = kernels_for(op_case, kernels);
  REQUIRE(!candidates.empty());
  const std::int64_t before = cuda::emulator::grids_run();
  const RunResult apart = run_kernel(op_case, *candidates[0], {});
  const std::int64_t launches = cuda::emulator::grids_run() - before;
  const RunResult in_place = run_kernel(op_case, *candidates[0], {.in_place = op_case.in_place()});
  CHECK(cuda::emulator::grids_run() - before == 2 * launches);
  CHECK(apart.faults.empty());
  CHECK(in_place.faults.empty());
  CHECK(same_bytes(apart.outputs, in_place.outputs));
  return launches;
}

std::string step_of(const Launches& step, int count) {
  std::string text = tensors(count, "") + ", " + tensors(count, "");
  for (int i = 0; i < step.states; ++i) text += ", " + tensors(count, ">0");
  return text + fmt::format(", []>0, []>0, i64[]={{3}}; {}outputs={}", step.attributes,
                            (step.states + 1) * (count + 1));
}

}  // namespace

TEST_CASE("cuda optimizer launches: one for all parameters, three of LAMB") {
  for (const Launches& step : kSteps) {
    for (const int count : {1, 40, 310}) {
      INFO(step.op, " ", step.attributes, count);
      CHECK(launches_of(step.op, step_of(step, count)) == step.launches);
    }
  }
}

TEST_CASE("cuda optimizer launches: two of the global norm") {
  for (const int count : {1, 40, 310}) {
    INFO(count);
    CHECK(launches_of("GlobalNorm", tensors(count, "")) == 2);
  }
}

// A table has 602 rows of AdamW and LAMB, 2322 of the norm.
TEST_CASE("cuda optimizer launches: a table that is full, and one more") {
  CHECK(launches_of("AdamWStep", step_of(kSteps[2], 601)) == 1);
  CHECK(launches_of("AdamWStep", step_of(kSteps[2], 602)) == 2);
  CHECK(launches_of("LambStep", step_of(kSteps[6], 602)) == 6);
  CHECK(launches_of("GlobalNorm", tensors(2321, "")) == 2);
  CHECK(launches_of("GlobalNorm", tensors(2322, "")) == 3);
}

}  // namespace trainscope::test
