// Measurements of made-up flowers: three clouds of points in four dimensions.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>

#include "datasets/make/make.h"
#include "engine/core/file.h"
#include "engine/core/safetensors.h"
#include "engine/core/tensor.h"
#include "engine/train/data.h"  // random numbers

namespace trainscope {
namespace {

constexpr std::size_t kFeatures = 4;
constexpr std::size_t kKinds = 3;

using Measured = std::array<double, kFeatures>;

// Centimetres: length and width of the leaf, then of the petal.
constexpr std::array<Measured, kKinds> kMeans = {
    {{5.0, 3.4, 1.5, 0.3}, {6.0, 2.8, 4.3, 1.3}, {6.6, 3.0, 5.6, 2.0}}};
constexpr Measured kSpread = {0.4, 0.3, 0.4, 0.2};

struct Flower {
  std::int64_t kind = 0;
  std::array<float, kFeatures> features{};  // whole millimetres, in centimetres
};

Flower flower(std::uint64_t seed, std::uint64_t i) {
  Flower made;
  const std::uint64_t kind = random_below(seed, kMakeStreams + 5, i, kKinds);
  made.kind = static_cast<std::int64_t>(kind);
  for (std::size_t f = 0; f < kFeatures; ++f) {
    const double normal = random_normal(seed, kMakeStreams + 6, i * kFeatures + f);
    const double centimetres = kMeans[kind][f] + kSpread[f] * normal;
    const auto millimetres = static_cast<int>(centimetres * 10.0);
    made.features[f] = static_cast<float>(std::max(1, millimetres)) / 10.0F;
  }
  return made;
}

}  // namespace

MadeData make_csv(const MakeOptions& options) {
  std::string text = "leaf_length,leaf_width,petal_length,petal_width,kind\n";
  for (std::int64_t i = 0; i < options.examples; ++i) {
    const Flower made = flower(options.seed, static_cast<std::uint64_t>(i));
    for (const float feature : made.features) text += fmt::format("{:.1f},", feature);
    text += fmt::format("{}\n", made.kind);
  }
  MadeData data;
  data.files = {options.folder / "flowers.csv"};
  write_file_atomic(data.files[0], text);
  data.source = fmt::format("csv:{},label=kind", data.files[0].string());
  return data;
}

MadeData make_tensors(const MakeOptions& options) {
  Tensor x({.dtype = DType::kF32, .shape = {options.examples, std::int64_t{kFeatures}}});
  Tensor labels({.dtype = DType::kI64, .shape = {options.examples}});
  for (std::int64_t i = 0; i < options.examples; ++i) {
    const Flower made = flower(options.seed, static_cast<std::uint64_t>(i));
    const auto row = static_cast<std::size_t>(i);
    std::ranges::copy(made.features, x.values<float>().subspan(row * kFeatures).begin());
    labels.values<std::int64_t>()[row] = made.kind;
  }
  MadeData data;
  data.files = {options.folder / "flowers.safetensors"};
  const NamedTensor tensors[] = {{"x", x.view()}, {"labels", labels.view()}};
  write_safetensors(data.files[0], tensors);
  data.source = "tensors:" + data.files[0].string();
  return data;
}

}  // namespace trainscope
