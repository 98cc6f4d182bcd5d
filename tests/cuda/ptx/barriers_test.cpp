// What a barrier in a kernel's PTX, or a wait for copies, is for shows when its line is deleted.
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
  DType type = DType::kF32;
};

// Rows that a block works on, sums over several blocks' parts, sorts, tiles, copies on their way.
constexpr SharingExample kExamples[] = {
    {"Softmax", "[2,1100]"},
    {"LayerNormalization", "[2,1100], [1100], [1100]"},
    {"ReduceSum", "[3,2100], i64[1]={1}"},
    {"Transpose", "[40,35]; perm={1,0}"},
    {"GatherGrad", "[300,5], i64[300]<7; shape={7,5}"},
    {"CumSum", "[3,700], i64[]={1}"},
    {"Attention", "[1,200,6,16]; q_heads=2 outputs=2", DType::kBF16},
    {"AttentionGrad", "[1,150,2,16], [1,150,2,16], f32[1,2,150,2], [1,150,6,16]; q_heads=2",
     DType::kBF16},
    {"AttentionGrad", "[1,150,2,72], [1,150,2,72], f32[1,2,150,2], [1,150,6,72]; q_heads=2",
     DType::kF16},
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
  const std::string of_line = text.substr(line.begin, line.length);
  const bool needed = of_line.find(".sync") == std::string::npos &&
                      of_line.find(".wait_group") == std::string::npos;
  if (needed) return {};
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

struct Survey {
  int deleted = 0;
  int survivors = 0;
};

// Runs the kernel without each of its barriers in turn.
void delete_barriers(ptx::InterpretedKernels& ptx, std::string_view op, const OpCase& op_case,
                     const Kernel& kernel, Survey& survey) {
  ptx.machine().take_barriers();
  const RunResult whole = run_interpreted(ptx, op_case, kernel, {});
  for (const ptx::TextLine& barrier : ptx.machine().take_barriers()) {
    const std::string text = ptx.text_of(barrier.module);
    std::string changed = without_barrier(text, barrier.number);
    if (changed.empty()) continue;
    ptx.replace(barrier.module, std::move(changed));
    ++survey.deleted;
    if (!is_found(ptx, op_case, kernel, whole)) {
      ++survey.survivors;
      CHECK_MESSAGE(barrier.source.starts_with(kOrdersRounds), op, ": ", barrier.module, ":",
                    barrier.number, " (", barrier.source, ") can be deleted");
    }
    ptx.replace(barrier.module, text);
  }
}

}  // namespace

TEST_CASE("ptx barriers: deleting one is found") {
  ptx::InterpretedKernels* ptx = built_kernels(Texts::kStrict);
  if (ptx == nullptr) return;
  Survey survey;
  for (const SharingExample& example : kExamples) {
    const KernelCase each = kernel_case(example.op, example.text, example.type);
    for (const Kernel* kernel : each.kernels) {
      try {
        delete_barriers(*ptx, example.op, *each.op_case, *kernel, survey);
      } catch (const ptx::NoText&) {
        continue;  // attention on other cores
      }
    }
  }
  ptx->machine().forget_races();
  CHECK(survey.deleted >= 24);
  CHECK(4 * survey.survivors <= survey.deleted);
}

}  // namespace trainscope::test
