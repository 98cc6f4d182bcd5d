// Follows predicates from where they decide about memory back to the comparisons that made them.
#include "tests/cuda/interpreter/bound_checks.h"

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <set>
#include <string_view>
#include <utility>

namespace trainscope::ptx {
namespace {

bool begins_with_any(std::string_view opcode, std::initializer_list<std::string_view> beginnings) {
  return std::ranges::any_of(beginnings,
                             [&](std::string_view each) { return opcode.starts_with(each); });
}

// What it gives is of the thread, or of memory, whatever its operands are.
bool is_own(const Instruction& instruction) {
  const std::string_view opcode = instruction.opcode;
  if (opcode.starts_with("ld.")) return instruction.space != Space::kParameter;
  return begins_with_any(opcode, {"atom.", "shfl.", "vote.", "bar.red.", "mma.", "ldmatrix."});
}

bool orders_integers(const Instruction& instruction) {
  std::string_view opcode = instruction.opcode;
  if (!opcode.starts_with("setp.") || instruction.operands.size() != 3) return false;
  opcode.remove_prefix(5);
  return begins_with_any(opcode, {"lt.s", "lt.u", "le.s", "le.u", "gt.s", "gt.u", "ge.s", "ge.u"});
}

class BoundChecks {
 public:
  BoundChecks(const Kernel& kernel, const CodePaths& paths)
      : kernel_(kernel),
        paths_(paths),
        varies_(static_cast<std::size_t>(kernel.registers), false) {}

  std::vector<BoundCheck> find() {
    find_varying();
    find_definitions();
    find_loops();
    for (std::size_t place = 0; place < kernel_.code.size(); ++place) {
      if (paths_.is_reached(place)) look_at(place);
    }
    std::vector<BoundCheck> checks;
    for (const auto& [place, passes] : found_) {
      if (passes.size() == 1) checks.push_back({.place = place, .passes = *passes.begin()});
    }
    return checks;
  }

 private:
  static std::size_t index(int number) { return static_cast<std::size_t>(number); }

  // Registers that may hold different numbers in different threads, blocks or rounds of a loop.
  void find_varying() {
    std::vector<int> definitions(varies_.size(), 0);
    for (const Kernel::Special& each : kernel_.specials) {
      const bool of_launch =
          each.which >= SpecialRegister::kThreadsX && each.which <= SpecialRegister::kThreadsZ;
      const bool of_grid =
          each.which >= SpecialRegister::kBlocksX && each.which <= SpecialRegister::kBlocksZ;
      varies_[index(each.number)] = !of_launch && !of_grid;
    }
    for (const Instruction& instruction : kernel_.code) {
      for_results(instruction, [&](int number) {
        if (++definitions[index(number)] > 1) varies_[index(number)] = true;
      });
    }
    bool goes_on = true;
    while (goes_on) {
      goes_on = false;
      for (const Instruction& instruction : kernel_.code) {
        if (!is_own(instruction) && !has_varying_operand(instruction)) continue;
        for_results(instruction, [&](int number) {
          goes_on = goes_on || !varies_[index(number)];
          varies_[index(number)] = true;
        });
      }
    }
  }

  template <typename F>
  static void for_results(const Instruction& instruction, F f) {
    const std::size_t results = results_of(instruction);
    for (std::size_t i = 0; i < results; ++i) {
      if (instruction.operands[i] != Instruction::kNone) f(instruction.operands[i]);
    }
  }

  bool varies(int number) const { return number != Instruction::kNone && varies_[index(number)]; }

  bool has_varying_operand(const Instruction& instruction) const {
    if (varies(instruction.guard)) return true;
    const auto first =
        instruction.operands.begin() + static_cast<std::ptrdiff_t>(results_of(instruction));
    return std::any_of(first, instruction.operands.end(),
                       [this](int number) { return varies(number); });
  }

  void find_definitions() {
    for (const Kernel::Constant& each : kernel_.constants) numbers_[each.number] = each.value;
    for (std::size_t place = 0; place < kernel_.code.size(); ++place) {
      const Instruction& instruction = kernel_.code[place];
      const bool makes_choice = instruction.opcode.ends_with(".pred") ||
                                begins_with_any(instruction.opcode, {"setp.", "selp."});
      if (makes_choice && !instruction.operands.empty()) {
        definitions_[instruction.operands[0]].push_back(place);
      }
    }
  }

