// Small architectures as PyTorch exports them: what is trained, the loss and all gradients, against
// PyTorch's in f64. Format: tests/zoo/README.md.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "engine/check/gradients.h"
#include "engine/check/reference.h"
#include "engine/core/error.h"
#include "engine/core/safetensors.h"
#include "engine/core/text.h"

namespace trainscope::test {
namespace {

namespace fs = std::filesystem;

constexpr double kLossLimit = 1e-6;      // relative; constants of the files are f32
constexpr double kGradientLimit = 1e-5;  // relative L2, or of the norm of all gradients
constexpr double kVanishing = 1e-7;

// The name that an initializer's values have in PyTorch.
struct Counterpart {
  std::string name;
  bool transposed = false;
};

Counterpart counterpart_of(const std::string& initializer, const ReferenceMeta& meta,
                           const std::set<std::string>& parameters) {
  if (parameters.contains(initializer)) return {.name = initializer};
  const Json* found = meta.json.at("names").find(initializer);
  if (found == nullptr) return {};
  return {.name = found->get<std::string>("name"), .transposed = found->get<bool>("transposed")};
}

std::vector<double> elements_of(const Tensor& tensor) {
  const Tensor wide = convert(tensor, DType::kF64);
  const auto values = wide.values<double>();
  return {values.begin(), values.end()};
}

// [R,C] as [C,R].
std::vector<double> transposed(const std::vector<double>& from, const Shape& shape) {
  const auto rows = static_cast<std::size_t>(shape[0]);
  const auto columns = static_cast<std::size_t>(shape[1]);
  std::vector<double> to(from.size());
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t c = 0; c < columns; ++c) to[c * rows + r] = from[r * columns + c];
  }
  return to;
}

double norm_of(const std::vector<double>& values) {
  double sum = 0.0;
  for (double value : values) sum += value * value;
  return std::sqrt(sum);
}

GradientsOptions in_f64() {
  GradientsOptions options;
  options.float_type = DType::kF64;
  return options;
}

// One folder of tests/zoo.
class ZooModel {
 public:
  explicit ZooModel(const fs::path& folder)
      : meta_(read_reference_meta(folder / "meta.json")),
        stored_(SafetensorsFile::open(folder / "reference.safetensors")),
        result_(compute_gradients(OnnxModel::read(folder / "model.onnx"), meta_,
                                  reference_batch(stored_, 0, DType::kF64), in_f64())) {
    for (const Json& name : meta_.json.array_at("parameters")) parameters_.insert(name.as_string());
    for (const std::string& name : parameters_) {
      all_norm_ = std::hypot(all_norm_, norm_of(elements_of(stored_.tensor("grad.f64:" + name))));
    }
  }

  void check() const {
    const double loss = elements_of(result_.loss).front();
    const double truth = elements_of(stored_.tensor("loss.f64:0")).front();
    CHECK(std::abs(loss - truth) <= kLossLimit * std::abs(truth));
    std::set<std::string> trained;
    for (const auto& [initializer, gradient] : result_.gradients) {
      INFO(initializer);
      const Counterpart of = counterpart_of(initializer, meta_, parameters_);
      CHECK_MESSAGE(parameters_.contains(of.name), "trained, but no parameter in PyTorch");
      if (!parameters_.contains(of.name)) continue;
      CHECK_MESSAGE(trained.insert(of.name).second, of.name << " is trained twice");
      check_gradient(gradient, of);
    }
    for (const std::string& name : parameters_) {
      CHECK_MESSAGE(trained.contains(name), name << " is not trained");
    }
  }

 private:
  void check_gradient(const Tensor& gradient, const Counterpart& of) const {
    std::vector<double> ours = elements_of(gradient);
    if (of.transposed) ours = transposed(ours, gradient.shape());
    const std::vector<double> truth = elements_of(stored_.tensor("grad.f64:" + of.name));
    REQUIRE(ours.size() == truth.size());
    std::ranges::transform(ours, truth, ours.begin(), std::minus<>());
    const double limit = std::max(kGradientLimit * norm_of(truth), kVanishing * all_norm_);
    CHECK(norm_of(ours) <= limit);
  }

  ReferenceMeta meta_;
  SafetensorsFile stored_;
  GradientsResult result_;
  std::set<std::string> parameters_;
  double all_norm_ = 0.0;
};

}  // namespace

TEST_CASE("zoo: architectures that PyTorch exports have its loss and gradients") {
  int models = 0;
  for (const auto& entry : fs::directory_iterator(fs::path(TRAINSCOPE_SOURCE_DIR) / "tests/zoo")) {
    if (!entry.is_directory() || !fs::exists(entry.path() / "model.onnx")) continue;
    ++models;
    INFO(entry.path().filename().string());
    try {
      ZooModel(entry.path()).check();
    } catch (const Error& error) {
      FAIL_CHECK(error.message() << " " << join(error.context(), "; "));
    }
  }
  CHECK(models >= 24);
}

}  // namespace trainscope::test
