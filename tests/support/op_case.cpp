// Cases from examples; kernel runs whose every byte outside the outputs is watched.
#include "tests/support/op_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "engine/core/text.h"

namespace trainscope::test {
namespace {

constexpr std::size_t kGuardBytes = 256;
constexpr unsigned char kGuard = 0xC3;

// Bytes between two guards, aligned like the arena's buffers but for `shift` bytes.
class GuardedBytes {
 public:
  GuardedBytes(std::size_t bytes, unsigned char fill, std::size_t shift)
      : bytes_(bytes),
        begin_(kGuardBytes + shift),
        memory_({.dtype = DType::kBool,
                 .shape = {static_cast<std::int64_t>(bytes + 2 * kGuardBytes + shift)}}) {
    std::memset(memory_.data(), kGuard, memory_.bytes());
    std::memset(memory_.data() + begin_, fill, bytes);
  }
  void* data() { return bytes_ == 0 ? nullptr : memory_.data() + begin_; }
  bool intact() const {
    const auto guarded = [](std::byte b) { return b == std::byte{kGuard}; };
    const std::byte* begin = memory_.data();
    return std::all_of(begin, begin + begin_, guarded) &&
           std::all_of(begin + begin_ + bytes_, begin + memory_.bytes(), guarded);
  }
  bool holds(const Tensor& tensor) {
    return bytes_ == 0 || std::memcmp(data(), tensor.data(), bytes_) == 0;
  }

 private:
  std::size_t bytes_;
  std::size_t begin_;
  Tensor memory_;
};

// The memory of one run: every tensor in a block of its own.
class Arena {
 public:
  Arena(const OpCase& op_case, const RunOptions& options) : case_(op_case), options_(options) {
    for (std::size_t i = 0; i < op_case.inputs().size(); ++i) {
      const Tensor& tensor = op_case.inputs()[i];
      blocks_.push_back(guarded(tensor.type()));
      if (tensor.bytes() > 0) std::memcpy(blocks_.back()->data(), tensor.data(), tensor.bytes());
      inputs.push_back({.type = op_case.has(i) ? tensor.type() : TensorType{},
                        .data = blocks_.back()->data(),
                        .present = op_case.has(i)});
    }
    if (options.ranges) ranges_ = op_case.ranges();
    for (std::size_t k = 0; k < op_case.outputs().size(); ++k) add_output(k);
    for (std::size_t i = 0; ranges_.in_output && i < ranges_.offsets.size(); ++i) move_input(i);
  }

  void add_workspace(std::size_t bytes) {
    blocks_.push_back(std::make_unique<GuardedBytes>(bytes, options_.poison, 0));
    workspace = blocks_.back()->data();
  }

  RunResult result() {
    RunResult result;
    for (std::size_t k = 0; k < outputs.size(); ++k) {
      Tensor tensor(case_.outputs()[k]);
      if (outputs[k].present && tensor.bytes() > 0) {
        std::memcpy(tensor.data(), outputs[k].data, tensor.bytes());
      }
      result.outputs.push_back(std::move(tensor));
    }
    for (std::size_t b = 0; b < blocks_.size(); ++b) {
      if (!blocks_[b]->intact()) {
        result.faults.push_back(fmt::format("writes outside {}", name_of_block(b)));
      }
    }
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (!overwritten(static_cast<int>(i)) && !blocks_[i]->holds(case_.inputs()[i])) {
        result.faults.push_back(fmt::format("changes input {}", i));
      }
    }
    return result;
  }

  std::vector<TensorView> inputs;
  std::vector<TensorView> outputs;
  void* workspace = nullptr;

 private:
  std::unique_ptr<GuardedBytes> guarded(const TensorType& type) const {
    return std::make_unique<GuardedBytes>(type.bytes(), options_.poison,
                                          options_.shifted ? size_of(type.dtype) : 0);
  }

  void add_output(std::size_t k) {
    TensorView view{.type = case_.outputs()[k]};
    if (static_cast<int>(k) == options_.absent_output) {
      outputs.push_back({.type = {}, .data = nullptr, .present = false});
      return;
    }
    for (const InPlace& pair : options_.in_place) {
      if (pair.output == static_cast<int>(k)) {
        view.data = inputs[static_cast<std::size_t>(pair.input)].data;
      }
    }
    if (!ranges_.in_output && k < ranges_.offsets.size()) {
      view.data = static_cast<std::byte*>(inputs[0].data) + ranges_.offsets[k];
    }
    if (view.data == nullptr) {
      blocks_.push_back(guarded(view.type));
      view.data = blocks_.back()->data();
    }
    outputs.push_back(view);
  }

  void move_input(std::size_t i) {
    if (inputs[i].type.bytes() == 0) return;
    std::byte* to = static_cast<std::byte*>(outputs[0].data) + ranges_.offsets[i];
    std::memcpy(to, inputs[i].data, inputs[i].type.bytes());
    inputs[i].data = to;
  }

  bool overwritten(int input) const {
    return std::any_of(options_.in_place.begin(), options_.in_place.end(),
                       [input](const InPlace& pair) { return pair.input == input; });
  }

  std::string name_of_block(std::size_t block) const {
    if (block < inputs.size()) return fmt::format("input {}", block);
    if (workspace != nullptr && block + 1 == blocks_.size()) return "the workspace";
    return fmt::format("block {} of the outputs", block - inputs.size());
  }

  const OpCase& case_;
  const RunOptions& options_;
  ByteRanges ranges_;
  std::vector<std::unique_ptr<GuardedBytes>> blocks_;  // inputs, outputs, workspace
};

}  // namespace

