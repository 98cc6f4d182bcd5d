// What a plugin of Trainscope is: a shared library with ops, kernels and optimizers that the
// program loads by `--plugin FILE.so`. This header is all that one is built against; it needs
// nothing but the standard library. docs/plugins.md says how, examples/plugin is one.
//
// Everything that crosses the boundary is plain data and C functions. Structs that begin with their
// size may get more fields behind their last one: who was built with fewer has zeros there. Texts
// and tables that a plugin gives out stay as they are until the process ends. No exception may
// leave a plugin: `guarded` turns what a function throws into a failure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>

namespace trainscope::plugin {

// Raised when a struct below changes otherwise than by new fields at its end. The program takes
// only plugins of its own version.
inline constexpr std::int32_t kVersion = 1;
inline constexpr int kMaxRank = 8;

// Types of elements, by ONNX's numbers (TensorProto.DataType).
inline constexpr std::int32_t kFloat32 = 1;
inline constexpr std::int32_t kInt32 = 6;
inline constexpr std::int32_t kInt64 = 7;
inline constexpr std::int32_t kBool = 9;
inline constexpr std::int32_t kFloat16 = 10;
inline constexpr std::int32_t kFloat64 = 11;
inline constexpr std::int32_t kBFloat16 = 16;

struct TensorType {
  std::int32_t dtype = 0;  // by ONNX's numbers
  std::int32_t rank = 0;   // 0: a scalar
  std::int64_t dims[kMaxRank] = {};

  std::int64_t elements() const {
    std::int64_t count = 1;
    for (std::int32_t i = 0; i < rank; ++i) count *= dims[i];
    return count;
  }
};

// A tensor, dense and row-major.
struct Tensor {
  TensorType type;
  // Null: left out, empty, or, before the run, not known yet.
  void* data = nullptr;
  std::int32_t present = 1;  // 0: an optional input or output that the node leaves out

  template <typename T>
  T* as() const {
    return static_cast<T*>(data);
  }
};

// An attribute of a node. Which fields count follows from its kind.
enum class AttributeKind : std::int32_t {
  kInteger = 1,
  kNumber = 2,
  kText = 3,
  kIntegers = 4,
  kNumbers = 5
};
struct Attribute {
  const char* name = nullptr;
  AttributeKind kind = AttributeKind::kInteger;
  std::int32_t count = 0;  // of integers or numbers
  std::int64_t integer = 0;
  double number = 0.0;
  const char* text = nullptr;
  const std::int64_t* integers = nullptr;
  const double* numbers = nullptr;
};

// A node that a rule is asked about, or a call that a kernel computes.
struct Call {
  std::size_t size = sizeof(Call);
  std::int32_t input_count = 0;
  std::int32_t output_count = 0;
  const Tensor* inputs = nullptr;
  const Tensor* outputs = nullptr;  // a shape rule sees no types there yet
  const Attribute* attributes = nullptr;
  std::int32_t attribute_count = 0;
  std::int32_t threads = 1;   // that the call may use; a kernel may use fewer
  void* workspace = nullptr;  // as many bytes as the kernel asked for, of alignment 64
  // Says that the node is wrong, or that the call cannot be computed; text that is copied at once.
  void (*report)(const Call* call, const char* message) = nullptr;
  void* host = nullptr;  // the program's own

