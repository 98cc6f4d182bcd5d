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

class PlainBuilder {
 public:
  using Name = std::string;

  PlainBuilder(std::string_view model_name, std::uint64_t seed) : seed_(seed) {
    model_.name = model_name;
  }

  Name input(std::string_view name, DType dtype, std::vector<ModelDim> dims);
  void output(std::string_view name, std::vector<ModelDim> dims);  // f32
  // Says the shape of a f32 value that ONNX's shape inference does not find.
  void describe(std::string_view name, std::vector<ModelDim> dims);

  // Parameters, f32. Random elements depend on the seed and the parameter's name alone, so that
  // other parameters may come and go (biases).
  Name normal(std::string_view name, const Shape& shape, double deviation);
  // Draws beyond two deviations are drawn again, as TensorFlow's truncated_normal_initializer does;
  // what is left deviates by 0.8796 of `deviation`.
  Name truncated_normal(std::string_view name, const Shape& shape, double deviation);
  Name uniform(std::string_view name, const Shape& shape, double bound);  // in [-bound, bound)
  Name filled(std::string_view name, const Shape& shape, float value);
  // A running statistic of BatchNormalization: updated in training, but no parameter.
  Name statistic(std::string_view name, const Shape& shape, float value);

  // Constants are nodes, not initializers: nobody can take them for parameters. Equal ones are one.
  Name number(float value);                          // f32[]
  Name integer(std::int64_t value);                  // i64[]
  Name ints(const Ints& values);                     // i64[n]
  Name constant(const Name& name, Tensor elements);  // of the name that it gets

  // A node and its output, both named "/scope/label".
  Name node(std::string_view op, std::string_view label, std::vector<Name> inputs,
            Attributes attributes = {});
  // A node with several outputs, each with a label of its own.
  struct Results {
    std::vector<std::string_view> labels;
    Attributes attributes = {};
  };
  std::vector<Name> multi(std::string_view op, std::string_view label, std::vector<Name> inputs,
                          const Results& results);
  // The node that makes a model output: its name as it is.
  Name result(std::string_view op, const Name& name, std::vector<Name> inputs,
              Attributes attributes = {});

  // Of the nodes from now on: "h.0/attn", or "" for none.
  void set_scope(std::string_view scope) { scope_ = scope; }

  PlainModel take() { return std::move(model_); }

 private:
  using Fill = std::function<void(std::span<float>)>;
  Name parameter(std::string_view name, const Shape& shape, Fill fill);
  Name labelled(std::string_view label) const;
  Name add(PlainNode node);

  PlainModel model_;
  std::uint64_t seed_;
  std::string scope_;
  std::unordered_set<std::string> names_;
};

}  // namespace trainscope
