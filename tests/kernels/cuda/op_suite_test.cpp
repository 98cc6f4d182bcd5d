// The CUDA kernels in the emulator, on every example of every row: values, bytes written, in-place
// runs, orders of threads and blocks.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "engine/exec/backends.h"
#include "engine/exec/reference.h"
#include "engine/ops/standard_ops.h"
#include "kernels/cuda/emulator/emulator.h"
#include "kernels/cuda/own_kernels.h"
#include "tests/support/op_case.h"

namespace trainscope::test {
namespace {

constexpr double kToleranceF64 = 1e-11;

// Copies of whole tensors, which run no threads.
const std::set<std::string_view> kCopies{"offload.cuda", "fetch.cuda", "bit_cast.cuda"};

struct Tables {
  OpTable ops = standard_ops();
  KernelTable kernels = cuda::own_kernels();
  Evaluate reference = evaluator(ops, cpu_kernels(), {.kernels = KernelChoice::kReference});
};

// Of results in this type against the CPU's in the same.
double tolerance_of(DType dtype) {
  if (dtype == DType::kF64) return kToleranceF64;
  return dtype == DType::kBF16 ? 0x1p-7 : 0x1p-10;  // the distance of neighbours
}

// Null where the row does not take the example's inputs in this type of two bytes.
std::unique_ptr<const OpCase> case_of(const OpDef& row, std::string_view text, DType float_type) {
  try {
    return std::make_unique<const OpCase>(row, text, float_type);
  } catch (const Error& error) {
    if (!is_stored_only(float_type)) FAIL_CHECK(error.message());
    return nullptr;
  }
}

// Calls f on each example of each row that a CUDA kernel computes, with each such kernel.
template <typename F>
void for_each_kernel(const Tables& tables, DType float_type, F f) {
  for (const OpDef* row : tables.ops.rows()) {
    for (std::string_view text : row->examples) {
      INFO(row->name, " \"", text, "\" ", name_of(float_type));
      const auto op_case = case_of(*row, text, float_type);
      if (op_case == nullptr) continue;
      for (const Kernel* kernel : kernels_for(*op_case, tables.kernels)) {
        INFO("kernel ", kernel->name);
        f(*op_case, *kernel, text);
      }
    }
  }
}

void check_close(const std::vector<Tensor>& got, const std::vector<Tensor>& want, double bound) {
  REQUIRE(got.size() == want.size());
  for (std::size_t k = 0; k < got.size(); ++k) {
    const double error = relative_error(got[k], want[k]);
    CHECK_MESSAGE(error <= bound, "output ", k, ": relative error ", error, ", bound ", bound);
  }
}

std::vector<Tensor> on_the_cpu(const Tables& tables, const OpCase& op_case) {
  return tables.reference(op_case.row(), op_case.example().attributes, op_case.input_pointers(),
                          op_case.outputs());
}

}  // namespace

TEST_CASE("cuda emulator: kernels compute the op suite's examples as the f64 reference does") {
  const Tables tables;
  std::set<std::string_view> names;
  for_each_kernel(
      tables, DType::kF32, [&](const OpCase& op_case, const Kernel& kernel, std::string_view text) {
        const std::int64_t before = cuda::emulator::grids_run();
        const RunResult run = run_kernel(op_case, kernel, {});
        if (cuda::emulator::grids_run() > before) names.insert(kernel.name);
        const OpCase exact(op_case.row(), text, DType::kF64);
        check_close(run.outputs, on_the_cpu(tables, exact), op_case.row().tolerance_f32);
        for (const std::string& fault : run.faults) FAIL_CHECK(fault);
      });
  for (const KernelTable::Row& row : tables.kernels.rows()) {
    if (row.dtype == DType::kF32 && !kCopies.contains(row.kernel.name)) {
      CHECK_MESSAGE(names.contains(row.kernel.name), row.kernel.name, " ran on no example");
    }
  }
}

TEST_CASE("cuda emulator: kernels of other float types agree with the CPU's") {
  const Tables tables;
  for (const DType dtype : {DType::kF64, DType::kBF16, DType::kF16}) {
    for_each_kernel(tables, dtype,
                    [&](const OpCase& op_case, const Kernel& kernel, std::string_view) {
                      const RunResult run = run_kernel(op_case, kernel, {});
                      const std::vector<Tensor> want = on_the_cpu(tables, op_case);
                      if (!want.empty()) check_close(run.outputs, want, tolerance_of(dtype));
                    });
  }
}

// In the entry kernels_cuda_emulator.long, which ./test.sh runs beside kernels_cuda_emulator.
// Examples of several blocks do in orders_test.cpp.
TEST_SUITE("long") {
  TEST_CASE("cuda emulator: bits do not depend on the order of threads, nor on what memory held") {
    constexpr std::uint64_t kOrders = 8;
    const Tables tables;
    for_each_kernel(tables, DType::kF32,
                    [](const OpCase& op_case, const Kernel& kernel, std::string_view) {
                      const RunResult first = run_kernel(op_case, kernel, {.poison = 0xFF});
                      for (std::uint64_t seed = 1; seed <= kOrders; ++seed) {
                        cuda::emulator::set_seed(seed);
                        const RunResult again = run_kernel(op_case, kernel, {.poison = 0xA5});
                        CHECK_MESSAGE(same_bytes(first.outputs, again.outputs), "seed ", seed);
                      }
                      cuda::emulator::set_seed(0);
                    });
  }
}

// What the barrier is for shows on this example: without it some order gives other bits, or an end
// by a signal, for which each try is a process of its own.
bool shows_barrier(const OpCase& op_case, const Kernel& kernel, const RunResult& whole,
                   const cuda::emulator::Place& barrier) {
  constexpr unsigned kSeconds = 20;  // to go round in circles
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child != 0) {
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    return status != 0;
  }
  for (const int signal : {SIGABRT, SIGSEGV, SIGBUS}) std::signal(signal, SIG_DFL);
  ::alarm(kSeconds);
  cuda::emulator::skip_barrier(barrier);
  bool differs = false;
  for (std::uint64_t seed = 0; seed <= 3 && !differs; ++seed) {
    cuda::emulator::set_seed(seed);
    const RunResult without = run_kernel(op_case, kernel, {.poison = 0xFF});
    differs = !without.faults.empty() || !same_bytes(whole.outputs, without.outputs);
  }
  ::_exit(differs ? 1 : 0);
}

