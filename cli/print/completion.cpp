// Completion for bash, zsh and fish: verbs, flags, the words of choices, and files.
#include "cli/print/completion.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "cli/command.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

bool takes_value(const Flag& flag) {
  return flag.type != FlagType::kSwitch && flag.type != FlagType::kToggle;
}

bool is_numeric(const Flag& flag) {
  return flag.type == FlagType::kInteger || flag.type == FlagType::kNumber;
}

// "--bias", "--no-bias", "-o": every form of a flag.
std::vector<std::string> forms(const Flag& flag) {
  std::vector<std::string> all = {fmt::format("--{}", flag.name)};
  if (flag.type == FlagType::kToggle) all.push_back(fmt::format("--no-{}", flag.name));
  if (flag.letter != 0) all.push_back(fmt::format("-{}", flag.letter));
  return all;
}

std::vector<Flag> all_flags(const Command& command) {
  return join_flags({command.flags, global_flags()});
}

std::string words_of(const std::vector<Flag>& flags) {
  std::vector<std::string> words;
  for (const Flag& flag : flags) {
    for (std::string& form : forms(flag)) words.push_back(std::move(form));
  }
  words.emplace_back("--help");
  return join(words, " ");
}

std::string verb_words() {
  std::vector<std::string_view> names;
  for (const Command& command : all_commands()) names.push_back(command.name);
  return join(names, " ");
}

// What may stand for an argument besides a file: "show validate", or the verbs.
std::string argument_words(const Command& command) {
  std::string words;
  for (const Argument& argument : command.arguments) {
    std::string more = join(split(argument.words, '|'), " ");
    if (argument.name.starts_with("VERB")) more = verb_words();
    if (!words.empty() && !more.empty()) words += ' ';
    words += more;
  }
  return words;
}

// In single quotes of a shell; of zsh and fish too.
std::string in_quotes(std::string_view text) {
  std::string result = "'";
  for (char c : text) {
    if (c == '\'') {
      result += "'\\''";
    } else {
      result += c;
    }
  }
  return result + "'";
}

// The flags whose value stands in the next word, as a pattern of `case`; `wanted` picks them.
template <typename F>
std::string case_pattern(const std::vector<Flag>& flags, F wanted) {
  std::vector<std::string> patterns;
  for (const Flag& flag : flags) {
    if (!takes_value(flag) || !wanted(flag)) continue;
    for (std::string& form : forms(flag)) patterns.push_back(std::move(form));
  }
  return join(patterns, "|");
}

// What fits after a verb; '' is before it.
std::string bash_verb(std::string_view verb, const std::vector<Flag>& flags,
                      std::string_view words) {
  std::string text = fmt::format("    {})\n      flags={}\n      words={}\n", verb,
                                 in_quotes(words_of(flags)), in_quotes(words));
  text += "      case \"$previous\" in\n";
  for (const Flag& flag : flags) {
    if (flag.type != FlagType::kChoice) continue;
    text += fmt::format("        {}) choices={} ;;\n", join(forms(flag), "|"),
                        in_quotes(join(split(flag.value, '|'), " ")));
  }
  const std::string numbers = case_pattern(flags, is_numeric);
  if (!numbers.empty()) text += fmt::format("        {}) value=number ;;\n", numbers);
  const std::string files = case_pattern(
      flags, [](const Flag& f) { return !is_numeric(f) && f.type != FlagType::kChoice; });
  if (!files.empty()) text += fmt::format("        {}) value=file ;;\n", files);
  return text + "      esac ;;\n";
}

// A word with ':' or '=' in it is several words of bash: "--lr=1" is "--lr", "=", "1".
constexpr std::string_view kBashBegin = R"(# Completion of trainscope for bash.
# source <(trainscope completion bash), or a file in /usr/share/bash-completion/completions/
_trainscope() {
  local current="${COMP_WORDS[COMP_CWORD]}" previous="${COMP_WORDS[COMP_CWORD-1]}"
  local verb='' flags='' words='' choices='' value='' i
  COMPREPLY=()
  if [[ $current == '=' ]]; then
    current=''
  elif [[ $previous == '=' ]]; then
    previous="${COMP_WORDS[COMP_CWORD-2]}"
  fi
  for ((i = 1; i < COMP_CWORD; ++i)); do
    case "${COMP_WORDS[i]}" in
)";

constexpr std::string_view kBashEnd = R"(  esac
  if [[ -n $choices ]]; then
    COMPREPLY=($(compgen -W "$choices" -- "$current"))
  elif [[ $value == number ]]; then
    compopt +o default 2>/dev/null
  elif [[ $value == file ]]; then
    :
  elif [[ $current == -* ]]; then
    COMPREPLY=($(compgen -W "$flags" -- "$current"))
  else
    COMPREPLY=($(compgen -W "$words" -- "$current"))
  fi
}
complete -o default -F _trainscope trainscope
)";

