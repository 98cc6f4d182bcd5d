// What a barrier in a kernel's PTX is for shows when its line is deleted.
#include <doctest/doctest.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "tests/cuda/ptx/interpreted_case.h"

namespace trainscope::test {
namespace {

struct SharingExample {
  std::string_view op;
  std::string_view text;
};

// Rows that a block works on, sums over several blocks' parts, sorts, tiles.
constexpr SharingExample kExamples[] = {
    {"Softmax", "[2,1100]"},
    {"LayerNormalization", "[2,1100], [1100], [1100]"},
    {"ReduceSum", "[3,2100], i64[1]={1}"},
    {"Transpose", "[40,35]; perm={1,0}"},
    {"GatherGrad", "[300,5], i64[300]<7; shape={7,5}"},
    {"CumSum", "[3,700], i64[]={1}"},
};

// Here each sum's first barrier is for the one before: the first of a kernel orders nothing.
constexpr std::string_view kOrdersRounds = "block_sums.h:";

struct Span {
  std::size_t begin = 0;
  std::size_t length = 0;
};

Span line_of(std::string_view text, int number) {
  std::size_t begin = 0;
  for (int line = 1; line < number; ++line) begin = text.find('\n', begin) + 1;
  return {.begin = begin, .length = text.find('\n', begin) - begin};
}

// The text without what is in a line; empty where that is needed for a result, as votes are.
std::string without_barrier(std::string text, int number) {
  const Span line = line_of(text, number);
  if (text.substr(line.begin, line.length).find(".sync") == std::string::npos) return {};
  return text.erase(line.begin, line.length);
}

// Whether the run is stopped, races or gives other bits.
bool is_found(ptx::InterpretedKernels& ptx, const OpCase& op_case, const Kernel& kernel,
              const RunResult& whole) {
  ptx.machine().forget_races();
  try {
    const RunResult run = run_interpreted(ptx, op_case, kernel, {});
    return !ptx.machine().races().empty() || !run.faults.empty() ||
           !same_values(run.outputs, whole.outputs);
  } catch (const ptx::Fault&) {
    return true;
  }
}

}  // namespace

TEST_CASE("ptx barriers: deleting one is found") {
  ptx::InterpretedKernels* ptx = built_kernels(Texts::kStrict);
  if (ptx == nullptr) return;
  int deleted = 0;
  int survivors = 0;
  for (const SharingExample& example : kExamples) {
    const KernelCase each = kernel_case(example.op, example.text);
    for (const Kernel* kernel : each.kernels) {
      ptx->machine().take_barriers();
      const RunResult whole = run_interpreted(*ptx, *each.op_case, *kernel, {});
      for (const ptx::TextLine& barrier : ptx->machine().take_barriers()) {
        const std::string text = ptx->text_of(barrier.module);
        std::string changed = without_barrier(text, barrier.number);
        if (changed.empty()) continue;
        ptx->replace(barrier.module, std::move(changed));
        ++deleted;
        if (!is_found(*ptx, *each.op_case, *kernel, whole)) {
          ++survivors;
          CHECK_MESSAGE(barrier.source.starts_with(kOrdersRounds), example.op, ": ", barrier.module,
                        ":", barrier.number, " (", barrier.source, ") can be deleted");
        }
        ptx->replace(barrier.module, text);
      }
    }
  }
  ptx->machine().forget_races();
  CHECK(deleted >= 12);
  CHECK(4 * survivors <= deleted);
}

}  // namespace trainscope::test
