// Runs the CPU kernel of an op on tensors of different element types, given as literals.
#pragma once

#include <doctest/doctest.h>

#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/api/kernel.h"
#include "kernels/cpu/cpu_kernels.h"

namespace trainscope::cpu {

// A dense tensor that owns its bytes.
struct Literal {
  TensorType type;
  std::vector<std::byte> bytes;
  bool present = true;

  template <typename T>
  static Literal of(Shape shape, const std::vector<T>& values) {
    Literal literal{.type = {.dtype = kDTypeOf<T>, .shape = shape}, .bytes = {}};
    REQUIRE(shape.elements() == static_cast<std::int64_t>(values.size()));
    literal.bytes.resize(values.size() * sizeof(T));
    for (std::size_t i = 0; i < values.size(); ++i) {
      const T value = values[i];  // a copy, because std::vector<bool> has no elements
      std::memcpy(literal.bytes.data() + i * sizeof(T), &value, sizeof(T));
    }
    return literal;
  }
  static Literal absent() { return {.type = {}, .bytes = {}, .present = false}; }

  template <typename T>
  std::vector<T> values() const {
    REQUIRE(type.dtype == kDTypeOf<T>);
    std::vector<T> result;
    for (std::size_t at = 0; at < bytes.size(); at += sizeof(T)) {
      T value;
      std::memcpy(&value, bytes.data() + at, sizeof(T));
      result.push_back(value);
    }
    return result;
  }
  TensorView view() const {
    return {.type = type, .data = const_cast<std::byte*>(bytes.data()), .present = present};
  }
};

struct OpCall {
  std::string_view op;
  DType key = DType::kF32;  // the kernel table's
  Params params = NoParams{};
  std::vector<Literal> inputs;
  std::vector<TensorType> outputs;
  int absent_output = -1;
  int threads = 1;
};

// The outputs; their memory holds 0xFF before the run. Inputs count as known to `prepare`.
inline std::vector<Literal> call(const OpCall& c) {
  const KernelTable table = cpu_kernels();
  const std::vector<const Kernel*> kernels = table.find(c.op, c.key);
  REQUIRE(!kernels.empty());
  std::vector<Literal> results;
  std::vector<TensorView> inputs;
  std::vector<TensorView> outputs;
  for (const Literal& input : c.inputs) inputs.push_back(input.view());
  for (const TensorType& type : c.outputs) {
    const bool present = static_cast<int>(results.size()) != c.absent_output;
    results.push_back({.type = present ? type : TensorType{},
                       .bytes = std::vector<std::byte>(present ? type.bytes() : 0, std::byte{0xFF}),
                       .present = present});
  }
  for (const Literal& result : results) outputs.push_back(result.view());
  Prepared prepared;
  if (kernels[0]->prepare != nullptr) {
    prepared = kernels[0]->prepare(
        {.params = c.params, .inputs = inputs, .outputs = outputs, .threads = c.threads});
  }
  std::vector<double> workspace(prepared.workspace_bytes / sizeof(double) + 1);
  kernels[0]->run({.params = c.params,
                   .inputs = inputs,
                   .outputs = outputs,
                   .workspace = workspace.data(),
                   .state = prepared.state.get(),
                   .threads = c.threads});
  return results;
}

}  // namespace trainscope::cpu