// A colon ends the name of what _describe and _arguments show.
std::string zsh_text(std::string_view text, std::string_view special) {
  std::string result;
  for (char c : text) {
    if (special.find(c) != std::string_view::npos) result += '\\';
    result += c;
  }
  return result;
}

std::string zsh_flag(const Flag& flag, std::string_view form) {
  std::string spec = flag.type == FlagType::kTexts ? "*" : "";
  spec += form;
  if (takes_value(flag) && form.starts_with("--")) spec += '=';
  spec += fmt::format("[{}]", zsh_text(flag.help, "[]:\\"));
  if (!takes_value(flag)) return in_quotes(spec);
  spec += fmt::format(":{}:", zsh_text(flag.value, ":\\"));
  if (flag.type == FlagType::kChoice) {
    spec += fmt::format("({})", join(split(flag.value, '|'), " "));
  } else if (!is_numeric(flag)) {
    spec += "_files";
  } else {
    spec += ' ';
  }
  return in_quotes(spec);
}

std::string zsh_verb(const Command& command) {
  std::string text = fmt::format("    {})\n      _arguments \\\n", command.name);
  for (const Flag& flag : all_flags(command)) {
    for (const std::string& form : forms(flag)) {
      text += fmt::format("        {} \\\n", zsh_flag(flag, form));
    }
  }
  const std::string words = argument_words(command);
  const std::string alternatives =
      words.empty() ? "_files"
                    : fmt::format("_alternative \"words:word:({})\" \"files:file:_files\"", words);
  return text + fmt::format("        '--help[Help for the verb]' {} ;;\n",
                            in_quotes("*:argument:{" + alternatives + "}"));
}

std::string fish_line(std::string_view condition, const Flag& flag) {
  std::string line = fmt::format("complete -c trainscope{} -l {}", condition, flag.name);
  if (flag.letter != 0) line += fmt::format(" -s {}", flag.letter);
  if (flag.type == FlagType::kChoice) {
    line += fmt::format(" -x -a {}", in_quotes(join(split(flag.value, '|'), " ")));
  } else if (is_numeric(flag)) {
    line += " -x";
  } else if (takes_value(flag)) {
    line += " -r -F";
  }
  return line + fmt::format(" -d {}\n", in_quotes(flag.help));
}

}  // namespace

std::string bash_completion() {
  const std::vector<Flag> globals(global_flags().begin(), global_flags().end());
  std::string text(kBashBegin);
  const std::string with_value = case_pattern(globals, [](const Flag&) { return true; });
  text += fmt::format("      {}) [[ ${{COMP_WORDS[i+1]}} == '=' ]] && ((i += 2)) || ((++i)) ;;\n",
                      with_value);
  text += "      -*|=) ;;\n      *) verb=\"${COMP_WORDS[i]}\"; break ;;\n    esac\n  done\n";
  text += "  case \"$verb\" in\n";
  text += bash_verb("''", globals, verb_words());
  for (const Command& command : all_commands()) {
    text += bash_verb(command.name, all_flags(command), argument_words(command));
  }
  text += kBashEnd;
  return text;
}

std::string zsh_completion() {
  std::string text =
      "#compdef trainscope\n# Completion of trainscope for zsh: a file _trainscope in $fpath.\n"
      "_trainscope() {\n  local -a verbs\n  verbs=(\n";
  for (const Command& command : all_commands()) {
    text += fmt::format("    {}\n", in_quotes(fmt::format("{}:{}", command.name,
                                                          zsh_text(command.summary, ":\\"))));
  }
  text +=
      "  )\n  if ((CURRENT == 2)); then\n    _describe verb verbs\n    return\n  fi\n"
      "  local verb=\"${words[2]}\"\n  shift words\n  ((CURRENT--))\n  case \"$verb\" in\n";
  for (const Command& command : all_commands()) text += zsh_verb(command);
  return text + "  esac\n}\ncompdef _trainscope trainscope 2>/dev/null\n";
}

std::string fish_completion() {
  std::string text =
      "# Completion of trainscope for fish: ~/.config/fish/completions/trainscope.fish\n";
  const std::string verbs = verb_words();
  for (const Command& command : all_commands()) {
    text += fmt::format(
        "complete -c trainscope -f -n 'not __fish_seen_subcommand_from {}' -a {} -d {}\n", verbs,
        command.name, in_quotes(command.summary));
  }
  for (const Flag& flag : global_flags()) text += fish_line("", flag);
  for (const Command& command : all_commands()) {
    const std::string condition = fmt::format(" -n '__fish_seen_subcommand_from {}'", command.name);
    for (const Flag& flag : command.flags) text += fish_line(condition, flag);
    const std::string words = argument_words(command);
    if (words.empty()) continue;
    text += fmt::format("complete -c trainscope{} -a {}\n", condition, in_quotes(words));
  }
  return text;
}

}  // namespace trainscope
