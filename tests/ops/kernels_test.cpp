// Every kernel of the table against the f64 reference, on every example of every row: values,
// bytes written, in-place runs, repetition, threads.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <set>

#include "engine/exec/backends.h"
#include "engine/exec/reference.h"
#include "engine/ops/standard_ops.h"
#include "tests/support/op_case.h"

namespace trainscope::test {
namespace {

constexpr double kToleranceF64 = 1e-11;  // of another f64 kernel against the reference

struct Tables {
  OpTable ops = standard_ops();
  const KernelTable& kernels = cpu_kernels();
  Evaluate reference = evaluator(ops, kernels, {.kernels = KernelChoice::kReference});
};

std::vector<Tensor> reference_outputs(const Tables& tables, const OpCase& op_case) {
  return tables.reference(op_case.row(), op_case.example().attributes, op_case.input_pointers(),
                          op_case.outputs());
}

// Calls f on each example of each row; what it throws is a failure of that example.
template <typename F>
void for_each_case(const Tables& tables, DType float_type, F f) {
  for (const OpDef* row : tables.ops.rows()) {
    for (std::string_view text : row->examples) {
      INFO(row->name, " \"", text, "\" ", name_of(float_type));
      try {
        f(OpCase(*row, text, float_type));
      } catch (const Error& error) {
        FAIL_CHECK(error.message());
      }
    }
  }
}

template <typename F>
void for_each_kernel(const Tables& tables, DType float_type, F f) {
  for_each_case(tables, float_type, [&](const OpCase& op_case) {
    for (const Kernel* kernel : kernels_for(op_case, tables.kernels)) {
      INFO("kernel ", kernel->name);
      f(op_case, *kernel);
    }
  });
}

void check_close(const std::vector<Tensor>& got, const std::vector<Tensor>& want, double bound) {
  REQUIRE(got.size() == want.size());
  for (std::size_t k = 0; k < got.size(); ++k) {
    const double error = relative_error(got[k], want[k]);
    CHECK_MESSAGE(error <= bound, "output ", k, ": relative error ", error, ", bound ", bound);
  }
}

// The outputs of f64 inputs by the reference kernel: the oracle.
std::vector<Tensor> oracle(const Tables& tables, const OpCase& op_case, std::string_view text) {
  return reference_outputs(tables, OpCase(op_case.row(), text, DType::kF64));
}

}  // namespace

TEST_CASE("op suite: every row computes its examples as the f64 reference does") {
  const Tables tables;
  for (DType float_type : {DType::kF32, DType::kF64}) {
    for (const OpDef* row : tables.ops.rows()) {
      for (std::string_view text : row->examples) {
        INFO(row->name, " \"", text, "\" ", name_of(float_type));
        try {
          const OpCase op_case(*row, text, float_type);
          const std::vector<Tensor> want = oracle(tables, op_case, text);
          CHECK_MESSAGE(!want.empty(), "no f64 kernel and no decomposition");
          if (want.empty()) continue;
          const double bound = float_type == DType::kF32 ? row->tolerance_f32 : kToleranceF64;
          check_close(reference_outputs(tables, op_case), want, bound);
          for (const Kernel* kernel : kernels_for(op_case, tables.kernels)) {
            INFO("kernel ", kernel->name);
            check_close(run_kernel(op_case, *kernel, {}).outputs, want, bound);
          }
        } catch (const Error& error) {
          FAIL_CHECK(error.message());
        }
      }
    }
  }
}

TEST_CASE("op suite: a row has a kernel, a decomposition or is a view") {
  const Tables tables;
  for (DType float_type : {DType::kF32, DType::kF64}) {
    for_each_case(tables, float_type, [&](const OpCase& op_case) {
      const bool computed = op_case.row().is_view || op_case.row().decompose != nullptr ||
                            !kernels_for(op_case, tables.kernels).empty();
      CHECK_MESSAGE(computed, "no kernel for ", name_of(op_case.key()));
    });
  }
}

TEST_CASE("op suite: kernels write all of their outputs and nothing else") {
  const Tables tables;
  for (DType float_type : {DType::kF32, DType::kF64}) {
    for_each_kernel(tables, float_type, [](const OpCase& op_case, const Kernel& kernel) {
      const RunResult first = run_kernel(op_case, kernel, {.poison = 0xA5});
      const RunResult second = run_kernel(op_case, kernel, {.poison = 0xFF});
      for (const std::string& fault : first.faults) FAIL_CHECK(fault);
      CHECK_MESSAGE(same_bytes(first.outputs, second.outputs),
                    "outputs depend on what they or the workspace held before");
    });
  }
}

TEST_CASE("op suite: kernels do without an output that the node leaves out") {
  const Tables tables;
  for_each_kernel(tables, DType::kF32, [](const OpCase& op_case, const Kernel& kernel) {
    // An optimizer makes all next states, in place of what they follow.
    if (op_case.row().max_outputs == kVariadic && !op_case.in_place().empty()) return;
    const RunResult all = run_kernel(op_case, kernel, {});
    for (int absent = 1; absent < op_case.example().output_count; ++absent) {
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

TEST_CASE("op suite: in place gives the same bits") {
  const Tables tables;
  for (DType float_type : {DType::kF32, DType::kF64}) {
    for_each_kernel(tables, float_type, [](const OpCase& op_case, const Kernel& kernel) {
      const std::vector<InPlace> pairs = op_case.in_place();
      if (pairs.empty()) return;
      const RunResult apart = run_kernel(op_case, kernel, {});
      std::vector<std::vector<InPlace>> variants;
      std::vector<InPlace> together;
      std::set<int> outputs;
      std::set<int> inputs;
      for (const InPlace& pair : pairs) {
        variants.push_back({pair});
        if (outputs.insert(pair.output).second && inputs.insert(pair.input).second) {
          together.push_back(pair);
        }
        const TensorType& output = op_case.outputs()[static_cast<std::size_t>(pair.output)];
        const Tensor& input = op_case.inputs()[static_cast<std::size_t>(pair.input)];
        CHECK_MESSAGE(output.bytes() == input.bytes(), "output ", pair.output, " in input ",
                      pair.input, ": sizes differ");
      }
      variants.push_back(together);
      for (const std::vector<InPlace>& variant : variants) {
        const RunResult shared = run_kernel(op_case, kernel, {.in_place = variant});
        for (const std::string& fault : shared.faults) FAIL_CHECK(fault);
        CHECK_MESSAGE(same_bytes(apart.outputs, shared.outputs), "output ", variant[0].output,
                      " in input ", variant[0].input, " (", variant.size(),
                      " in place) gives other bits");
      }
    });
  }
}

TEST_CASE("op suite: what lies inside the other tensor needs no copy") {
  const Tables tables;
  std::set<std::string_view> ops;
  for (DType float_type : {DType::kF32, DType::kF64}) {
    for_each_kernel(tables, float_type, [&ops](const OpCase& op_case, const Kernel& kernel) {
      if (op_case.ranges().offsets.empty()) return;
      ops.insert(op_case.row().name);
      const RunResult apart = run_kernel(op_case, kernel, {});
      const RunResult inside = run_kernel(op_case, kernel, {.ranges = true});
      for (const std::string& fault : inside.faults) FAIL_CHECK(fault);
      CHECK_MESSAGE(same_bytes(apart.outputs, inside.outputs), "inside gives other bits");
    });
  }
  CHECK(ops == std::set<std::string_view>{"Concat", "Slice", "Split"});
}

TEST_CASE("op suite: two runs give the same bits; threads change no value, or no bit") {
  const Tables tables;
  std::set<std::string> differ;
  for_each_kernel(tables, DType::kF32, [&](const OpCase& op_case, const Kernel& kernel) {
    const RunResult one = run_kernel(op_case, kernel, {});
    const RunResult two = run_kernel(op_case, kernel, {.threads = 2});
    const RunResult again = run_kernel(op_case, kernel, {.threads = 2});
    for (const std::string& fault : two.faults) FAIL_CHECK(fault);
    CHECK_MESSAGE(same_bytes(two.outputs, again.outputs), "two runs with two threads differ");
    check_close(two.outputs, one.outputs, op_case.row().tolerance_f32);
    for (int threads = 2; threads <= 4; ++threads) {
      const RunResult more = threads == 2 ? two : run_kernel(op_case, kernel, {.threads = threads});
      if (same_bytes(one.outputs, more.outputs)) continue;
      differ.insert(std::string(kernel.name));
      CHECK_MESSAGE(!kernel.same_for_any_threads, threads, " threads give other bits than one");
    }
  });
  for (const std::string& name : differ) {
    MESSAGE(name, ": bits depend on the number of threads");
  }
}

}  // namespace trainscope::test
