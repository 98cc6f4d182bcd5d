// Finds kernels, variables and source files in a PTX text.
#include "tests/cuda/interpreter/module.h"

#include <algorithm>
#include <charconv>
#include <stdexcept>
#include <utility>

#include "tests/cuda/interpreter/kernel_parser.h"

namespace trainscope::ptx {
namespace {

// What a directive stands before, from `from` on; npos where it is not found. Directives begin a
// line, behind ".visible" and the like.
std::size_t find_directive(std::string_view text, std::string_view directive, std::size_t from) {
  while ((from = text.find(directive, from)) != std::string_view::npos) {
    const std::size_t end = from + directive.size();
    if (end < text.size() && (text[end] == ' ' || text[end] == '\t')) return end;
    from = end;
  }
  return from;
}

std::string_view between(std::string_view text, char open, char close, std::size_t from) {
  const std::size_t begin = text.find(open, from);
  if (begin == std::string_view::npos) throw std::runtime_error("PTX ends early");
  int depth = 0;
  for (std::size_t i = begin; i < text.size(); ++i) {
    if (text.substr(i, 2) == "//") i = text.find('\n', i);
    if (i == std::string_view::npos) break;
    if (text[i] == open) ++depth;
    if (text[i] == close && --depth == 0) return text.substr(begin + 1, i - begin - 1);
  }
  throw std::runtime_error("PTX ends early");
}

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\n\r");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\n\r") - begin + 1);
}

int number_of(std::string_view text) {
  int number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

// "name[2] = {1, 2}": what is not said is zero.
std::vector<std::uint8_t> bytes_in(std::string_view declaration) {
  const std::size_t bracket = declaration.find('[');
  if (bracket == std::string_view::npos) return {};
  std::vector<std::uint8_t> bytes(
      static_cast<std::size_t>(number_of(declaration.substr(bracket + 1))));
  std::size_t next = declaration.find('{');
  for (std::uint8_t& byte : bytes) {
    if (next == std::string_view::npos) break;
    byte = static_cast<std::uint8_t>(number_of(trimmed(declaration.substr(next + 1))));
    next = declaration.find(',', next + 1);
  }
  return bytes;
}

}  // namespace

Module::Module(std::string name, std::string text)
    : name_(std::move(name)), text_(std::move(text)) {
  find_entries();
  find_variables();
}

void Module::find_entries() {
  const std::string_view text = text_;
  std::size_t counted = 0;
  int line = 1;
  const auto line_at = [&](const char* at) {
    const auto end = static_cast<std::size_t>(at - text.data());
    line += static_cast<int>(std::count(text.begin() + static_cast<std::ptrdiff_t>(counted),
                                        text.begin() + static_cast<std::ptrdiff_t>(end), '\n'));
    counted = end;
    return line;
  };
  std::size_t at = 0;
  while ((at = find_directive(text, ".entry", at)) != std::string_view::npos) {
    Entry entry;
    entry.parameters = between(text, '(', ')', at);
    const std::size_t behind =
        static_cast<std::size_t>(entry.parameters.data() - text.data()) + entry.parameters.size();
    entry.body = between(text, '{', '}', behind);
    const std::string_view rules =
        text.substr(behind, static_cast<std::size_t>(entry.body.data() - text.data()) - behind);
    if (const std::size_t most = find_directive(rules, ".maxntid", 0); most < rules.size()) {
      entry.most_threads = static_cast<unsigned>(number_of(trimmed(rules.substr(most))));
    }
    entry.parameters_line = line_at(entry.parameters.data());
    entry.body_line = line_at(entry.body.data());
    const std::string_view name = trimmed(text.substr(at, text.find('(', at) - at));
    at = static_cast<std::size_t>(entry.body.data() - text.data()) + entry.body.size();
    entries_.emplace(name, std::move(entry));
  }
  for (at = find_directive(text, ".file", 0); at != std::string_view::npos;
       at = find_directive(text, ".file", at)) {
    const std::string_view rest = trimmed(text.substr(at, text.find('\n', at) - at));
    const std::size_t open = rest.find('"');
    const std::size_t close = rest.rfind('"');
    if (open == close) continue;
    source_files_[number_of(rest)] = rest.substr(open + 1, close - open - 1);
  }
}

// ".shared .align 16 .b8 name[8];", ".extern .shared .align 16 .b8 name[];" and ".global .align 16
// .b8 name[2] = {1, 2};" outside of kernels.
void Module::find_variables() {
  const std::string_view text = text_;
  const auto name_in = [](std::string_view declaration) {
    const std::size_t bracket = std::min(declaration.find('['), declaration.size());
    const std::size_t begin = declaration.rfind(' ', bracket) + 1;
    return declaration.substr(begin, bracket - begin);
  };
  const auto for_each = [&](std::string_view directive, auto f) {
    for (std::size_t at = find_directive(text, directive, 0); at != std::string_view::npos;
         at = find_directive(text, directive, at)) {
      f(text.substr(at, text.find(';', at) - at));
    }
  };
  for_each("\n.extern .shared",
           [&](std::string_view rest) { launch_memory_.insert(name_in(rest)); });
  for_each("\n.shared", [&](std::string_view rest) { shared_[name_in(rest)] = rest; });
  for (const std::string_view space : {"\n.global", "\n.const"}) {
    for_each(space, [&](std::string_view rest) { variables_[name_in(rest)] = bytes_in(rest); });
  }
}

std::vector<std::string_view> Module::kernel_names() const {
  std::vector<std::string_view> names;
  for (const auto& [name, entry] : entries_) names.push_back(name);
  return names;
}

Kernel& Module::kernel(std::string_view name) {
  const auto found = entries_.find(name);
  if (found == entries_.end()) {
    throw std::runtime_error(name_ + ": no kernel " + std::string(name));
  }
  Entry& entry = found->second;
  if (entry.parsed == nullptr) {
    try {
      entry.parsed = std::make_unique<Kernel>(
          parse_kernel({.name = name,
                        .parameters = {.text = entry.parameters, .line = entry.parameters_line},
                        .body = {.text = entry.body, .line = entry.body_line},
                        .variables = variables_,
                        .shared = shared_,
                        .launch_memory = launch_memory_}));
      if (entry.most_threads != 0) entry.parsed->most_threads = entry.most_threads;
    } catch (const std::runtime_error& error) {
      throw std::runtime_error(name_ + error.what() + ", in " + std::string(name));
    }
  }
  return *entry.parsed;
}

bool Module::holds(std::uint64_t address, std::size_t bytes) const {
  return std::ranges::any_of(variables_, [&](const auto& variable) {
    const auto begin = reinterpret_cast<std::uintptr_t>(variable.second.data());
    return address >= begin && address + bytes <= begin + variable.second.size();
  });
}

std::string Module::source_place(const Instruction& instruction) const {
  const std::string_view path = source_path(instruction);
  if (path.empty()) return {};
  return std::string(path.substr(path.rfind('/') + 1)) + ":" +
         std::to_string(instruction.source_line);
}

std::string_view Module::source_path(const Instruction& instruction) const {
  const auto file = source_files_.find(instruction.source_file);
  return file == source_files_.end() ? std::string_view() : file->second;
}

}  // namespace trainscope::ptx
