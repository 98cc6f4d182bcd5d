// Configuration files against the tables of flags.
#include "cli/flags/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "cli/flags/flag_hint.h"
#include "cli/flags/toml_file.h"
#include "engine/core/error.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

constexpr std::string_view kSharedVerb = "train";  // whose flags stand at the top level
constexpr std::string_view kModelKey = "model";
constexpr std::size_t kMostProblems = 20;

struct BadSetting {
  std::string message;
  std::string hint;
};

const Flag* find_flag(std::span<const Flag> flags, std::string_view name) {
  const auto found =
      std::ranges::find_if(flags, [name](const Flag& flag) { return flag.is_called(name); });
  return found == flags.end() ? nullptr : &*found;
}

// "did you mean 'lr'?", or "".
std::string hint_of(std::span<const Flag> flags, std::string_view key) {
  const std::optional<std::string> meant = flag_meant(flags, key);
  return meant ? fmt::format("did you mean '{}'?", *meant) : std::string();
}

std::vector<std::string_view> verb_names() {
  std::vector<std::string_view> names;
  for (const Command& command : all_commands()) names.push_back(command.name);
  return names;
}

std::string wanted(const Flag& flag) {
  switch (flag.type) {
    case FlagType::kSwitch:
    case FlagType::kToggle:
      return "true or false";
    case FlagType::kText:
      return "a string";
    case FlagType::kTexts:
      return "a string or an array of strings";
    case FlagType::kChoice:
      return fmt::format("a string: {}", expected_text(flag));
    case FlagType::kInteger:
    case FlagType::kNumber:
      return expected_text(flag);
  }
  return {};
}

bool has_type_of(const TomlEntry& entry, const Flag& flag) {
  switch (flag.type) {
    case FlagType::kSwitch:
    case FlagType::kToggle:
      return entry.kind == TomlKind::kBool;
    case FlagType::kInteger:
      return entry.kind == TomlKind::kInteger;
    case FlagType::kNumber:
      return entry.kind == TomlKind::kInteger || entry.kind == TomlKind::kNumber;
    case FlagType::kText:
    case FlagType::kChoice:
      return entry.kind == TomlKind::kString;
    case FlagType::kTexts:
      return entry.kind == TomlKind::kString || entry.kind == TomlKind::kArray;
  }
  return false;
}

bool is_array_of_strings(const TomlEntry& entry) {
  return entry.plain_items && std::ranges::all_of(entry.value.as_array(), &Json::is_string);
}

std::vector<std::string> texts_of(const TomlEntry& entry) {
  switch (entry.kind) {
    case TomlKind::kString:
      return {entry.value.as_string()};
    case TomlKind::kInteger:
      return {fmt::format("{}", entry.value.as_int())};
    case TomlKind::kNumber:
      return {fmt::format("{}", entry.value.as_number())};
    case TomlKind::kBool:
      return {entry.value.as_bool() ? "on" : "off"};
    default:
      break;
  }
  std::vector<std::string> texts;
  for (const Json& item : entry.value.as_array()) texts.push_back(item.as_string());
  return texts;
}

// `config show VERB` has the flags of VERB besides its own: a file sets those alone.
std::vector<Flag> flags_in_files(const Command& command) {
  const Command* named = command_named(command.config_table());
  return config_flags(named == nullptr ? command : *named);
}

// One reading of one file for one verb.
class Reading {
 public:
  Reading(std::string shown_file, const Command& command)
      : file_(std::move(shown_file)),
        command_(command),
        own_(flags_in_files(command)),
        shared_(config_flags(*command_named(kSharedVerb))) {}

  void add(const TomlEntry& entry) {
    if (entry.table.empty() && entry.kind == TomlKind::kTable) return check_table(entry);
    ++config_.key_count;
    if (!entry.table.empty()) return add_of_verb(entry);
    if (entry.key == kModelKey) return set_model(entry, top_model_);
    const Flag* flag = find_flag(shared_, entry.key);
    if (flag == nullptr) return unknown_at_top(entry);
    if (const Flag* own = find_flag(own_, entry.key)) return add_value(entry, *own, top_);
    add_value(entry, *flag, others_);
  }

