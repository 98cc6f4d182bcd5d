// Binds the symbolic dimensions of model inputs to sizes.
#include <fmt/format.h>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/onnx/importer/import_plan.h"
#include "engine/onnx/input_shapes.h"

namespace trainscope {
namespace {

class Binding {
 public:
  Binding(const std::vector<ModelTensor>& inputs, const ImportOptions& options)
      : inputs_(inputs), options_(options) {}

  std::vector<Shape> run() {
    bind_sizes();
    for (const auto& [name, shape] : options_.shapes) bind_shape(find_input(name), shape);
    std::vector<Shape> shapes;
    for (const ModelTensor& input : inputs_) shapes.push_back(shape_of(input));
    if (!open_.empty()) {
      throw Error(ErrorCode::kUsage, fmt::format("sizes of the model's inputs are not known:\n  {}",
                                                 join(open_, "\n  ")))
          .hint("give them by --batch N, --seq N or --shape NAME=DIMS");
    }
    return shapes;
  }

 private:
  void bind_sizes() {
    std::vector<std::string> symbols;
    for (const ModelTensor& input : inputs_) {
      if (!input.dims) continue;
      for (const ModelDim& dim : *input.dims) {
        if (!dim.size && !dim.symbol.empty()) symbols.push_back(dim.symbol);
      }
    }
    for (const auto& [symbol, size] : options_.dims) {
      bool known = std::find(symbols.begin(), symbols.end(), symbol) != symbols.end();
      if (!known) {
        throw Error(ErrorCode::kUsage,
                    fmt::format("no input of the model has a dimension '{}'", printable(symbol)))
            .hint(nearest_hint(symbol, symbols));
      }
      bind(symbol, size, fmt::format("dimension '{}'", printable(symbol)));
    }
  }

  const ModelTensor& find_input(const std::string& name) const {
    std::vector<std::string> names;
    for (const ModelTensor& input : inputs_) {
      if (input.name == name) return input;
      names.push_back(input.name);
    }
    throw Error(ErrorCode::kUsage, fmt::format("the model has no input '{}'", printable(name)))
        .hint(nearest_hint(name, names));
  }

  void bind(const std::string& symbol, std::int64_t size, std::string_view what) {
    require(size >= 0, ErrorCode::kUsage, "{}: the size is negative: {}", what, size);
    auto [place, fresh] = sizes_.emplace(symbol, size);
    require(fresh || place->second == size, ErrorCode::kUsage,
            "{}: size {}, but '{}' is {} elsewhere", what, size, printable(symbol), place->second);
  }

  void bind_shape(const ModelTensor& input, const Ints& shape) {
    std::string what = fmt::format("shape of input '{}'", printable(input.name));
    if (!input.dims) {
      for (std::int64_t size : shape) {
        require(size >= 0, ErrorCode::kUsage, "{}: the size is negative: {}", what, size);
      }
      return;
    }
    require(shape.size() == input.dims->size(), ErrorCode::kUsage,
            "{}: {} dimensions given, the model has {}", what, shape.size(), input.dims->size());
    for (std::size_t i = 0; i < shape.size(); ++i) {
      const ModelDim& dim = (*input.dims)[i];
      require(!dim.size || *dim.size == shape[i], ErrorCode::kUsage,
              "{}: dimension {} is {} in the model, {} was given", what, i, dim.size.value_or(0),
              shape[i]);
      if (!dim.size) bind(dim.symbol.empty() ? unnamed(input, i) : dim.symbol, shape[i], what);
    }
  }

  // A key for a dimension without a symbol; symbols of a model hold no control characters.
  static std::string unnamed(const ModelTensor& input, std::size_t i) {
    return fmt::format("{}\n{}", input.name, i);
  }

  Shape shape_of(const ModelTensor& input) {
    std::string what = fmt::format("input '{}'", printable(input.name));
    auto given = options_.shapes.find(input.name);
    if (!input.dims) {
      if (given != options_.shapes.end()) {
        return checked_type(input.dtype, given->second, what).shape;
      }
      open_.push_back(fmt::format("{}: not even the number of dimensions is given", what));
      return {};
    }
    Ints dims;
    for (std::size_t i = 0; i < input.dims->size(); ++i) {
      const ModelDim& dim = (*input.dims)[i];
      auto bound = sizes_.find(dim.symbol.empty() ? unnamed(input, i) : dim.symbol);
      if (!dim.size && bound == sizes_.end()) {
        open_.push_back(dim.symbol.empty()
                            ? fmt::format("{}: dimension {}", what, i)
                            : fmt::format("{}: dimension {} '{}'", what, i, printable(dim.symbol)));
      }
      dims.push_back(dim.size ? *dim.size : bound == sizes_.end() ? 1 : bound->second);
    }
    return checked_type(input.dtype, dims, what).shape;
  }

  const std::vector<ModelTensor>& inputs_;
  const ImportOptions& options_;
  std::map<std::string, std::int64_t> sizes_;
  std::vector<std::string> open_;
};

}  // namespace

std::vector<Shape> bind_shapes(const std::vector<ModelTensor>& inputs,
                               const ImportOptions& options) {
  return Binding(inputs, options).run();
}

void require_input_shapes(const OnnxModel& model, const ImportOptions& options) {
  bind_shapes(model.inputs(), options);
}

}  // namespace trainscope
