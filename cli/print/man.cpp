// Manual pages.
#include "cli/print/man.h"

#include <fmt/format.h>

#include "cli/exit_codes.h"
#include "cli/flags/settings.h"
#include "cli/machine.h"
#include "cli/print/help.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

// Backslashes and hyphens mean something to troff, and so does a dot or quote that begins a line.
std::string roff(std::string_view text) {
  std::string result;
  if (text.starts_with('.') || text.starts_with('\'')) result += "\\&";
  for (char c : text) {
    if (c == '\\') {
      result += "\\e";
    } else if (c == '-') {
      result += "\\-";
    } else {
      result += c;
    }
  }
  return result;
}

constexpr std::size_t kLongestTag = 60;

std::string upper(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return result;
}

std::string title(std::string_view page, std::string_view summary) {
  return fmt::format(
      ".\\\" Made by trainscope {}.\n.TH {} 1 \"\" \"trainscope {}\" \"User Commands\"\n"
      ".SH NAME\n{} \\- {}\n",
      program_version(), roff(upper(page)), program_version(), roff(page), roff(summary));
}

// Of `title` only: a verb's summary without the full stop.
std::string_view without_stop(std::string_view text) {
  if (text.ends_with('.')) text.remove_suffix(1);
  return text;
}

// Long words, specifications for example, may be broken after commas and bars.
std::string breakable(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    result += text[i];
    const bool inside = i + 1 < text.size() && text[i + 1] != ' ';
    if ((text[i] == ',' || text[i] == '|') && inside) result += "\\:";
  }
  return result;
}

std::string sentence(std::string_view text) {
  return breakable(roff(text)) + (text.ends_with('.') ? "" : ".");
}

std::string flag_entry(const Flag& flag) {
  std::string names;
  if (flag.letter != 0) names = fmt::format("\\fB\\-{}\\fR, ", flag.letter);
  const bool toggle = flag.type == FlagType::kToggle;
  names += fmt::format("\\fB\\-\\-{}{}\\fR", toggle ? "[no\\-]" : "", roff(flag.name));
  // A tag is one line: what does not fit goes into the text.
  const bool long_choice = flag.type == FlagType::kChoice && flag.value.size() > kLongestTag;
  const std::string_view value = long_choice ? "CHOICE" : flag.value;
  if (!value.empty()) names += fmt::format(" \\fI{}\\fR", roff(value));
  std::string text = fmt::format(".TP\n{}\n{}\n", names, sentence(flag.help));
  if (long_choice) text += fmt::format("One of {}.\n", roff(join(split(flag.value, '|'), ", ")));
  if (flag.type == FlagType::kTexts) text += "May be repeated.\n";
  if (!flag.fallback.empty()) text += fmt::format("Default: {}.\n", roff(flag.fallback));
  return text;
}

std::string flag_section(std::string_view heading, std::span<const Flag> flags) {
  std::string text;
  if (flags.empty()) return text;
  text = fmt::format(".SH {}\n", heading);
  for (const Flag& flag : flags) text += flag_entry(flag);
  return text;
}

std::string entry(std::string_view name, std::string_view help) {
  return fmt::format(".TP\n\\fB{}\\fR\n{}\n", roff(name), roff(help));
}

std::string exit_status() {
  std::string text = ".SH EXIT STATUS\n";
  for (const ExitCode& code : exit_codes()) text += entry(std::to_string(code.code), code.meaning);
  return text;
}

constexpr std::string_view kEnvironment =
    ".SH ENVIRONMENT\n"
    "Each flag is also read from a variable: \\fB\\-\\-run\\-dir\\fR from\n"
    "\\fBTRAINSCOPE_RUN_DIR\\fR. The command line wins over the environment, which wins over\n"
    "the file of \\fB\\-\\-config\\fR. \\fBNO_COLOR\\fR takes colours away.\n";

}  // namespace

std::string man_page() {
  std::string text = title("trainscope", "train ONNX graphs and show what a training step costs");
  text += ".SH SYNOPSIS\n\\fBtrainscope\\fR \\fIVERB\\fR [\\fIarguments\\fR] [\\fIflags\\fR]\n";
  text += ".SH VERBS\n";
  for (const Command& command : all_commands()) text += entry(command.name, command.summary);
  text += flag_section("FLAGS OF EVERY VERB", global_flags());
  text += entry("--help", "Help for the verb");
  text += kEnvironment;
  text += exit_status();
  text += ".SH SEE ALSO\n";
  std::string_view separator;
  for (const Command& command : all_commands()) {
    text += fmt::format("{}.BR trainscope\\-{} (1)", separator, command.name);
    separator = ",\n";
  }
  return text + "\n";
}

std::string man_page(const Command& command) {
  std::string text =
      title(fmt::format("trainscope-{}", command.name), without_stop(command.summary));
  text += fmt::format(".SH SYNOPSIS\n{}\n", roff(usage(command)));
  text += fmt::format(".SH DESCRIPTION\n{}\n", roff(command.summary));
  for (const Argument& argument : command.arguments) text += entry(argument.name, argument.help);
  text += flag_section("FLAGS", command.flags);
  text += flag_section("FLAGS OF EVERY VERB", global_flags());
  text += ".SH EXAMPLES\n";
  for (std::string_view example : command.examples) {
    text += fmt::format(".EX\n{}\n.EE\n", roff(example));
  }
  text += kEnvironment;
  text += exit_status();
  return text + ".SH SEE ALSO\n.BR trainscope (1)\n";
}

}  // namespace trainscope
