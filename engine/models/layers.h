// Layers that several builders share: their nodes with their parameters.
//
// A layer with parameters is known by a path, "layer1.0.conv1": its parameters are path.weight and
// path.bias, its nodes "/layer1/0/conv1/Conv". Layers without take a label under the builder's
// scope.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "engine/models/plain_builder.h"

namespace trainscope {

// "layer1.0" -> "layer1/0": the scope of a path's nodes.
std::string scope_of(std::string path);

// How the elements of a parameter start.
struct Initial {
  enum class Kind : std::uint8_t { kFilled, kNormal, kTruncatedNormal, kUniform };
  Kind kind = Kind::kFilled;
  double size = 0.0;  // the value, the deviation, or the bound on both sides
};
ValueName draw(PlainBuilder& b, std::string_view name, const Shape& shape, const Initial& initial);
// The default of torch.nn.Linear and torch.nn.Conv2d, for weight and bias: uniform within
// 1 / sqrt(inputs of one output).
Initial torch_default(std::int64_t fan_in);

struct Dense {
  std::int64_t inputs = 0;
  std::int64_t outputs = 0;
  Initial weight = {};
  std::optional<Initial> bias = Initial{};  // none: no bias
  std::string_view result = {};             // name of the output, if it is one of the model
};
// x [..., inputs] times a weight stored as [inputs, outputs]: no transpose in a step.
ValueName dense(PlainBuilder& b, const std::string& path, const ValueName& x, const Dense& layer);
// x [batch, inputs], weight [outputs, inputs] as torch.nn.Linear: one Gemm.
ValueName linear(PlainBuilder& b, const std::string& path, const ValueName& x, const Dense& layer);

struct LayerNorm {
  std::int64_t width = 0;
  double epsilon = 1e-5;
};
// Over the last axis; weights 1, biases 0.
ValueName layer_norm(PlainBuilder& b, const std::string& path, const ValueName& x,
                     const LayerNorm& layer);

struct Conv {
  std::int64_t inputs = 0;   // channels
  std::int64_t outputs = 0;  // channels
  std::int64_t kernel = 1;   // the same along both axes, as the two below
  std::int64_t stride = 1;
  std::int64_t pad = 0;
  Initial weight = {};
  std::optional<Initial> bias = {};
  std::string_view result = {};  // as above
};
ValueName conv(PlainBuilder& b, const std::string& path, const ValueName& x, const Conv& layer);
// Scale 1, bias 0, running mean 0 and variance 1; momentum and epsilon of torch.nn.BatchNorm2d.
ValueName batch_norm(PlainBuilder& b, const std::string& path, const ValueName& x,
                     std::int64_t channels);

// Training turns it on, whatever the file says; elsewhere it changes nothing. Ratio 0: x itself.
ValueName dropout(PlainBuilder& b, std::string_view label, const ValueName& x, double ratio);
// Throws kUsage unless the ratio is in [0, 1).
void check_dropout(double ratio);

struct Pool {
  std::int64_t kernel = 2;
  std::int64_t stride = 2;
  std::int64_t pad = 0;
};
ValueName max_pool(PlainBuilder& b, std::string_view label, const ValueName& x,
                   const Pool& pool = {});

}  // namespace trainscope
