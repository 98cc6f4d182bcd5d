// Loads, stores and atomics.
#include <algorithm>
#include <cstring>

#include "tests/cuda/interpreter/lanewise.h"
#include "tests/cuda/interpreter/machine.h"

namespace trainscope::ptx {
namespace {

Lanes addresses_of(Warp& warp, const Instruction& instruction, std::size_t base, unsigned mask) {
  Lanes addresses = warp.operand(instruction, base);
  const auto offset = static_cast<std::uint64_t>(instruction.offset);
  for_lanes(mask, [&](unsigned lane) { addresses.words[lane] += offset; });
  return addresses;
}

std::uint64_t read_element(const std::byte* from, const Instruction& instruction) {
  std::uint64_t word = 0;
  std::memcpy(&word, from, instruction.bytes);
  const unsigned unused = 64 - 8 * instruction.bytes;
  // A signed number fills its register by its sign.
  if (instruction.is_signed) {
    word = static_cast<std::uint64_t>(static_cast<std::int64_t>(word << unused) >> unused);
  }
  return word;
}

void run_load(Warp& warp, const Instruction& instruction, unsigned mask) {
  const Lanes addresses = addresses_of(warp, instruction, instruction.count, mask);
  Machine& machine = warp.machine();
  machine.count(instruction.access(), addresses, mask, Use::kRead);
  for_lanes(mask, [&](unsigned lane) {
    const std::byte* from = machine.use(warp, lane, instruction, instruction.access(),
                                        addresses.words[lane], Use::kRead);
    for (unsigned i = 0; i < instruction.count; ++i) {
      if (instruction.operands[i] == Instruction::kNone) continue;
      warp.operand(instruction, i).words[lane] =
          read_element(from + std::size_t{i} * instruction.bytes, instruction);
    }
  });
}

void run_store(Warp& warp, const Instruction& instruction, unsigned mask) {
  const Lanes addresses = addresses_of(warp, instruction, 0, mask);
  Machine& machine = warp.machine();
  machine.count(instruction.access(), addresses, mask, Use::kWrite);
  for_lanes(mask, [&](unsigned lane) {
    std::byte* to = machine.use(warp, lane, instruction, instruction.access(),
                                addresses.words[lane], Use::kWrite);
    for (unsigned i = 0; i < instruction.count; ++i) {
      std::memcpy(to + std::size_t{i} * instruction.bytes,
                  &warp.operand(instruction, i + 1).words[lane], instruction.bytes);
    }
  });
}

// The element becomes F(element, operand); without a result where kReturns does not hold.
template <typename F, typename T, bool kReturns>
void run_atomic(Warp& warp, const Instruction& instruction, unsigned mask) {
  constexpr std::size_t kBase = kReturns ? 1 : 0;
  const Lanes addresses = addresses_of(warp, instruction, kBase, mask);
  const Lanes operands = warp.operand(instruction, kBase + 1);
  Machine& machine = warp.machine();
  machine.count(instruction.access(), addresses, mask, Use::kAtomic);
  for_lanes(mask, [&](unsigned lane) {
    std::byte* at = machine.use(warp, lane, instruction, instruction.access(),
                                addresses.words[lane], Use::kAtomic);
    T value{};
    std::memcpy(&value, at, sizeof value);
    if constexpr (kReturns) warp.operand(instruction, 0).words[lane] = to_word(value);
    value = F()(value, from_word<T>(operands.words[lane]));
    std::memcpy(at, &value, sizeof value);
  });
}

struct AtomicAdd {
  template <typename T>
  T operator()(T a, T b) const {
    return static_cast<T>(a + b);
  }
};
struct AtomicOr {
  template <typename T>
  T operator()(T a, T b) const {
    return static_cast<T>(a | b);
  }
};
struct AtomicLeast {
  template <typename T>
  T operator()(T a, T b) const {
    return std::min(a, b);
  }
};
struct AtomicLargest {
  template <typename T>
  T operator()(T a, T b) const {
    return std::max(a, b);
  }
};

// The words between the dots of an opcode.
class Suffixes {
 public:
  explicit Suffixes(std::string_view name) : rest_(name) {}
  std::string_view next() {
    const std::size_t dot = std::min(rest_.find('.'), rest_.size());
    const std::string_view word = rest_.substr(0, dot);
    rest_.remove_prefix(std::min(dot + 1, rest_.size()));
    return word;
  }

 private:
  std::string_view rest_;
};

std::optional<Space> space_of(std::string_view word) {
  if (word == "global" || word == "const") return Space::kGlobal;
  if (word == "shared") return Space::kShared;
  if (word == "local") return Space::kLocal;
  if (word == "param") return Space::kParameter;
  return std::nullopt;
}

// "u32" and the like.
bool read_type(std::string_view word, MemoryOpcode& opcode) {
  if (word.size() < 2 || std::string_view("bsuf").find(word[0]) == std::string_view::npos) {
    return false;
  }
  unsigned bits = 0;
  for (const char digit : word.substr(1)) {
    if (digit < '0' || digit > '9') return false;
    bits = 10 * bits + static_cast<unsigned>(digit - '0');
  }
  opcode.is_signed = word[0] == 's';
  opcode.bytes = bits / 8;
  return true;
}

template <typename F, bool kReturns>
Run atomic_of(std::string_view type) {
  if (type == "u32" || type == "b32") return run_atomic<F, std::uint32_t, kReturns>;
  if (type == "s32") return run_atomic<F, std::int32_t, kReturns>;
  if (type == "u64" || type == "b64") return run_atomic<F, std::uint64_t, kReturns>;
  if (type == "s64") return run_atomic<F, std::int64_t, kReturns>;
  return nullptr;
}

template <bool kReturns>
Run atomic_of(std::string_view function, std::string_view type) {
  if (function == "add") return atomic_of<AtomicAdd, kReturns>(type);
  if (function == "or") return atomic_of<AtomicOr, kReturns>(type);
  if (function == "min") return atomic_of<AtomicLeast, kReturns>(type);
  if (function == "max") return atomic_of<AtomicLargest, kReturns>(type);
  return nullptr;
}

}  // namespace

std::optional<MemoryOpcode> find_memory_opcode(std::string_view name) {
  Suffixes suffixes(name);
  const std::string_view kind = suffixes.next();
  const bool atomic = kind == "atom" || kind == "red";
  if (kind != "ld" && kind != "st" && !atomic) return std::nullopt;
  MemoryOpcode opcode{.run = kind == "ld" ? run_load : run_store};
  std::string_view function;
  for (std::string_view word = suffixes.next(); !word.empty(); word = suffixes.next()) {
    if (const auto space = space_of(word)) {
      opcode.space = *space;
    } else if (word == "v2" || word == "v4") {
      opcode.count = word == "v2" ? 2 : 4;
    } else if (read_type(word, opcode)) {
      if (kind == "atom") opcode.run = atomic_of<true>(function, word);
      if (kind == "red") opcode.run = atomic_of<false>(function, word);
    } else if (atomic && (word == "add" || word == "or" || word == "min" || word == "max")) {
      function = word;
    } else if (word != "nc" && word != "relaxed" && word != "gpu" && word != "volatile") {
      return std::nullopt;
    }
  }
  if (opcode.run == nullptr || opcode.bytes == 0) return std::nullopt;
  return opcode;
}

}  // namespace trainscope::ptx
