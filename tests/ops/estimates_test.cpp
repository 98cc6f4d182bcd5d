// What kernels say that their calls compute and move, on every example of every row.
#include <doctest/doctest.h>

#include <memory>
#include <set>
#include <string_view>

#include "engine/exec/backends.h"
#include "engine/ops/standard_ops.h"
#include "engine/plan/kernel_call.h"
#include "tests/support/op_case.h"

namespace trainscope::test {
namespace {

// A case as `prepare` sees it.
struct Prepared {
  std::vector<TensorView> inputs;
  std::vector<TensorView> outputs;
  std::int64_t output_bytes = 0;

  explicit Prepared(const OpCase& op_case) {
    for (std::size_t i = 0; i < op_case.inputs().size(); ++i) {
      const Tensor& tensor = op_case.inputs()[i];
      const bool known = op_case.known(i);
      inputs.push_back({.type = op_case.has(i) ? tensor.type() : TensorType{},
                        .data = known ? const_cast<std::byte*>(tensor.data()) : nullptr,
                        .present = op_case.has(i)});
    }
    for (const TensorType& type : op_case.outputs()) {
      outputs.push_back({.type = type, .data = nullptr});
      output_bytes += static_cast<std::int64_t>(type.bytes());
    }
  }
};

// Null where some floats of a row stay f32 or f64, so that not all can have the stored type.
std::unique_ptr<const OpCase> case_of(const OpDef& row, std::string_view text, DType float_type) {
  try {
    return std::make_unique<const OpCase>(row, text, float_type);
  } catch (const Error&) {
    if (!is_stored_only(float_type)) throw;
    return nullptr;
  }
}

void check_estimate(const OpCase& op_case, const Kernel& kernel, int threads) {
  const Prepared views(op_case);
  const PrepareArgs args{.params = op_case.params(),
                         .inputs = views.inputs,
                         .outputs = views.outputs,
                         .threads = threads};
  const Cost definition = cost_of(op_case.row(), op_case.args());
  const Cost cost = cost_of(kernel, args, definition);
  CHECK(cost.flops >= 0);
  if (kernel.estimate == nullptr) {
    CHECK(cost.flops == definition.flops);
    CHECK(cost.bytes_written == definition.bytes_written);
    return;
  }
  // An upcast op may write less than its output, in place.
  const std::int64_t written = std::min(views.output_bytes, definition.bytes_written);
  CHECK(cost.bytes_written >= written);
  if (views.output_bytes == 0) return;
  CHECK(cost.bytes_read + cost.flops + cost.bytes_written > 0);
}

}  // namespace

TEST_CASE("estimates: every kernel's are at least its outputs' bytes") {
  const OpTable ops = standard_ops();
  std::set<std::string_view> estimated;
  for (DType float_type : {DType::kF32, DType::kF64, DType::kBF16, DType::kF16}) {
    for (const OpDef* row : ops.rows()) {
      for (std::string_view text : row->examples) {
        const std::unique_ptr<const OpCase> op_case = case_of(*row, text, float_type);
        if (op_case == nullptr) continue;
        for (const Kernel* kernel : kernels_for(*op_case, cpu_kernels())) {
          INFO(row->name, " \"", text, "\" ", name_of(float_type), ", kernel ", kernel->name);
          for (int threads : {1, 3}) check_estimate(*op_case, *kernel, threads);
          if (kernel->estimate != nullptr) estimated.insert(kernel->name);
        }
      }
    }
  }
  for (std::string_view name :
       {"conv.own", "conv.onednn", "conv.pointwise", "matmul.own", "multi_matmul.own",
        "compact_matmul.own", "attention.own", "matmul.own_upcast", "max_pool_grad.onednn",
        "rnn.own", "rnn_grad.own", "lstm.own", "lstm_grad.own", "gru.own", "gru_grad.own"}) {
    CAPTURE(name);
    CHECK(estimated.contains(name));
  }
}

TEST_CASE("estimates: a refusal says why") {
  const OpTable ops = standard_ops();
  int refusals = 0;
  for (const OpDef* row : ops.rows()) {
    for (std::string_view text : row->examples) {
      const OpCase op_case(*row, text, DType::kF32);
      const Prepared views(op_case);
      PrepareArgs args{
          .params = op_case.params(), .inputs = views.inputs, .outputs = views.outputs};
      for (const Kernel* kernel : cpu_kernels().find(row->name, op_case.key())) {
        if (kernel->supports == nullptr) continue;
        args.context = kernel->context;
        const Support support = kernel->supports(args);
        if (support) continue;
        ++refusals;
        INFO(kernel->name, ": ", support.why_not);
        CHECK(support.why_not.size() > 10);
        CHECK(!support.why_not.ends_with('.'));
      }
    }
  }
  CHECK(refusals > 20);
}

}  // namespace trainscope::test
