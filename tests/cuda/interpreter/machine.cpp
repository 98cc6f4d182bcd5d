// Blocks, barriers, what memory may be used and what is counted.
#include "tests/cuda/interpreter/machine.h"

#include <algorithm>
#include <bit>

namespace trainscope::ptx {
namespace {

constexpr std::uint64_t kSectorBytes = 32;
constexpr unsigned kBanks = 32;
constexpr unsigned kBankBytes = 4;

std::string text_of(const Size3& size) {
  return std::to_string(size.x) + "," + std::to_string(size.y) + "," + std::to_string(size.z);
}

Size3 place_in(const Size3& sizes, std::uint64_t number) {
  return {.x = static_cast<unsigned>(number % sizes.x),
          .y = static_cast<unsigned>(number / sizes.x % sizes.y),
          .z = static_cast<unsigned>(number / sizes.x / sizes.y)};
}

std::string hexadecimal(std::uint64_t number) {
  std::string digits;
  for (; number != 0; number >>= 4) digits.insert(digits.begin(), "0123456789abcdef"[number & 15]);
  return "0x" + digits;
}

}  // namespace

void Machine::run(Module& module, std::string_view kernel, const Launch& launch) {
  module_ = &module;
  kernel_ = &module.kernel(kernel);
  launch_ = &launch;
  constexpr std::int64_t kAny = std::numeric_limits<std::int64_t>::max();
  const bool is_limited = most_instructions_ < kAny - counters_.instructions;
  last_instruction_ = is_limited ? counters_.instructions + most_instructions_ : kAny;
  if (launch.arguments.size() != kernel_->parameter_bytes) {
    throw Fault(kernel_->name + " takes " + std::to_string(kernel_->parameter_bytes) +
                " bytes of arguments, not " + std::to_string(launch.arguments.size()));
  }
  warps_.resize((launch.threads.count() + kLanes - 1) / kLanes);
  for (unsigned i = 0; i < warps_.size(); ++i) warps_[i].prepare(*this, *kernel_, i);
  local_.resize(kernel_->local_bytes * launch.threads.count());
  for (std::uint64_t block = 0; block < launch.blocks.count(); ++block) run_block(block);
}

void Machine::run_block(std::uint64_t block) {
  const std::uint64_t threads = launch_->threads.count();
  block_ = place_in(launch_->blocks, block);
  ++epoch_;
  shared_.begin_block(kernel_->shared_bytes + launch_->shared_bytes);
  std::ranges::fill(local_, std::byte{0xFF});
  for (unsigned i = 0; i < warps_.size(); ++i) {
    const std::uint64_t first = std::uint64_t{i} * kLanes;
    const std::uint64_t lanes = std::min<std::uint64_t>(kLanes, threads - first);
    warps_[i].begin(static_cast<unsigned>((std::uint64_t{1} << lanes) - 1));
    for (const Kernel::Special& each : kernel_->specials) {
      Lanes& values = warps_[i].at(each.number);
      for (unsigned lane = 0; lane < kLanes; ++lane) {
        values.words[lane] = special(each.which, first + lane);
      }
    }
  }
  while (true) {
    for (Warp& warp : warps_) warp.run();
    if (std::ranges::all_of(warps_, [](const Warp& warp) { return warp.live() == 0; })) return;
    pass_barrier();
  }
}

std::uint64_t Machine::special(SpecialRegister which, std::uint64_t thread) const {
  const Size3 place = place_in(launch_->threads, thread);
  switch (which) {
    case SpecialRegister::kThreadX:
      return place.x;
    case SpecialRegister::kThreadY:
      return place.y;
    case SpecialRegister::kThreadZ:
      return place.z;
    case SpecialRegister::kThreadsX:
      return launch_->threads.x;
    case SpecialRegister::kThreadsY:
      return launch_->threads.y;
    case SpecialRegister::kThreadsZ:
      return launch_->threads.z;
    case SpecialRegister::kBlockX:
      return block_.x;
    case SpecialRegister::kBlockY:
      return block_.y;
    case SpecialRegister::kBlockZ:
      return block_.z;
    case SpecialRegister::kBlocksX:
      return launch_->blocks.x;
    case SpecialRegister::kBlocksY:
      return launch_->blocks.y;
    case SpecialRegister::kBlocksZ:
      return launch_->blocks.z;
    case SpecialRegister::kLane:
      return thread % kLanes;
  }
  return 0;
}

// All threads wait: at one barrier, or the run ends here.
void Machine::pass_barrier() {
  const auto waiting =
      std::ranges::find_if(warps_, [](const Warp& warp) { return warp.at_barrier() != 0; });
  const auto at = static_cast<unsigned>(std::countr_zero(waiting->at_barrier()));
  const Instruction* barrier = &waiting->instruction_of(at);
  votes_ = {};
  for (Warp& warp : warps_) {
    votes_.threads += static_cast<std::uint64_t>(std::popcount(warp.at_barrier()));
    for_lanes(warp.at_barrier(), [&](unsigned lane) {
      if (&warp.instruction_of(lane) != barrier) {
        fail(warp, lane, warp.instruction_of(lane),
             "threads of a block meet at different barriers");
      }
      votes_.given += warp.operand(*barrier, barrier->operands.size() - 1).words[lane] & 1;
    });
  }
  if (votes_.threads != launch_->threads.count()) {
    fail(*waiting, at, *barrier, "a barrier is not reached by every thread of the block");
  }
  ++counters_.barriers;
  if (barrier->orders_memory) ++epoch_;
  for (Warp& warp : warps_) {
    if (warp.at_barrier() != 0) barrier->run(warp, *barrier, warp.at_barrier());
    warp.leave_barrier();
  }
}

void Machine::fail(const Warp& warp, unsigned lane, const Instruction& instruction,
                   const std::string& what) const {
  const Size3 thread = place_in(launch_->threads, std::uint64_t{warp.index()} * kLanes + lane);
  throw Fault(kernel_->name + ", " + module_->name() + ":" + std::to_string(instruction.line) +
              " (" + module_->source_place(instruction) + "), block " + text_of(block_) +
              ", thread " + text_of(thread) + ": " + what);
}

std::byte* Machine::use(Warp& warp, unsigned lane, const Instruction& instruction,
                        const Access& access, std::uint64_t address, Use use) {
  const unsigned bytes = access.bytes;
  if (address % bytes != 0) {
    fail(warp, lane, instruction, "address " + hexadecimal(address) + " is not aligned");
  }
  const bool generic = access.space == Space::kGeneric;
  if (access.space == Space::kShared) {
    return use_shared(warp, lane, instruction, bytes, address & 0xFFFFFFFFU, use);
  }
  if (generic && (address & kSharedWindow) != 0) {
    return use_shared(warp, lane, instruction, bytes, address - kSharedWindow, use);
  }
  if (access.space == Space::kLocal || (generic && (address & kLocalWindow) != 0)) {
    const std::uint64_t offset = address - kLocalWindow;
    if (offset + bytes > kernel_->local_bytes) {
      fail(warp, lane, instruction, "byte " + std::to_string(offset) + " is beyond the stack");
    }
    return local_.data() + (std::size_t{warp.index()} * kLanes + lane) * kernel_->local_bytes +
           offset;
  }
  if (access.space == Space::kParameter) {
    if (address + bytes > launch_->arguments.size()) {
      fail(warp, lane, instruction, "an argument that there is not");
    }
    return const_cast<std::byte*>(launch_->arguments.data()) + address;
  }
  if (!memory_.allows(address, bytes) && !module_->holds(address, bytes)) {
    fail(warp, lane, instruction,
         "address " + hexadecimal(address) + " is outside of the memory that was given");
  }
  return reinterpret_cast<std::byte*>(address);
}

std::byte* Machine::use_shared(Warp& warp, unsigned lane, const Instruction& instruction,
                               unsigned bytes, std::uint64_t address, Use use) {
  if (address + bytes > shared_.size()) {
    fail(warp, lane, instruction,
         "byte " + std::to_string(address) + " is beyond the shared memory");
  }
  if (!shared_.use(address, bytes, warp.user(lane, epoch_), use)) {
    races_.insert(kernel_->name + ", " + module_->name() + ":" + std::to_string(instruction.line) +
                  " (" + module_->source_place(instruction) + ")");
  }
  return shared_.at(address);
}

void Machine::count(const Access& access, const Lanes& addresses, unsigned mask, Use use) {
  const std::int64_t bytes = std::int64_t{access.bytes} * std::popcount(mask);
  const std::int64_t read = use == Use::kWrite ? 0 : bytes;
  const std::int64_t written = use == Use::kRead ? 0 : bytes;
  const std::uint64_t first = addresses.words[static_cast<unsigned>(std::countr_zero(mask))];
  const bool generic = access.space == Space::kGeneric;
  if (access.space == Space::kShared || (generic && (first & kSharedWindow) != 0)) {
    counters_.shared_bytes_read += read;
    counters_.shared_bytes_written += written;
    count_wavefronts(access.bytes, addresses, mask);
  } else if (access.space == Space::kGlobal || (generic && (first & kLocalWindow) == 0)) {
    counters_.bytes_read += read;
    counters_.bytes_written += written;
    count_sectors(access.bytes, addresses, mask);
  }
}

void Machine::count_sectors(unsigned bytes, const Lanes& addresses, unsigned mask) {
  std::array<std::uint64_t, kLanes> sectors = {};
  std::size_t touched = 0;
  for_lanes(mask, [&](unsigned lane) {
    // Aligned and at most 16 bytes: within one sector.
    const std::uint64_t sector = addresses.words[lane] / kSectorBytes;
    if (touched == 0 || sectors[touched - 1] != sector) sectors[touched++] = sector;
  });
  std::sort(sectors.begin(), sectors.begin() + static_cast<std::ptrdiff_t>(touched));
  const auto end =
      std::unique(sectors.begin(), sectors.begin() + static_cast<std::ptrdiff_t>(touched));
  counters_.sectors += end - sectors.begin();
  const std::uint64_t asked =
      std::uint64_t{bytes} * static_cast<std::uint64_t>(std::popcount(mask));
  counters_.least_sectors += static_cast<std::int64_t>((asked + kSectorBytes - 1) / kSectorBytes);
}

// As many lanes at a time as ask for 128 bytes; each bank gives one word a time.
void Machine::count_wavefronts(unsigned bytes, const Lanes& addresses, unsigned mask) {
  const unsigned group = kBanks * kBankBytes / std::max(kBankBytes, bytes);
  for (unsigned from = 0; from < kLanes; from += group) {
    const unsigned lanes = mask & static_cast<unsigned>(((std::uint64_t{1} << group) - 1) << from);
    if (lanes == 0) continue;
    std::array<std::uint64_t, kLanes> words = {};
    std::size_t asked = 0;
    for_lanes(lanes, [&](unsigned lane) {
      for (unsigned at = 0; at < std::max(1U, bytes / kBankBytes); ++at) {
        words[asked++] = (addresses.words[lane] & 0xFFFFFFFFU) / kBankBytes + at;
      }
    });
    const auto end = words.begin() + static_cast<std::ptrdiff_t>(asked);
    std::sort(words.begin(), end);
    std::array<unsigned, kBanks> of_bank = {};
    std::for_each(words.begin(), std::unique(words.begin(), end),
                  [&](std::uint64_t word) { ++of_bank[word % kBanks]; });
    counters_.wavefronts += *std::ranges::max_element(of_bank);
    ++counters_.least_wavefronts;
  }
}

}  // namespace trainscope::ptx