  Config finish() {
    if (!problems_.empty()) {
      Error error(ErrorCode::kUsage, problems_.front().message);
      for (std::size_t i = 1; i < std::min(problems_.size(), kMostProblems); ++i) {
        const std::string& hint = problems_[i].hint;
        error.at(hint.empty() ? problems_[i].message
                              : fmt::format("{} ({})", problems_[i].message, hint));
      }
      throw error.hint(problems_.front().hint);
    }
    config_.values = std::move(top_);
    config_.values.insert(config_.values.end(), table_.begin(), table_.end());
    config_.model = table_model_ ? table_model_ : top_model_;
    return std::move(config_);
  }

 private:
  std::string where(TomlPlace place) const {
    return fmt::format("{}:{}:{}", file_, place.line, place.column);
  }

  void problem(TomlPlace place, std::string_view message, std::string hint) {
    problems_.push_back({fmt::format("{}: {}", where(place), message), std::move(hint)});
  }

  void check_table(const TomlEntry& entry) {
    if (command_named(entry.key) != nullptr) return;
    const bool is_flag = find_flag(shared_, entry.key) != nullptr;
    problem(entry.key_place,
            is_flag ? fmt::format("{} is a table: expected a value", printable(entry.key))
                    : fmt::format("there is no verb '{}' for this table", printable(entry.key)),
            nearest_hint(entry.key, verb_names()));
  }

  void add_of_verb(const TomlEntry& entry) {
    const Command* verb = command_named(entry.table);
    if (verb == nullptr) return;  // check_table has said so
    const bool is_own = verb->name == command_.config_table();
    if (entry.key == kModelKey && takes_model(*verb)) {
      std::optional<FileValue> of_another_verb;
      return set_model(entry, is_own ? table_model_ : of_another_verb);
    }
    const std::vector<Flag> flags = is_own ? own_ : config_flags(*verb);
    const Flag* flag = find_flag(flags, entry.key);
    if (flag == nullptr) {
      return unknown(entry, fmt::format("{} has no flag '{}'", verb->name, printable(entry.key)),
                     flags);
    }
    add_value(entry, *flag, is_own ? table_ : others_);
  }

  void set_model(const TomlEntry& entry, std::optional<FileValue>& into) {
    const Flag as_flag{.name = kModelKey, .value = "FILE"};
    std::vector<FileValue> values;
    add_value(entry, as_flag, values);
    if (!values.empty()) into = std::move(values.front());
  }

  void add_value(const TomlEntry& entry, const Flag& flag, std::vector<FileValue>& into) {
    if (!has_type_of(entry, flag)) {
      return problem(
          entry.value_place,
          fmt::format("{} is {}: expected {}", flag.name, name_of(entry.kind), wanted(flag)), {});
    }
    if (entry.kind == TomlKind::kArray && !is_array_of_strings(entry)) {
      return problem(
          entry.value_place,
          fmt::format("{} holds something else than strings: expected {}", flag.name, wanted(flag)),
          {});
    }
    FileValue value{.flag = std::string(flag.name),
                    .texts = texts_of(entry),
                    .where = where(entry.value_place)};
    try {
      for (const std::string& text : value.texts) {
        check_flag_text(flag, text, fmt::format("{}: {}", value.where, flag.name),
                        ErrorCode::kUsage);
      }
    } catch (const Error& error) {
      problems_.push_back({error.message(), error.hint()});
      return;
    }
    into.push_back(std::move(value));
  }

  void unknown_at_top(const TomlEntry& entry) {
    std::vector<std::string_view> owners;
    for (const Command& command : all_commands()) {
      if (find_flag(config_flags(command), entry.key) != nullptr) owners.push_back(command.name);
    }
    const std::string message = fmt::format("there is no key '{}'", printable(entry.key));
    if (owners.empty()) return unknown(entry, message, shared_);
    problem(entry.key_place, fmt::format("{} at the top level", message),
            fmt::format("it is a flag of {}: put it under [{}]", join(owners, ", "), owners[0]));
  }

  void unknown(const TomlEntry& entry, const std::string& message, std::span<const Flag> flags) {
    if (belongs_on_command_line(entry.key)) {
      return problem(entry.key_place,
                     fmt::format("'{}' cannot stand in a configuration file", entry.key),
                     fmt::format("give --{} on the command line", entry.key));
    }
    std::string hint = hint_of(flags, entry.key);
    const Command* verb = command_named(entry.table.empty() ? kSharedVerb : entry.table);
    const std::array<std::string_view, 1> model = {kModelKey};
    if (hint.empty() && takes_model(*verb)) hint = nearest_hint(entry.key, model);
    if (hint.empty()) hint = "`trainscope config schema` lists the keys";
    problem(entry.key_place, message, std::move(hint));
  }

