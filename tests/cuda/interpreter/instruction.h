// A parsed kernel: instructions whose operands are all registers. What a text writes as a constant,
// a special register or the address of a variable is a register of its own, filled when a warp
// begins.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace trainscope::ptx {

inline constexpr unsigned kLanes = 32;

// One register of all lanes of a warp. Types narrower than 64 bits lie in the low bits.
struct Lanes {
  std::array<std::uint64_t, kLanes> words = {};
};

class Warp;
struct Instruction;

// Does the instruction for the lanes of the mask.
using Run = void (*)(Warp& warp, const Instruction& instruction, unsigned mask);

enum class Space : std::uint8_t { kGeneric, kGlobal, kShared, kLocal, kParameter };

// What a lane uses of memory: so many bytes from an address of the space.
struct Access {
  Space space = Space::kGeneric;
  unsigned bytes = 0;
};

// How lanes go on behind an instruction.
enum class Flow : std::uint8_t {
  kNext,
  kBranch,
  kExit,
  kLanesMeet,  // the lanes of a mask wait for each other
  kBarrier,    // all threads of the block do
};

struct Instruction {
  static constexpr int kNone = -1;  // an operand that is left out

  Run run = nullptr;
  std::string opcode = {};  // with its suffixes, as the text spells it
  Flow flow = Flow::kNext;
  int guard = kNone;  // predicate; lanes where it does not hold skip the instruction
  bool guard_negated = false;
  bool orders_memory = false;      // of lanes or threads that meet
  int target = 0;                  // of a branch
  std::vector<int> operands = {};  // registers, results first

  // Of an instruction that reads or writes memory: `count` elements from the address on.
  Space space = Space::kGeneric;
  bool is_signed = false;
  unsigned bytes = 0;
  unsigned count = 1;
  std::int64_t offset = 0;
  Access access() const { return {.space = space, .bytes = bytes * count}; }

  int line = 0;         // of the PTX text
  int source_file = 0;  // as the text numbers them
  int source_line = 0;
  int inlined_line = 0;  // where the function of that line was inlined; 0: it was not
};

// How many of the operands are results.
std::size_t results_of(const Instruction& instruction);

enum class SpecialRegister : std::uint8_t {
  kThreadX,
  kThreadY,
  kThreadZ,
  kThreadsX,
  kThreadsY,
  kThreadsZ,
  kBlockX,
  kBlockY,
  kBlockZ,
  kBlocksX,
  kBlocksY,
  kBlocksZ,
  kLane,
};

struct Parameter {
  std::size_t offset = 0;
  std::size_t bytes = 0;
};

struct Kernel {
  struct Constant {
    int number = 0;  // of the register
    std::uint64_t value = 0;
  };
  struct Special {
    int number = 0;
    SpecialRegister which = SpecialRegister::kThreadX;
  };

  std::string name;
  std::vector<Parameter> parameters;
  std::size_t parameter_bytes = 0;
  std::size_t shared_bytes = 0;  // without what a launch asks for, which follows
  std::size_t local_bytes = 0;
  unsigned most_threads = 1024;  // of a block
  std::vector<Instruction> code;
  int registers = 0;
  std::vector<Constant> constants;
  std::vector<Special> specials;
};

// Addresses of one space in the space of all: other bits than any address of the host has.
inline constexpr std::uint64_t kSharedWindow = std::uint64_t{1} << 60;
inline constexpr std::uint64_t kLocalWindow = std::uint64_t{1} << 61;

}  // namespace trainscope::ptx