// Barriers that no example shows to be needed, at most so many in a file: they order what one round
// reads before what the next one writes, and blocks of the examples go round once.
const std::map<std::string, int, std::less<>> kNotShown{
    {"conv_tiles.h", 1}, {"ctc_loss.cu", 2}, {"compact_rows.cu", 1}, {"block_sums.h", 2}};

TEST_CASE("cuda emulator: every barrier is there for something") {
  const Tables tables;
  std::map<cuda::emulator::Place, bool> shown;
  cuda::emulator::take_barriers();
  for_each_kernel(tables, DType::kF32,
                  [&](const OpCase& op_case, const Kernel& kernel, std::string_view) {
                    const RunResult whole = run_kernel(op_case, kernel, {.poison = 0xFF});
                    for (const auto& barrier : cuda::emulator::take_barriers()) {
                      bool& known = shown[barrier];
                      known = known || shows_barrier(op_case, kernel, whole, barrier);
                    }
                  });
  CHECK(!shown.empty());
  std::map<std::string, int> not_shown;
  for (const auto& [barrier, known] : shown) {
    // Where a warp's lanes meet in a vote anyway, only the thread sanitizer sees what its barrier
    // is for: the vote orders no memory.
    if (barrier.intrinsic == cuda::emulator::Intrinsic::kWarpBarrier) continue;
    if (known) continue;
    const std::string_view file = barrier.line.file;
    const auto allowed = kNotShown.find(file.substr(file.rfind('/') + 1));
    const int most = allowed == kNotShown.end() ? 0 : allowed->second;
    CHECK_MESSAGE(++not_shown[std::string(file)] <= most, file, ":", barrier.line.number,
                  " can be left out");
  }
}

TEST_CASE("cuda emulator: kernels do without an output that the node leaves out") {
  const Tables tables;
  for_each_kernel(tables, DType::kF32,
                  [](const OpCase& op_case, const Kernel& kernel, std::string_view) {
                    // An optimizer makes all next states, in place of what they follow.
                    if (op_case.row().max_outputs == kVariadic && !op_case.in_place().empty())
                      return;
                    const int outputs = op_case.example().output_count;
                    if (outputs < 2) return;
                    const RunResult all = run_kernel(op_case, kernel, {});
                    for (int absent = 1; absent < outputs; ++absent) {
                      const RunResult some = run_kernel(op_case, kernel, {.absent_output = absent});
                      for (const std::string& fault : some.faults) FAIL_CHECK(fault);
                      for (std::size_t k = 0; k < all.outputs.size(); ++k) {
                        if (static_cast<int>(k) == absent) continue;
                        CHECK_MESSAGE(same_bytes(all.outputs[k], some.outputs[k]), "output ", k,
                                      " differs without output ", absent);
                      }
                    }
                  });
}

TEST_CASE("cuda emulator: operands may begin at any element") {
  const Tables tables;
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    for_each_kernel(tables, dtype,
                    [](const OpCase& op_case, const Kernel& kernel, std::string_view) {
                      const RunResult aligned = run_kernel(op_case, kernel, {});
                      const RunResult shifted = run_kernel(op_case, kernel, {.shifted = true});
                      for (const std::string& fault : shifted.faults) FAIL_CHECK(fault);
                      CHECK(same_bytes(aligned.outputs, shifted.outputs));
                    });
  }
}

TEST_CASE("cuda emulator: in place, or inside the other tensor, gives the same bits") {
  const Tables tables;
  for_each_kernel(
      tables, DType::kF32, [](const OpCase& op_case, const Kernel& kernel, std::string_view) {
        const std::vector<InPlace> pairs = op_case.in_place();
        const bool ranges = !op_case.ranges().offsets.empty();
        if (pairs.empty() && !ranges) return;
        const RunResult apart = run_kernel(op_case, kernel, {});
        std::vector<InPlace> together;
        std::set<int> outputs;
        std::set<int> inputs;
        for (const InPlace& pair : pairs) {
          const RunResult one = run_kernel(op_case, kernel, {.in_place = {pair}});
          CHECK_MESSAGE(same_bytes(apart.outputs, one.outputs), "output ", pair.output,
                        " in input ", pair.input, " gives other bits");
          if (outputs.insert(pair.output).second && inputs.insert(pair.input).second) {
            together.push_back(pair);
          }
        }
        const RunResult shared =
            run_kernel(op_case, kernel, {.in_place = together, .ranges = ranges});
        for (const std::string& fault : shared.faults) FAIL_CHECK(fault);
        CHECK_MESSAGE(same_bytes(apart.outputs, shared.outputs), "in place gives other bits");
      });
}

}  // namespace trainscope::test
