// model: writes a model of any size with fresh parameters.
#include <fmt/format.h>

#include <algorithm>
#include <deque>

#include "cli/command.h"
#include "cli/flags/invocation.h"
#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/models/models.h"

namespace trainscope {
namespace {

std::string value_text(const OptionValue& value) {
  if (const auto* on = std::get_if<bool>(&value)) return *on ? "on" : "off";
  if (const auto* number = std::get_if<std::int64_t>(&value)) return std::to_string(*number);
  if (const auto* number = std::get_if<double>(&value)) return fmt::format("{}", *number);
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  return fmt::format("{}", fmt::join(std::get<Ints>(value), ","));
}

// The flags of all builders, an option that several have being one flag, and the texts that they
// point into.
class OptionFlags {
 public:
  OptionFlags() {
    for (const ModelBuilder& builder : model_builders()) {
      names_ += fmt::format("{}{}", names_.empty() ? "" : ", ", builder.name);
      for (const ModelOption& option : builder.options) add(builder, option);
    }
    flags_.push_back({.name = kSizeOption, .value = "NAME", .help = keep(size_help())});
    flags_.push_back(
        {.name = "out", .value = "FILE.onnx", .help = "The model file", .letter = 'o'});
  }

  const std::vector<Flag>& flags() const { return flags_; }
  const std::string& names() const { return names_; }

 private:
  // "A published size (gpt2: 124M, 355M; bert: base)"
  static std::string size_help() {
    std::vector<std::string> pieces;
    for (const ModelBuilder& builder : model_builders()) {
      if (builder.sizes.empty()) continue;
      std::vector<std::string_view> names;
      for (const ModelSize& size : builder.sizes) names.push_back(size.name);
      pieces.push_back(fmt::format("{}: {}", builder.name, join(names, ", ")));
    }
    return fmt::format("A published size, which other flags change ({})", join(pieces, "; "));
  }

  // "blocks (gpt2: 12)": what it means, and the default of each builder that has it.
  void add(const ModelBuilder& builder, const ModelOption& option) {
    const std::string use = fmt::format("{}: {}", builder.name, value_text(option.value));
    const auto known = std::ranges::find(flags_, option.name, &Flag::name);
    if (known == flags_.end()) {
      flags_.push_back(flag_of(option));
      flags_.back().help = keep(fmt::format("{} ({})", option.doc, use));
      return;
    }
    const std::string_view open = known->help.substr(0, known->help.size() - 1);
    known->help = keep(fmt::format("{}, {})", open, use));
    known->maximum = std::max(known->maximum, static_cast<double>(option.maximum));
  }

  // Choices are checked by the builder: another one may have others.
  Flag flag_of(const ModelOption& option) {
    Flag flag{.name = option.name};
    if (std::holds_alternative<bool>(option.value)) {
      flag.type = FlagType::kToggle;
    } else if (std::holds_alternative<std::int64_t>(option.value)) {
      flag.type = FlagType::kInteger;
      flag.value = "N";
      flag.minimum = 1;
      flag.maximum = static_cast<double>(option.maximum);
    } else if (std::holds_alternative<double>(option.value)) {
      flag.type = FlagType::kNumber;
      flag.value = "X";
    } else if (std::holds_alternative<std::string>(option.value)) {
      flag.value = keep(join(option.choices, "|"));
    } else {
      flag.value = "N,N,..";
    }
    return flag;
  }

  std::string_view keep(std::string text) { return texts_.emplace_back(std::move(text)); }

  std::deque<std::string> texts_;
  std::string names_;
  std::vector<Flag> flags_;
};

const OptionFlags& option_flags() {
  static const OptionFlags kOptionFlags;
  return kOptionFlags;
}

Ints parse_ints(std::string_view flag, std::string_view text) {
  Ints numbers;
  for (std::string_view piece : split(text, ',')) {
    const std::optional<std::int64_t> number = parse_int(trim(piece));
    require(number.has_value(), ErrorCode::kUsage,
            "--{} is '{}': expected whole numbers with commas between them", flag, printable(text));
    numbers.push_back(*number);
  }
  return numbers;
}

// The flag's value in the type of the default.
OptionValue value_of(const Settings& settings, std::string_view flag, const OptionValue& like) {
  if (std::holds_alternative<bool>(like)) return settings.on(flag);
  if (std::holds_alternative<std::int64_t>(like)) return settings.integer(flag);
  if (std::holds_alternative<double>(like)) return settings.number(flag);
  if (std::holds_alternative<Ints>(like)) return parse_ints(flag, settings.text(flag));
  return settings.text(flag);
}

// What was given, in the types of the options; build_model refuses what the builder lacks.
ModelArguments given_arguments(const Settings& settings) {
  ModelArguments arguments;
  if (settings.given(kSizeOption)) {
    arguments.emplace(kSizeOption, settings.text(kSizeOption));
  }
  for (const ModelBuilder& builder : model_builders()) {
    for (const ModelOption& option : builder.options) {
      if (!settings.given(option.name)) continue;
      arguments.insert_or_assign(std::string(option.name),
                                 value_of(settings, option.name, option.value));
    }
  }
  return arguments;
}

Outcome run_model(const Invocation& invocation) {
  const Settings& settings = invocation.settings();
  require(settings.has("out"), ErrorCode::kUsage, "model needs -o FILE.onnx");
  const std::string& name = invocation.argument(0);
  const PlainModel model = build_model(name, given_arguments(settings), invocation.seed());
  const std::string& file = settings.text("out");
  write_onnx(model, file);
  const std::int64_t parameters = model.parameters();
  return {
      .facts = Json::object({{"model", name},
                             {"file", file},
                             {"parameters", parameters},
                             {"tensors", model.initializers.size()},
                             {"nodes", model.nodes.size()}}),
      .text = fmt::format("{}: {} with {} parameters in {} tensors, {} nodes\n", printable(file),
                          name, parameters, model.initializers.size(), model.nodes.size())};
}

}  // namespace

Command model_command() {
  return {.name = "model",
          .summary = "Write a model of any size with fresh parameters.",
          .arguments = {{.name = "NAME", .help = option_flags().names()}},
          .flags = option_flags().flags(),
          .examples = {"trainscope model resnet --size 18-cifar -o resnet.onnx",
                       "trainscope model gpt2 --size 124M --context 256 -o gpt2.onnx"},
          .run = run_model};
}

}  // namespace trainscope
