// PlainBuilder: writes a PlainModel node by node; names of values are what nodes are joined by.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "engine/onnx/plain_model.h"

namespace trainscope {

inline ModelDim symbolic(std::string symbol) { return {.size = {}, .symbol = std::move(symbol)}; }
inline ModelDim fixed(std::int64_t size) { return {.size = size, .symbol = {}}; }

using ValueName = std::string;  // of a value of the model being built

class PlainBuilder {
 public:
  PlainBuilder(std::string_view model_name, std::uint64_t seed) : seed_(seed) {
    model_.name = model_name;
  }

  ValueName input(std::string_view name, DType dtype, std::vector<ModelDim> dims);
  void output(std::string_view name, std::vector<ModelDim> dims);  // f32
  // Says the shape of a f32 value that ONNX's shape inference does not find.
  void describe(std::string_view name, std::vector<ModelDim> dims);

  // Parameters, f32. Random elements depend on the seed and the parameter's name alone, so that
  // other parameters may come and go (biases).
  ValueName normal(std::string_view name, const Shape& shape, double deviation);
  // Draws beyond two deviations are drawn again, as TensorFlow's truncated_normal_initializer does;
  // what is left deviates by 0.8796 of `deviation`.
  ValueName truncated_normal(std::string_view name, const Shape& shape, double deviation);
  ValueName uniform(std::string_view name, const Shape& shape, double bound);  // in [-bound, bound)
  ValueName filled(std::string_view name, const Shape& shape, float value);
  // A running statistic of BatchNormalization: updated in training, but no parameter.
  ValueName statistic(std::string_view name, const Shape& shape, float value);

  // Constants are nodes, not initializers: nobody can take them for parameters. Equal ones are one.
  ValueName number(float value);                               // f32[]
  ValueName integer(std::int64_t value);                       // i64[]
  ValueName ints(const Ints& values);                          // i64[n]
  ValueName constant(const ValueName& name, Tensor elements);  // of the name that it gets

  // A node and its output, both named "/scope/label".
  ValueName node(std::string_view op, std::string_view label, std::vector<ValueName> inputs,
                 Attributes attributes = {});
  // A node with several outputs, each with a label of its own.
  struct Results {
    std::vector<std::string_view> labels;
    Attributes attributes = {};
  };
  std::vector<ValueName> multi(std::string_view op, std::string_view label,
                               std::vector<ValueName> inputs, const Results& results);
  // The node that makes a model output: its name as it is.
  ValueName result(std::string_view op, const ValueName& name, std::vector<ValueName> inputs,
                   Attributes attributes = {});

  // Of the nodes from now on: "h.0/attn", or "" for none.
  void set_scope(std::string_view scope) { scope_ = scope; }

  PlainModel take() { return std::move(model_); }

 private:
  using Fill = std::function<void(std::span<float>)>;
  ValueName parameter(std::string_view name, const Shape& shape, Fill fill);
  ValueName labelled(std::string_view label) const;
  ValueName add(PlainNode node);

  PlainModel model_;
  std::uint64_t seed_;
  std::string scope_;
  std::unordered_set<std::string> names_;
};

}  // namespace trainscope
