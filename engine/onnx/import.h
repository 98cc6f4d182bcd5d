// ONNX files in: parse, validate, and turn into a Graph.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/core/tensor.h"
#include "engine/ir/attributes.h"
#include "engine/ir/builder.h"
#include "engine/ir/graph.h"
#include "engine/ir/op_def.h"

namespace trainscope {

// A dimension of a model input or output: a number, a symbol that --batch, --seq or --shape binds,
// or neither.
struct ModelDim {
  std::optional<std::int64_t> size;
  std::string symbol;
};

struct ModelTensor {
  std::string name;
  DType dtype = DType::kF32;
  std::optional<std::vector<ModelDim>> dims;  // none: not even the rank is known
};

struct ModelInitializer {
  std::string name;
  TensorType type;
};

class ExternalFiles;
class MappedFile;
class UserGradients;

// A parsed model whose every name, type, size and edge has been checked. Elements of initializers
// are held once and shared by all graphs made from it; external data is read when first asked for.
// It never changes, and a copy is the same model: whoever keeps one keeps it alive.
class OnnxModel {
 public:
  // kIo when the file cannot be read, kBadInput (naming file, node, tensor) when it breaks a rule.
  static OnnxModel read(const std::filesystem::path& path);
  static OnnxModel read(const MappedFile& file);
  // `folder` is where external data lies; without one external data is refused.
  static OnnxModel from_bytes(std::span<const std::byte> bytes,
                              const std::filesystem::path& folder = {});
  // External data counts as present and is never read: parameters and states of graphs made from
  // this have no elements. For plans.
  static OnnxModel shapes_from_bytes(std::span<const std::byte> bytes);
  // ONNX's text format: for tests.
  static OnnxModel parse_text(const std::string& text);

  const std::filesystem::path& path() const;  // empty unless read from a file
  std::string name() const;                   // of the graph
  std::string producer() const;               // "pytorch 1.13.1"
  std::int64_t ir_version() const;
  int opset() const;  // of the default domain; 0 when the model imports only others
  const std::vector<ModelTensor>& inputs() const;  // without those that are initializers
  const std::vector<ModelTensor>& outputs() const;
  std::vector<std::string> declared_inputs() const;  // names, those of initializers (IR 3) too
  const std::vector<ModelInitializer>& initializers() const;
  std::size_t node_count() const;
  // By op name, with its domain before it if that is not ONNX's.
  std::map<std::string, std::size_t> op_counts() const;
  std::uint64_t hash() const;  // of the model file's bytes; external data is not in it
  bool is_stage() const;       // written by write_onnx: kinds, phases and updates are in the file

  // The elements of an initializer; fails with kBadInput when there is none of that name.
  SharedTensor initializer(std::string_view name) const;

  struct Impl;
  const Impl& impl() const { return *impl_; }  // for the other files of engine/onnx

 private:
  explicit OnnxModel(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  static OnnxModel parsed(std::span<const std::byte> bytes, ExternalFiles files);
  std::shared_ptr<const Impl> impl_;
};

// Trips that a constant, or the data, may ask room for where nobody says how many there are to be
// and a condition may end them before.
inline constexpr std::int64_t kMostTripsUnasked = 1 << 20;

struct ImportOptions {
  // Sizes of symbolic dimensions, and whole shapes by input name (they bind its symbols too).
  std::map<std::string, std::int64_t> dims = {};
  std::map<std::string, Ints> shapes = {};
  // kF64: all float inputs, initializers, constants and casts to float become f64 (the oracle).
  DType float_type = DType::kF32;
  // Name patterns over initializers; what is trained without them is in parameters.h. With
  // `trainable` only those of them that match, and an initializer that a pattern names and that
  // would not be trained otherwise; `frozen` wins. Running statistics of BatchNormalization are
  // states whatever the patterns say. A file written by write_onnx brings its own kinds.
  std::vector<std::string> trainable = {};
  std::vector<std::string> frozen = {};
  // Exactly these are trained, less `frozen`: names of initializers, in place of `trainable`.
  std::optional<std::vector<std::string>> parameters = {};
  // Elements of inputs that are known before the run: axes, sizes. They become constants.
  std::map<std::string, SharedTensor> known_inputs = {};
  // For how many trips there is room in a loop whose trips are counted when the step runs.
  std::optional<std::int64_t> max_trips = {};
  // Computes values that are known before the run (shape arithmetic); null: none are.
  const Evaluate* evaluate = nullptr;
  // In place of the gradients that ops of the model have. Each of them must be of some node.
  std::shared_ptr<const UserGradients> gradients = {};
  // Values that become graph outputs besides the model's own.
  std::vector<std::string> keep_values = {};
};

// The model as a graph of opset 17 ops with all shapes known. Fails with kBadInput listing every op
// that is missing, with kUsage for a symbol without a size or a pattern that matches nothing.
Graph to_graph(const OnnxModel& model, const OpTable& ops, const ImportOptions& options = {});

// An op of the model that cannot be imported, with the nodes that need it.
struct MissingOp {
  std::string op;
  std::string domain;
  int opset = 0;
  std::string why;                 // "no such op", "no conversion from opset 9 to 13"
  std::vector<std::string> nodes;  // names in model order
};

// Empty when the model can be imported, as far as ops decide.
std::vector<MissingOp> missing_ops(const OnnxModel& model, const OpTable& ops);

}  // namespace trainscope