OpCase::OpCase(const OpDef& row, std::string_view text, DType float_type)
    : row_(row), text_(text), float_type_(float_type), example_(parse_example(text)) {
  const std::size_t count = example_.inputs.size();
  present_ = std::make_unique<bool[]>(count);
  for (std::size_t i = 0; i < count; ++i) {
    present_[i] = example_.inputs[i].present;
    const bool stays =
        std::ranges::find(row.f32_inputs, static_cast<int>(i)) != row.f32_inputs.end();
    const DType type = stays ? computed(float_type) : float_type;
    inputs_.push_back(present_[i] ? make_input(example_, i, type, kSeed) : Tensor());
    input_types_.push_back(inputs_.back().type());
  }
  for (std::size_t i = 0; i < count; ++i) constants_.push_back(known(i) ? &inputs_[i] : nullptr);
  OpArgs before = args();
  before.outputs = {};
  outputs_ = row.shape(before);
  CHECK_INVARIANT(outputs_.size() >= static_cast<std::size_t>(example_.output_count));
  outputs_.resize(static_cast<std::size_t>(example_.output_count));
  if (row.params) params_ = row.params(args());
}

OpArgs OpCase::args() const {
  return {.attributes = example_.attributes,
          .inputs = input_types_,
          .constants = constants_,
          .present = {present_.get(), inputs_.size()},
          .outputs = outputs_,
          .output_count = example_.output_count};
}

DType OpCase::key() const {
  std::vector<TensorType> given;
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    if (has(i)) given.push_back(input_types_[i]);
  }
  return kernel_dtype(given, outputs_);
}

std::vector<InPlace> OpCase::in_place() const {
  return row_.in_place ? row_.in_place(args()) : std::vector<InPlace>{};
}

std::string OpCase::name() const {
  return fmt::format("{} \"{}\" {}", row_.name, text_, name_of(float_type_));
}

std::vector<const Tensor*> OpCase::input_pointers() const {
  std::vector<const Tensor*> pointers;
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    pointers.push_back(has(i) ? &inputs_[i] : nullptr);
  }
  return pointers;
}

// What `prepare` may see: data of inputs that are known at compile time only.
std::vector<TensorView> shapes_only(const OpCase& op_case, std::vector<TensorView> views) {
  for (std::size_t i = 0; i < views.size(); ++i) {
    if (!op_case.known(i)) views[i].data = nullptr;
  }
  return views;
}

std::vector<const Kernel*> kernels_for(const OpCase& op_case, const KernelTable& kernels) {
  const RunOptions options;
  const Arena arena(op_case, options);
  const std::vector<TensorView> inputs = shapes_only(op_case, arena.inputs);
  std::vector<TensorView> outputs = arena.outputs;
  for (TensorView& view : outputs) view.data = nullptr;
  PrepareArgs args{.params = op_case.params(), .inputs = inputs, .outputs = outputs};
  std::vector<const Kernel*> found = kernels.find(op_case.row().name, op_case.key());
  std::erase_if(found, [&args](const Kernel* k) {
    args.context = k->context;
    return k->supports && !k->supports(args);
  });
  return found;
}

RunResult run_kernel(const OpCase& op_case, const Kernel& kernel, const RunOptions& options) {
  Arena arena(op_case, options);
  const std::vector<TensorView> inputs = shapes_only(op_case, arena.inputs);
  std::vector<TensorView> outputs = arena.outputs;
  for (TensorView& view : outputs) view.data = nullptr;
  const PrepareArgs args{.params = op_case.params(),
                         .inputs = inputs,
                         .outputs = outputs,
                         .threads = options.threads,
                         .context = kernel.context};
  Prepared prepared;
  if (kernel.prepare) prepared = kernel.prepare(args);
  if (prepared.workspace_bytes > 0) arena.add_workspace(prepared.workspace_bytes);
  kernel.run({.params = op_case.params(),
              .inputs = arena.inputs,
              .outputs = arena.outputs,
              .workspace = arena.workspace,
              .state = prepared.state.get(),
              .threads = options.threads});
  return arena.result();
}

bool same_bytes(const Tensor& a, const Tensor& b) {
  return a.type() == b.type() &&
         (a.bytes() == 0 || std::memcmp(a.data(), b.data(), a.bytes()) == 0);
}

bool same_bytes(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Tensor& x, const Tensor& y) { return same_bytes(x, y); });
}

double relative_error(const Tensor& got, const Tensor& want) {
  constexpr double kDifferent = std::numeric_limits<double>::infinity();
  constexpr double kSmallNorm = 1e-3;  // below it the error counts absolutely
  if (got.shape() != want.shape()) return kDifferent;
  if (!is_float(got.dtype())) return same_bytes(got, want) ? 0.0 : kDifferent;
  const Tensor a = convert(got, DType::kF64);
  const Tensor b = convert(want, DType::kF64);
  double difference = 0.0;
  double norm = 0.0;
  for (std::size_t i = 0; i < a.values<double>().size(); ++i) {
    const double x = a.values<double>()[i];
    const double y = b.values<double>()[i];
    if (std::isnan(x) != std::isnan(y)) return kDifferent;
    if (std::isinf(x) || std::isinf(y)) {
      if (x != y) return kDifferent;
      continue;
    }
    if (std::isnan(x)) continue;
    difference += (x - y) * (x - y);
    norm += y * y;
  }
  return std::sqrt(difference) / std::max(std::sqrt(norm), kSmallNorm);
}

}  // namespace trainscope::test
