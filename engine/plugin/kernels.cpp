// Checks kernels of plugins, and calls them with plain structs on the stack.
#include "engine/plugin/kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>
#include <memory>
#include <optional>
#include <utility>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/plugin/calls.h"

namespace trainscope {
namespace {

// A call's structs lie on the stack: a kernel that runs allocates nothing.
constexpr std::size_t kMostCallOperands = 64;

struct CallState {
  const plugin::Kernel* kernel = nullptr;
  std::shared_ptr<const PluginAttributes> attributes;  // null: the op has none
};

std::shared_ptr<const PluginAttributes> attributes_of(const Params& params) {
  const auto* own = std::get_if<PluginParams>(&params);
  if (own == nullptr) return nullptr;
  return std::static_pointer_cast<const PluginAttributes>(own->attributes);
}

// A call in the plugin's form, and whom it tells what it reports.
class KernelCall {
 public:
  KernelCall(std::span<const TensorView> inputs, std::span<const TensorView> outputs,
             const PluginAttributes* attributes, int threads) {
    std::ranges::transform(inputs, inputs_.begin(), plugin_tensor);
    std::ranges::transform(outputs, outputs_.begin(), plugin_tensor);
    call.input_count = static_cast<std::int32_t>(inputs.size());
    call.output_count = static_cast<std::int32_t>(outputs.size());
    call.inputs = inputs_.data();
    call.outputs = outputs_.data();
    call.threads = threads;
    if (attributes != nullptr) {
      call.attributes = attributes->list().data();
      call.attribute_count = static_cast<std::int32_t>(attributes->list().size());
    }
    call.report = [](const plugin::Call* of, const char* text) {
      static_cast<KernelCall*>(of->host)->message = text == nullptr ? "it failed" : text;
    };
    call.host = this;
  }
  KernelCall(const KernelCall&) = delete;

  plugin::Call call;
  std::optional<std::string> message;  // what it reported

 private:
  std::array<plugin::Tensor, kMostCallOperands> inputs_;
  std::array<plugin::Tensor, kMostCallOperands> outputs_;
};

const plugin::Kernel& kernel_of(const PrepareArgs& args) {
  return *static_cast<const plugin::Kernel*>(args.context);
}

Support supports(const PrepareArgs& args) {
  const plugin::Kernel& kernel = kernel_of(args);
  if (std::max(args.inputs.size(), args.outputs.size()) > kMostCallOperands) {
    return {"kernels of plugins take up to 64 inputs and outputs"};
  }
  if (kernel.refusal == nullptr) return {};
  const std::shared_ptr<const PluginAttributes> attributes = attributes_of(args.params);
  KernelCall asked(args.inputs, args.outputs, attributes.get(), args.threads);
  const char* why = kernel.refusal(asked.call);
  if (asked.message) return {"its question whether it takes the call has failed"};
  return why == nullptr ? Support{} : Support{why};
}

Prepared prepare(const PrepareArgs& args) {
  const plugin::Kernel& kernel = kernel_of(args);
  auto state = std::make_shared<CallState>();
  state->kernel = &kernel;
  state->attributes = attributes_of(args.params);
  Prepared prepared;
  if (kernel.workspace != nullptr) {
    KernelCall asked(args.inputs, args.outputs, state->attributes.get(), args.threads);
    const std::int64_t bytes = kernel.workspace(asked.call);
    constexpr std::int64_t kMostBytes = std::int64_t{1} << 48;
    require(!asked.message && bytes >= 0 && bytes <= kMostBytes, ErrorCode::kBadInput,
            "the kernel {} cannot say how much workspace it needs: {}", kernel.name,
            printable(asked.message.value_or("a number that is none of bytes"), 400));
    prepared.workspace_bytes = static_cast<std::size_t>(bytes);
  }
  prepared.state = std::move(state);
  return prepared;
}

void run(const RunArgs& args) {
  const auto& state = *static_cast<const CallState*>(args.state);
  KernelCall made(args.inputs, args.outputs, state.attributes.get(), args.threads);
  made.call.workspace = args.workspace;
  state.kernel->run(made.call);
  if (made.message) args.call.fail(DeviceStatus::Code::kBadInput, *made.message);
}

// Copies that stay where they are for as long as the process runs.
const plugin::Kernel& kept(const plugin::Kernel& kernel) {
  static std::deque<plugin::Kernel> kernels;
  return kernels.emplace_back(kernel);
}

bool is_own(std::span<const OpDef> own, std::string_view op) {
  return std::ranges::any_of(own, [op](const OpDef& row) { return row.name == op; });
}

// A kernel sees attributes only where they are of a plugin's op.
void check_op_of(const plugin::Kernel& kernel, std::span<const OpDef> own, const OpTable& ops) {
  const std::string_view name = kernel.op == nullptr ? std::string_view() : kernel.op;
  if (is_own(own, name)) return;
  const std::vector<const OpDef*> rows = ops.rows();
  const auto row = std::ranges::find(rows, name, &OpDef::name);
  require(row != rows.end(), ErrorCode::kBadInput, "kernel {}: there is no op '{}'", kernel.name,
          printable(name));
  const bool plain = (*row)->attributes.empty() && (*row)->params == nullptr && !(*row)->is_view &&
                     (*row)->decompose == nullptr;
  require(plain, ErrorCode::kBadInput,
          "kernel {}: {} of the program has parameters that are no part of the plugin interface",
          kernel.name, name);
}

PluginKernel checked(const plugin::Kernel& kernel, std::span<const OpDef> own, const OpTable& ops) {
  require(kernel.name != nullptr && *kernel.name != '\0', ErrorCode::kBadInput,
          "a kernel has no name");
  check_op_of(kernel, own, ops);
  const std::optional<DType> dtype = engine_dtype(kernel.dtype);
  require(dtype.has_value(), ErrorCode::kBadInput, "kernel {}: there is no element type {}",
          kernel.name, kernel.dtype);
  require(kernel.run != nullptr, ErrorCode::kBadInput, "kernel {} has no function", kernel.name);
  const plugin::Kernel& stays = kept(kernel);
  return {.op = stays.op,
          .dtype = *dtype,
          .kernel = {.name = stays.name,
                     .supports = supports,
                     .prepare = prepare,
                     .run = run,
                     .same_for_any_threads = stays.same_for_any_threads != 0,
                     .context = &stays}};
}

}  // namespace

std::vector<PluginKernel> plugin_kernels(const plugin::Plugin& plugin, std::span<const OpDef> own,
                                         const OpTable& ops) {
  std::vector<PluginKernel> kernels;
  for (std::int32_t i = 0; i < plugin.kernel_count; ++i) {
    const std::optional<plugin::Kernel> kernel = taken(plugin.kernels[i]);
    require(kernel.has_value(), ErrorCode::kBadInput,
            "kernel number {} is not there, or has no size", i);
    kernels.push_back(checked(*kernel, own, ops));
  }
  for (const OpDef& row : own) {
    if (row.decompose) continue;
    const bool any = std::ranges::any_of(
        kernels, [&row](const PluginKernel& kernel) { return kernel.op == row.name; });
    require(any, ErrorCode::kBadInput, "op {} has neither a kernel nor a definition", row.name);
  }
  return kernels;
}

}  // namespace trainscope