  // Lines of the source whose conditions loops go back by.
  void find_loops() {
    for (std::size_t place = 0; place < kernel_.code.size(); ++place) {
      const Instruction& branch = kernel_.code[place];
      if (branch.flow != Flow::kBranch || index(branch.target) > place) continue;
      for (const std::size_t made : definitions_[branch.guard]) {
        if (kernel_.code[made].source_line != 0) loops_.insert(line_of(kernel_.code[made]));
      }
    }
  }
  static std::pair<int, int> line_of(const Instruction& instruction) {
    return {instruction.source_file, instruction.source_line};
  }
  // Whether it compares a loop's rounds with a constant: so the compiler chooses among the copies
  // of its body.
  bool counts_rounds(const Instruction& comparison) const {
    return loops_.contains(line_of(comparison)) &&
           (numbers_.contains(comparison.operands[1]) || numbers_.contains(comparison.operands[2]));
  }

  void look_at(std::size_t place) {
    const Instruction& instruction = kernel_.code[place];
    const int guard = instruction.guard;
    if (instruction.opcode.starts_with("cp.async.") && instruction.operands.size() == 4) {
      trace_size(instruction.operands[3]);
    }
    if (guard == Instruction::kNone) return;
    const bool negated = instruction.guard_negated;
    if (instruction.flow == Flow::kBranch) {
      if (index(instruction.target) <= place) return;
      const bool next = paths_.only_behind(place, Way::kNext).uses_global();
      const bool taken = paths_.only_behind(place, Way::kTaken).uses_global();
      if (next != taken) trace(guard, taken != negated);
    } else if (instruction.flow == Flow::kExit) {
      if (paths_.only_behind(place, Way::kNext).uses_global()) trace(guard, negated);
    } else if (memory_use_of(instruction).uses_global()) {
      trace(guard, !negated);
    }
  }

  // Of a copy: nothing, or all of its bytes.
  void trace_size(int size) {
    for (const std::size_t place : definitions_[size]) {
      const Instruction& choice = kernel_.code[place];
      if (!choice.opcode.starts_with("selp.")) continue;
      const auto first = numbers_.find(choice.operands[1]);
      const auto second = numbers_.find(choice.operands[2]);
      if (first == numbers_.end() || second == numbers_.end()) continue;
      if ((first->second == 0) != (second->second == 0)) {
        trace(choice.operands[3], first->second != 0);
      }
    }
  }

  // Lanes pass where the predicate is `passes`: so they do where what it is made of is.
  void trace(int predicate, bool passes) {
    const auto found = definitions_.find(predicate);
    if (found == definitions_.end()) return;
    for (const std::size_t place : found->second) {
      if (!paths_.is_reached(place) || !traced_.insert({place, passes}).second) continue;
      const Instruction& made = kernel_.code[place];
      if (made.opcode == "and.pred" || made.opcode == "or.pred") {
        trace(made.operands[1], passes);
        trace(made.operands[2], passes);
      } else if (made.opcode == "not.pred") {
        trace(made.operands[1], !passes);
      } else if (made.opcode == "mov.pred") {
        trace(made.operands[1], passes);
      } else if (orders_integers(made) && has_varying_operand(made) && !counts_rounds(made) &&
                 !paths_.choices().contains(made.operands[0])) {
        found_[place].insert(passes);
      }
    }
  }

  const Kernel& kernel_;
  const CodePaths& paths_;
  std::vector<bool> varies_;                             // by register
  std::map<int, std::uint64_t> numbers_;                 // by the register that holds one
  std::map<int, std::vector<std::size_t>> definitions_;  // of predicates, and of what they choose
  std::set<std::pair<int, int>> loops_;                  // files and lines
  std::set<std::pair<std::size_t, bool>> traced_;
  std::map<std::size_t, std::set<bool>> found_;
};

}  // namespace

std::size_t results_of(const Instruction& instruction) {
  const std::string_view opcode = instruction.opcode;
  if (begins_with_any(opcode,
                      {"st.", "red.", "bar.sync", "bar.warp", "bra", "ret", "exit", "cp.async"})) {
    return 0;
  }
  std::size_t results = 1;
  if (opcode.starts_with("ld.")) results = instruction.count;
  if (opcode.starts_with("shfl.")) results = 2;
  if (opcode.starts_with("mma.")) results = 4;
  if (opcode.starts_with("ldmatrix.")) {
    if (opcode.find(".x2.") != std::string_view::npos) results = 2;
    if (opcode.find(".x4.") != std::string_view::npos) results = 4;
  }
  if (opcode.starts_with("unpack.")) results = instruction.operands.size() - 1;
  return std::min(results, instruction.operands.size());
}

std::vector<BoundCheck> bound_checks_of(const Kernel& kernel, const CodePaths& paths) {
  return BoundChecks(kernel, paths).find();
}

}  // namespace trainscope::ptx