  void fail(const char* message) const { report(this, message); }
  const Attribute* find(const char* name) const {
    for (std::int32_t i = 0; i < attribute_count; ++i) {
      if (std::strcmp(attributes[i].name, name) == 0) return &attributes[i];
    }
    return nullptr;
  }
  std::int64_t integer(const char* name, std::int64_t absent) const {
    const Attribute* found = find(name);
    return found != nullptr && found->kind == AttributeKind::kInteger ? found->integer : absent;
  }
  double number(const char* name, double absent) const {
    const Attribute* found = find(name);
    if (found == nullptr) return absent;
    if (found->kind == AttributeKind::kNumber) return found->number;
    return found->kind == AttributeKind::kInteger ? static_cast<double>(found->integer) : absent;
  }
};

// Fills `outputs`, of call.output_count types.
using ShapeRule = void (*)(const Call& call, TensorType* outputs) noexcept;
// Floating-point operations of a call.
using FlopsRule = std::int64_t (*)(const Call& call) noexcept;
// Computes all outputs from the inputs.
using RunFunction = void (*)(const Call& call) noexcept;
// Bytes that it wants in call.workspace.
using WorkspaceRule = std::int64_t (*)(const Call& call) noexcept;
// Null where the kernel takes the call, else why not: a part of a sentence.
using RefusalRule = const char* (*)(const Call& call) noexcept;

namespace internal {

template <auto function, typename Signature>
struct Guarded;
template <auto function, typename Result, typename... Rest>
struct Guarded<function, Result (*)(const Call&, Rest...)> {
  static Result call(const Call& call, Rest... rest) noexcept {
    try {
      return function(call, rest...);
    } catch (const std::exception& error) {
      call.fail(error.what());
    } catch (...) {
      call.fail("an exception that is no std::exception");
    }
    return Result();
  }
};

}  // namespace internal

// guarded<f>: f, which may throw, as a rule or a kernel's function. What it throws is reported.
template <auto function>
inline constexpr auto guarded = &internal::Guarded<function, decltype(function)>::call;

struct AttributeRow {
  const char* name;
  const char* doc;
};

// Output `output` may have the bytes of input `input` when nobody reads that later.
struct InPlace {
  std::int32_t output;
  std::int32_t input;
};

// What planners may do with an op. An elementwise op makes of each element, or of elements at equal
// places after broadcasting, one of the result: tiles of a batch may be computed one by one.
enum class OpForm : std::int32_t { kWhole = 0, kElementwise = 1 };
// Whether a result may be computed a second time to save memory.
enum class Recompute : std::int32_t { kAllowed = 0, kCostly = 1, kNever = 2 };

struct Op {
  std::size_t size = sizeof(Op);
  const char* name = nullptr;    // new in every domain: kernels are found by it
  const char* domain = nullptr;  // one's own, "com.example"
  const char* doc = nullptr;     // what it computes, for people
  std::int32_t min_inputs = 1;
  std::int32_t max_inputs = 1;
  std::int32_t max_outputs = 1;
  std::int32_t attribute_count = 0;
  const AttributeRow* attributes = nullptr;
  ShapeRule shape = nullptr;
  // "Swish_grad (x, y, dy) => (dx) { ... }" (docs/plugins.md); null: gradients stop here.
  const char* gradient = nullptr;
  // The op written with others, "Swish (x) => (y) { ... }", in place of kernels; null: it has some.
  const char* definition = nullptr;
  FlopsRule flops = nullptr;  // null: one for each element of the outputs
  const InPlace* in_place = nullptr;
  std::int32_t in_place_count = 0;
  OpForm form = OpForm::kWhole;
  Recompute recompute = Recompute::kAllowed;
  std::int32_t example_count = 0;
  // Cases that the op suite tests: "[2,3], [3]; axis=1", one of them empty, "[0]".
  const char* const* examples = nullptr;
  double tolerance_f32 = 1e-5;  // relative error of f32 kernels against those of f64
};

// The code of an op for one type of elements. The type is that of the first output that is a float,
// else of the first input that is one. Later kernels are preferred to earlier ones.
struct Kernel {
  std::size_t size = sizeof(Kernel);
  const char* op = nullptr;    // of this plugin, or one without attributes that the program has
  const char* name = nullptr;  // "swish.example"
  std::int32_t dtype = 0;
  std::int32_t same_for_any_threads = 1;  // 0: the last bits depend on the number of threads
  RunFunction run = nullptr;
  WorkspaceRule workspace = nullptr;  // null: none
  RefusalRule refusal = nullptr;      // null: it takes every call
};

// An update rule, `--optimizer DOMAIN.NAME`, by the domain of its step. `step` names an op of this
// plugin, of which a step has a node for each parameter. Its inputs are the parameter, its
// gradient, the states, the learning rate (a scalar of f64), what the gradient is to be multiplied
// by (a scalar of its type) and the number of the step from 1 on (of i64), 0 for a step that is
// left out; its outputs the next parameter and states. States begin as zeros of the parameter's
// shape. Of the attributes weight_decay, learning_rate_scale, momentum, beta1, beta2 and epsilon it
// gets those that its op declares, as flags and groups say.
struct Optimizer {
  std::size_t size = sizeof(Optimizer);
  const char* name = nullptr;
  const char* doc = nullptr;
  const char* step = nullptr;
  std::int32_t state_count = 0;
  const char* const* states = nullptr;  // their names
};

struct Plugin {
  std::size_t size = sizeof(Plugin);
  std::int32_t version = kVersion;  // of this header
  std::int32_t op_count = 0;
  const char* name = nullptr;      // for people
  const Op* const* ops = nullptr;  // pointers, so that each may have a size of its own
  const Kernel* const* kernels = nullptr;
  const Optimizer* const* optimizers = nullptr;
  std::int32_t kernel_count = 0;
  std::int32_t optimizer_count = 0;
};

}  // namespace trainscope::plugin

// The one function that a plugin exports. `version` is the program's; null: the plugin does not
// work with it.
extern "C" __attribute__((visibility("default"))) const trainscope::plugin::Plugin*
trainscope_plugin_entry(std::int32_t version) noexcept;