  std::string file_;
  const Command& command_;
  std::vector<Flag> own_;
  std::vector<Flag> shared_;
  std::vector<BadSetting> problems_;
  std::vector<FileValue> top_;
  std::vector<FileValue> table_;
  std::vector<FileValue> others_;  // checked, of no use to this verb
  std::optional<FileValue> top_model_;
  std::optional<FileValue> table_model_;
  Config config_;
};

// The flag that KEY of --set KEY=VALUE names; null when it is one of another verb.
const Flag* find_set_flag(std::span<const Flag> flags, const Command& command,
                          std::string_view key) {
  const std::size_t dot = key.find('.');
  if (dot != std::string_view::npos) {
    const std::string_view verb = key.substr(0, dot);
    const Command* named = command_named(verb);
    if (named == nullptr) {
      throw Error(ErrorCode::kUsage, fmt::format("--set: there is no verb '{}'", printable(verb)))
          .hint(nearest_hint(verb, verb_names()));
    }
    if (named->name != command.config_table()) return nullptr;
    key.remove_prefix(dot + 1);
  }
  if (const Flag* flag = find_flag(flags, key)) return flag;
  throw Error(ErrorCode::kUsage,
              fmt::format("--set: {} has no flag '{}'", command.config_table(), printable(key)))
      .hint(hint_of(flags, key))
      .hint(fmt::format("`trainscope help {}` lists its flags", command.config_table()));
}

void set_flag(const Flag& flag, std::string_view text, ParsedLine& line) {
  std::string value(text);
  if (flag.type == FlagType::kSwitch || flag.type == FlagType::kToggle) {
    const std::optional<std::string_view> word = switch_word(text);
    if (word) value = *word;
  }
  const auto given = std::ranges::find(line.flags, flag.name, &GivenFlag::name);
  if (given == line.flags.end()) {
    line.flags.push_back({.name = flag.name, .texts = {std::move(value)}});
    return;
  }
  require(flag.type == FlagType::kTexts, ErrorCode::kUsage,
          "--{} is given twice: once by --set {}={}", flag.name, flag.name, printable(text));
  given->texts.push_back(std::move(value));
}

}  // namespace

const Command* command_named(std::string_view name) {
  const auto found = std::ranges::find(all_commands(), name, &Command::name);
  return found == all_commands().end() ? nullptr : &*found;
}

bool belongs_on_command_line(std::string_view flag) {
  static constexpr std::array<std::string_view, 5> kNames = {"config", "set", "json", "color",
                                                             "dry-run"};
  return std::ranges::find(kNames, flag) != kNames.end();
}

std::vector<Flag> config_flags(const Command& command) {
  std::vector<Flag> flags = join_flags({command.flags, global_flags()});
  std::erase_if(flags, [](const Flag& flag) { return belongs_on_command_line(flag.name); });
  return flags;
}

bool takes_model(const Command& command) {
  return !command.arguments.empty() && command.arguments[0].name.starts_with("MODEL.onnx");
}

Config read_config(const std::filesystem::path& file, const Command& command) {
  Reading reading(printable(file.string()), command);
  for (const TomlEntry& entry : read_toml(file)) reading.add(entry);
  return reading.finish();
}

std::optional<Config> given_config(const Command& command, const ParsedLine& line,
                                   const Environment& environment) {
  const auto given = std::ranges::find(line.flags, "config", &GivenFlag::name);
  const std::string file = given != line.flags.end()
                               ? given->texts.back()
                               : environment(environment_name("config")).value_or("");
  if (file.empty()) return std::nullopt;
  return read_config(file, command);
}

void apply_sets(const Command& command, ParsedLine& line) {
  const auto given = std::ranges::find(line.flags, "set", &GivenFlag::name);
  if (given == line.flags.end()) return;
  const std::vector<std::string> sets = given->texts;
  const std::vector<Flag> flags = flags_in_files(command);
  for (const std::string& set : sets) {
    const std::size_t equals = set.find('=');
    require(equals != std::string::npos && equals > 0, ErrorCode::kUsage,
            "--set is '{}': expected KEY=VALUE", printable(set));
    const std::string_view key = std::string_view(set).substr(0, equals);
    const Flag* flag = find_set_flag(flags, command, key);
    if (flag != nullptr) set_flag(*flag, std::string_view(set).substr(equals + 1), line);
  }
}

}  // namespace trainscope
