// Builders: models by size, as plain ONNX with fresh parameters. models.def lists them.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "engine/onnx/plain_model.h"  // IWYU pragma: export

namespace trainscope {

using OptionValue = std::variant<bool, std::int64_t, double, std::string, Ints>;
using ModelArguments = std::map<std::string, OptionValue, std::less<>>;

// A size or a choice: `--name VALUE` on the command line, `--name/--no-name` for a bool.
struct ModelOption {
  std::string_view name;
  std::string_view doc;
  OptionValue value;  // unless it is given; its alternative is the option's type
  std::vector<std::string_view> choices = {};  // of a text
  std::int64_t maximum = 1 << 24;              // of an integer or each of several; the minimum is 1
};

// A published model: what `--size NAME` says about the options; further options change it.
struct ModelSize {
  std::string_view name;
  ModelArguments arguments;
};

struct ModelBuilder {
  std::string_view name;
  std::string_view doc;
  std::vector<ModelOption> options = {};
  std::vector<ModelSize> sizes = {};
  // Every option has an argument of its type and range. The same arguments and seed give the same
  // bytes on every machine. Throws kUsage when sizes do not fit each other.
  PlainModel (*build)(const ModelArguments& arguments, std::uint64_t seed) = nullptr;
};

// In the order of models.def.
std::span<const ModelBuilder> model_builders();

// The option that names one of a builder's sizes.
inline constexpr std::string_view kSizeOption = "size";

// The model with the options given, the others as the size says, or else their defaults. Its output
// is `logits`. Throws kUsage for a name that no builder, option or size has and for a value outside
// its range.
PlainModel build_model(std::string_view name, const ModelArguments& given, std::uint64_t seed);

}  // namespace trainscope
