// Reads declarations, labels and instructions of one kernel.
#include "tests/cuda/interpreter/kernel_parser.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>

#include "tests/cuda/interpreter/opcodes.h"
#include "tests/cuda/interpreter/statements.h"

namespace trainscope::ptx {
namespace {

std::size_t rounded_up(std::size_t bytes, std::size_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

std::int64_t number_of(std::string_view text) {
  return static_cast<std::int64_t>(std::strtoll(std::string(text).c_str(), nullptr, 0));
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// ".param .align 8 .b8 name[48]": the last word is the name, the one before it the type.
struct Variable {
  std::string_view name;
  std::size_t alignment = 1;
  std::size_t bytes = 0;
};

Variable variable_of(std::string_view declaration) {
  Variable variable;
  const std::size_t bracket = std::min(declaration.find('['), declaration.size());
  const std::size_t space = declaration.rfind(' ', bracket);
  variable.name = declaration.substr(space + 1, bracket - space - 1);
  const std::size_t dot = declaration.rfind('.', space);
  const std::size_t width = declaration.find_first_of("0123456789", dot);
  const auto element = static_cast<std::size_t>(number_of(declaration.substr(width))) / 8;
  variable.bytes = element;
  variable.alignment = element;
  if (bracket < declaration.size()) {
    variable.bytes *= static_cast<std::size_t>(number_of(declaration.substr(bracket + 1)));
  }
  const std::size_t align = declaration.find(".align ");
  if (align != std::string_view::npos) {
    variable.alignment = static_cast<std::size_t>(number_of(declaration.substr(align + 7)));
  }
  return variable;
}

class Parser {
 public:
  explicit Parser(const KernelText& text) : text_(text) { kernel_.name = text.name; }

  Kernel parse() {
    read_parameters();
    const std::vector<Statement> statements = statements_of(text_.body.text, text_.body.line);
    for (const Statement& statement : statements) {
      try {
        read(statement);
      } catch (const std::runtime_error& error) {
        throw std::runtime_error(":" + std::to_string(statement.line) + ": " + error.what());
      }
    }
    for (const auto& [instruction, label] : branches_) {
      const auto found = labels_.find(label);
      if (found == labels_.end()) throw std::runtime_error(": no label " + label);
      kernel_.code[instruction].target = found->second;
    }
    kernel_.shared_bytes = rounded_up(kernel_.shared_bytes, 16);
    for (const std::size_t at : launch_memory_) kernel_.constants[at].value = kernel_.shared_bytes;
    return std::move(kernel_);
  }

 private:
  void read_parameters() {
    std::string line_of_text(text_.parameters.text);
    std::ranges::replace(line_of_text, '\n', ' ');
    std::ranges::replace(line_of_text, '\t', ' ');
    for (const std::string_view part : parts_of(line_of_text)) {
      const Variable variable = variable_of(part);
      kernel_.parameter_bytes = rounded_up(kernel_.parameter_bytes, variable.alignment);
      symbols_[std::string(variable.name)] = kernel_.parameter_bytes;
      kernel_.parameters.push_back({.offset = kernel_.parameter_bytes, .bytes = variable.bytes});
      kernel_.parameter_bytes += variable.bytes;
    }
  }

  void read(const Statement& statement) {
    const std::string_view text = statement.text;
    if (statement.is_label) {
      labels_[statement.text] = static_cast<int>(kernel_.code.size());
    } else if (text.starts_with(".loc ")) {
      const std::size_t second = text.find(' ', 5);
      const auto file = static_cast<int>(number_of(text.substr(5)));
      const auto line = static_cast<int>(number_of(text.substr(second + 1)));
      // What the compiler has made of several lines (0) stands with the line before.
      if (line == 0 && file == source_file_) return;
      source_file_ = file;
      source_line_ = line;
      inlined_line_ = inlined_line_of(text);
    } else if (text.starts_with(".reg ")) {
      declare_registers(text.substr(text.find(' ', 5) + 1));
    } else if (text.starts_with(".shared ")) {
      declare(text, kernel_.shared_bytes, 0);
    } else if (text.starts_with(".local ")) {
      declare(text, kernel_.local_bytes, kLocalWindow);
    } else if (text.starts_with(".param ")) {
      call_values_[std::string(variable_of(text).name)] = kernel_.registers++;
    } else if (text.starts_with(".pragma ")) {
      return;
    } else if (text.starts_with('.')) {
      throw std::runtime_error("unknown directive: " + statement.text);
    } else {
      read_instruction(statement);
    }
  }

  // Of ".loc 2 62 5, function_name $L__info_string72, inlined_at 2 152 5".
  static int inlined_line_of(std::string_view text) {
    constexpr std::string_view kInlined = "inlined_at ";
    const std::size_t at = text.find(kInlined);
    if (at == std::string_view::npos) return 0;
    const std::string_view place = text.substr(at + kInlined.size());
    return static_cast<int>(number_of(place.substr(place.find(' ') + 1)));
  }

  // Memory of the block, whose addresses count from 0 in their own space, or of the thread.
  void declare(std::string_view text, std::size_t& bytes, std::uint64_t window) {
    const Variable variable = variable_of(text);
    bytes = rounded_up(bytes, variable.alignment);
    symbols_[std::string(variable.name)] = window + bytes;
    bytes += variable.bytes;
  }

  // "%r<10>" or "a, b".
  void declare_registers(std::string_view names) {
    for (const std::string_view name : parts_of(names)) {
      const std::size_t bracket = name.find('<');
      if (bracket == std::string_view::npos) {
        registers_[std::string(name)] = kernel_.registers++;
        continue;
      }
      numbered_[std::string(name.substr(0, bracket))] = kernel_.registers;
      kernel_.registers += static_cast<int>(number_of(name.substr(bracket + 1)));
    }
  }

  void read_instruction(const Statement& statement) {
    std::string_view text = statement.text;
    Instruction instruction{.line = statement.line,
                            .source_file = source_file_,
                            .source_line = source_line_,
                            .inlined_line = inlined_line_};
    if (text.starts_with('@')) {
      const std::size_t end = text.find(' ');
      const std::size_t begin = text[1] == '!' ? 2 : 1;
      instruction.guard_negated = begin == 2;
      instruction.guard = operand(text.substr(begin, end - begin));
      text.remove_prefix(end + 1);
    }
    const std::size_t space = std::min(text.find(' '), text.size());
    std::string opcode(text.substr(0, space));
    std::vector<std::string_view> operands = parts_of(text.substr(space));
    if (opcode.starts_with("bra")) {
      branches_.emplace_back(kernel_.code.size(), operands.at(0));
      operands.clear();
    } else if (opcode.starts_with("call")) {
      const auto function = std::ranges::find_if(
          operands, [](std::string_view part) { return !part.starts_with('('); });
      if (function == operands.end()) throw std::runtime_error("a call of nothing");
      opcode = "call " + std::string(*function);
      operands.erase(function);
    } else if (opcode.starts_with("mov.") && operands.size() == 2) {
      if (operands[0].starts_with('{')) opcode.replace(0, 3, "unpack");
      if (operands[1].starts_with('{')) opcode.replace(0, 3, "pack");
    }
    for (const std::string_view part : operands) add_operand(part, instruction);
    // Whether the other lane is in the warp is a result that may be left out.
    if (opcode.starts_with("shfl.") && instruction.operands.size() == 5) {
      instruction.operands.insert(instruction.operands.begin() + 1, Instruction::kNone);
    }
    // All lanes of the warp do it, without a mask that says so.
    if (opcode.starts_with("mma.sync.") || opcode.starts_with("ldmatrix.sync.")) {
      add_operand("-1", instruction);
    }
    if (opcode.starts_with("cp.async") || opcode.starts_with("ldmatrix")) {
      if (instruction.offset != 0) throw std::runtime_error("an address with an offset: " + opcode);
    }
    set_opcode(opcode, instruction, operands);
    kernel_.code.push_back(std::move(instruction));
  }

  void set_opcode(std::string opcode, Instruction& instruction,
                  const std::vector<std::string_view>& operands) {
    const bool moves = opcode.starts_with("ld.param") || opcode.starts_with("st.param");
    if (moves && is_of_call(operands.at(opcode.starts_with("ld") ? 1 : 0))) {
      opcode = "mov.b64";  // an argument or a result of a call is a register here
      if (instruction.offset != 0) throw std::runtime_error("a part of a call's argument");
    }
    instruction.opcode = opcode;
    if (const auto memory = find_memory_opcode(opcode)) {
      instruction.run = memory->run;
      instruction.space = memory->space;
      instruction.is_signed = memory->is_signed;
      instruction.bytes = memory->bytes;
      instruction.count = memory->count;
      return;
    }
    const Opcode* known = find_opcode(opcode);
    if (known == nullptr) throw std::runtime_error("unknown opcode: " + opcode);
    instruction.run = known->run;
    instruction.flow = known->flow;
    instruction.orders_memory = known->orders_memory;
  }

  bool is_of_call(std::string_view address) const {
    const std::string_view base =
        address.substr(1, std::min(address.find('+'), address.size() - 1) - 1);
    return call_values_.contains(std::string(base));
  }

  void add_operand(std::string_view text, Instruction& instruction) {
    const std::size_t bar = text.find('|');
    if (text.starts_with('{') || text.starts_with('(')) {
      for (const std::string_view part : parts_of(text.substr(1, text.size() - 2))) {
        add_operand(part, instruction);
      }
    } else if (text.starts_with('[')) {
      const std::size_t plus = text.find('+');
      const std::size_t end = std::min(plus, text.size() - 1);
      if (plus != std::string_view::npos) instruction.offset = number_of(text.substr(plus + 1));
      instruction.operands.push_back(operand(text.substr(1, end - 1)));
    } else if (bar != std::string_view::npos) {
      instruction.operands.push_back(operand(text.substr(0, bar)));
      instruction.operands.push_back(operand(text.substr(bar + 1)));
    } else if (text == "_") {
      instruction.operands.push_back(Instruction::kNone);
    } else {
      instruction.operands.push_back(operand(text));
    }
  }

  // The register that stands for it.
  int operand(std::string_view text) {
    const std::string name(text);
    if (const auto value = call_values_.find(name); value != call_values_.end()) {
      return value->second;
    }
    if (const auto known = registers_.find(name); known != registers_.end()) return known->second;
    if (is_digit(text[0]) || text[0] == '-') return constant(name, value_of(text));
    if (const auto symbol = symbols_.find(name); symbol != symbols_.end()) {
      return constant(name, symbol->second);
    }
    if (const auto variable = text_.variables.find(text); variable != text_.variables.end()) {
      return constant(name, reinterpret_cast<std::uintptr_t>(variable->second.data()));
    }
    if (const auto special = special_of(text)) {
      kernel_.specials.push_back({.number = kernel_.registers, .which = *special});
      return registers_[name] = kernel_.registers++;
    }
    if (const auto shared = text_.shared.find(text); shared != text_.shared.end()) {
      declare(shared->second, kernel_.shared_bytes, 0);
      return operand(text);
    }
    if (text_.launch_memory.contains(text)) {
      launch_memory_.push_back(kernel_.constants.size());
      return constant(name, 0);  // the address follows
    }
    return numbered_register(text);
  }

  int numbered_register(std::string_view text) const {
    std::size_t digits = text.size();
    while (digits > 0 && is_digit(text[digits - 1])) --digits;
    const auto found = numbered_.find(std::string(text.substr(0, digits)));
    if (found == numbered_.end()) {
      throw std::runtime_error("unknown register: " + std::string(text));
    }
    return found->second + static_cast<int>(number_of(text.substr(digits)));
  }

  int constant(const std::string& name, std::uint64_t value) {
    kernel_.constants.push_back({.number = kernel_.registers, .value = value});
    return registers_[name] = kernel_.registers++;
  }

  // "12", "-1", "0x1F", "0f3F800000" (a float's bits), "0d3FF0000000000000".
  static std::uint64_t value_of(std::string_view text) {
    const bool is_float = text.size() > 2 && text[0] == '0' &&
                          std::string_view("fFdD").find(text[1]) != std::string_view::npos;
    if (is_float) return std::strtoull(std::string(text.substr(2)).c_str(), nullptr, 16);
    if (text[0] == '-') return static_cast<std::uint64_t>(number_of(text));
    return std::strtoull(std::string(text).c_str(), nullptr, 0);
  }

  static std::optional<SpecialRegister> special_of(std::string_view text) {
    static constexpr std::pair<std::string_view, SpecialRegister> kNames[] = {
        {"%tid.x", SpecialRegister::kThreadX},    {"%tid.y", SpecialRegister::kThreadY},
        {"%tid.z", SpecialRegister::kThreadZ},    {"%ntid.x", SpecialRegister::kThreadsX},
        {"%ntid.y", SpecialRegister::kThreadsY},  {"%ntid.z", SpecialRegister::kThreadsZ},
        {"%ctaid.x", SpecialRegister::kBlockX},   {"%ctaid.y", SpecialRegister::kBlockY},
        {"%ctaid.z", SpecialRegister::kBlockZ},   {"%nctaid.x", SpecialRegister::kBlocksX},
        {"%nctaid.y", SpecialRegister::kBlocksY}, {"%nctaid.z", SpecialRegister::kBlocksZ},
        {"%laneid", SpecialRegister::kLane}};
    for (const auto& [name, which] : kNames) {
      if (name == text) return which;
    }
    return std::nullopt;
  }

  const KernelText& text_;
  Kernel kernel_;
  std::unordered_map<std::string, int> registers_;          // that are named one by one
  std::unordered_map<std::string, int> numbered_;           // the first one behind a prefix
  std::unordered_map<std::string, std::uint64_t> symbols_;  // addresses
  std::unordered_map<std::string, int> call_values_;        // arguments and results of calls
  std::vector<std::size_t> launch_memory_;                  // constants that are its address
  std::unordered_map<std::string, int> labels_;
  std::vector<std::pair<std::size_t, std::string>> branches_;
  int source_file_ = 0;
  int source_line_ = 0;
  int inlined_line_ = 0;
};

}  // namespace

Kernel parse_kernel(const KernelText& text) { return Parser(text).parse(); }

}  // namespace trainscope::ptx
