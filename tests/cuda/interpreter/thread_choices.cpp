// Computes, for each warp of a block, what depends on nothing else.
#include "tests/cuda/interpreter/thread_choices.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <set>
#include <string_view>
#include <vector>

#include "tests/cuda/interpreter/machine.h"
#include "tests/cuda/interpreter/warp.h"

namespace trainscope::ptx {
namespace {

constexpr std::array<std::string_view, 18> kComputing{
    "setp.", "selp.", "mov.", "cvt.", "add.", "sub.", "mul.", "mad.", "min.",
    "max.",  "shl.",  "shr.", "and.", "or.",  "xor.", "not.", "neg.", "rem."};

bool computes(const Instruction& instruction) {
  return instruction.guard == Instruction::kNone && instruction.flow == Flow::kNext &&
         std::ranges::any_of(kComputing, [&](std::string_view opcode) {
           return instruction.opcode.starts_with(opcode);
         });
}

// Registers that hold one number for a thread, as its number says, and the instructions that
// compute them, in their order. A register that is written in several places holds it from there
// to where lanes may come from elsewhere.
class OfThreads {
 public:
  explicit OfThreads(const Kernel& kernel)
      : kernel_(kernel),
        definitions_(static_cast<std::size_t>(kernel.registers), 0),
        known_(static_cast<std::size_t>(kernel.registers), false) {
    std::set<std::size_t> targets;
    for (const Instruction& instruction : kernel.code) {
      for_results(instruction, [&](std::size_t number) { ++definitions_[number]; });
      if (instruction.flow == Flow::kBranch) targets.insert(index(instruction.target));
    }
    for (const Kernel::Constant& each : kernel.constants) known_[index(each.number)] = true;
    for (const Kernel::Special& each : kernel.specials) {
      known_[index(each.number)] = each.which == SpecialRegister::kThreadX;
    }
    for (std::size_t place = 0; place < kernel.code.size(); ++place) {
      if (targets.contains(place)) forget_rewritten();
      follow(kernel.code[place]);
    }
  }

  std::map<int, bool> choices() {
    std::map<int, std::set<bool>> values;
    Machine machine;
    Warp warp;
    warp.prepare(machine, kernel_, 0);
    for (unsigned first = 0; first < kernel_.most_threads; first += kLanes) {
      for (const Kernel::Special& each : kernel_.specials) {
        for (unsigned lane = 0; lane < kLanes; ++lane) {
          warp.at(each.number).words[lane] = first + lane;
        }
      }
      const unsigned lanes = std::min(kLanes, kernel_.most_threads - first);
      const auto mask = static_cast<unsigned>((std::uint64_t{1} << lanes) - 1);
      for (const Instruction* instruction : computed_) {
        instruction->run(warp, *instruction, mask);
        const bool is_choice =
            instruction->opcode.starts_with("setp.") || instruction->opcode.ends_with(".pred");
        if (!is_choice) continue;
        const int number = instruction->operands[0];
        if (definitions_[index(number)] > 1) continue;
        for_lanes(mask,
                  [&](unsigned lane) { values[number].insert(warp.at(number).words[lane] != 0); });
      }
    }
    std::map<int, bool> alike;
    for (const auto& [number, all] : values) {
      if (all.size() == 1) alike[number] = *all.begin();
    }
    return alike;
  }

 private:
  static std::size_t index(int number) { return static_cast<std::size_t>(number); }
  template <typename F>
  static void for_results(const Instruction& instruction, F f) {
    for (std::size_t i = 0; i < results_of(instruction); ++i) {
      if (instruction.operands[i] != Instruction::kNone) f(index(instruction.operands[i]));
    }
  }

  void follow(const Instruction& instruction) {
    const bool is_known =
        computes(instruction) && results_of(instruction) == 1 &&
        std::all_of(instruction.operands.begin() + 1, instruction.operands.end(), [&](int number) {
          return number != Instruction::kNone && known_[index(number)];
        });
    for_results(instruction, [&](std::size_t number) {
      known_[number] = is_known;
      if (definitions_[number] > 1) rewritten_.insert(number);
    });
    if (is_known) computed_.push_back(&instruction);
  }
  void forget_rewritten() {
    for (const std::size_t number : rewritten_) known_[number] = false;
  }

  const Kernel& kernel_;
  std::vector<int> definitions_;  // by register, how many instructions write it
  std::vector<bool> known_;
  std::set<std::size_t> rewritten_;  // registers that are written in several places
  std::vector<const Instruction*> computed_;
};

}  // namespace

std::map<int, bool> choices_of_threads(const Kernel& kernel) { return OfThreads(kernel).choices(); }

}  // namespace trainscope::ptx
