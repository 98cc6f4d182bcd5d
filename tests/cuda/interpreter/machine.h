// Runs kernels of PTX text on the host, block by block and warp by warp, and counts what they do.
//
// It is stricter than a GPU: a kernel may use only the memory that was given for it, threads that
// miss a barrier or a meeting of lanes end the run, and two threads that use a byte of shared
// memory with no barrier between them are reported.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "tests/cuda/interpreter/counters.h"
#include "tests/cuda/interpreter/global_memory.h"
#include "tests/cuda/interpreter/module.h"
#include "tests/cuda/interpreter/shared_memory.h"
#include "tests/cuda/interpreter/warp.h"

namespace trainscope::ptx {

// What a kernel did that no kernel may do: names the kernel, the line of the text and of the
// source, block and thread.
struct Fault : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Size3 {
  unsigned x = 1;
  unsigned y = 1;
  unsigned z = 1;

  std::uint64_t count() const { return std::uint64_t{x} * y * z; }
};

struct Launch {
  Size3 blocks;
  Size3 threads;
  std::size_t shared_bytes = 0;          // besides the kernel's own
  std::span<const std::byte> arguments;  // as the kernel's parameters lie
};

class Machine {
 public:
  GlobalMemory& memory() { return memory_; }
  Counters& counters() { return counters_; }
  // Races in shared memory, one text for each instruction that has some.
  const std::set<std::string>& races() const { return races_; }
  void forget_races() { races_.clear(); }
  // From now on a launch that takes more instructions of lanes than this ends with a fault.
  void limit_launches(std::int64_t instructions) { most_instructions_ = instructions; }

  // Throws Fault.
  void run(Module& module, std::string_view kernel, const Launch& launch);

  // --- Called by instructions --------------------------------------------------------------------
  // Bytes behind an address, which a lane uses.
  std::byte* use(Warp& warp, unsigned lane, const Instruction& instruction, const Access& access,
                 std::uint64_t address, Use use);
  // Counts such uses by the lanes of the mask.
  void count(const Access& access, const Lanes& addresses, unsigned mask, Use use);
  bool is_past_limit() const { return counters_.instructions > last_instruction_; }
  struct BlockVotes {
    std::uint64_t given = 0;
    std::uint64_t threads = 0;
  };
  BlockVotes votes() const { return votes_; }  // at the barrier that the block leaves
  [[noreturn]] void fail(const Warp& warp, unsigned lane, const Instruction& instruction,
                         const std::string& what) const;

 private:
  void run_block(std::uint64_t block);
  void pass_barrier();
  std::uint64_t special(SpecialRegister which, std::uint64_t thread) const;
  std::byte* use_shared(Warp& warp, unsigned lane, const Instruction& instruction, unsigned bytes,
                        std::uint64_t address, Use use);
  void count_sectors(unsigned bytes, const Lanes& addresses, unsigned mask);
  void count_wavefronts(unsigned bytes, const Lanes& addresses, unsigned mask);

  GlobalMemory memory_;
  Counters counters_;
  std::set<std::string> races_;
  std::int64_t most_instructions_ = std::numeric_limits<std::int64_t>::max();

  // Of the launch and the block that run.
  Module* module_ = nullptr;
  const Kernel* kernel_ = nullptr;
  const Launch* launch_ = nullptr;
  std::int64_t last_instruction_ = 0;  // of the limit, as counters count
  Size3 block_;
  std::vector<Warp> warps_;
  SharedMemory shared_;
  std::vector<std::byte> local_;  // of all threads
  BlockVotes votes_;
  std::uint32_t epoch_ = 0;
};

}  // namespace trainscope::ptx
