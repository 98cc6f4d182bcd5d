// Ways through a kernel's code, found by walking along its branches.
#include "tests/cuda/interpreter/code_paths.h"

#include <string_view>

#include "tests/cuda/interpreter/thread_choices.h"

namespace trainscope::ptx {

void MemoryUse::add(const MemoryUse& other) {
  reads_shared = reads_shared || other.reads_shared;
  writes_shared = writes_shared || other.writes_shared;
  reads_global = reads_global || other.reads_global;
  writes_global = writes_global || other.writes_global;
}

// Copies that nobody waits for write until they are waited for.
MemoryUse memory_use_of(const Instruction& instruction) {
  const std::string_view opcode = instruction.opcode;
  if (opcode.starts_with("cp.async.cg.") || opcode.starts_with("cp.async.ca.")) {
    return {.writes_shared = true, .reads_global = true};
  }
  if (opcode.starts_with("cp.async.wait")) return {.writes_shared = true};
  if (opcode.starts_with("ldmatrix.")) return {.reads_shared = true};
  if (instruction.bytes == 0) return {};
  const bool reads = !opcode.starts_with("st.");
  const bool writes = !opcode.starts_with("ld.");
  const bool anywhere = instruction.space == Space::kGeneric;
  const bool shared = anywhere || instruction.space == Space::kShared;
  const bool global = anywhere || instruction.space == Space::kGlobal;
  return {.reads_shared = shared && reads,
          .writes_shared = shared && writes,
          .reads_global = global && reads,
          .writes_global = global && writes};
}

bool conflicts(const MemoryUse& one, const MemoryUse& other) {
  const auto clash = [](bool reads, bool writes, bool other_reads, bool other_writes) {
    return (writes && (other_reads || other_writes)) || (reads && other_writes);
  };
  return clash(one.reads_shared, one.writes_shared, other.reads_shared, other.writes_shared) ||
         clash(one.reads_global, one.writes_global, other.reads_global, other.writes_global);
}

CodePaths::CodePaths(const Kernel& kernel)
    : code_(kernel.code),
      choices_(choices_of_threads(kernel)),
      uses_(kernel.code.size()),
      followers_(kernel.code.size()),
      leaders_(kernel.code.size()) {
  for (std::size_t place = 0; place < code_.size(); ++place) {
    const Instruction& instruction = code_[place];
    uses_[place] = memory_use_of(instruction);
    const bool leaves = instruction.flow == Flow::kBranch || instruction.flow == Flow::kExit;
    const auto choice = choices_.find(instruction.guard);
    const bool is_chosen = choice != choices_.end();
    const bool always = instruction.guard == Instruction::kNone ||
                        (is_chosen && choice->second != instruction.guard_negated);
    const bool never = is_chosen && !always;
    Followers& followers = followers_[place];
    if ((!leaves || !always) && place + 1 < code_.size()) followers.next = place + 1;
    if (instruction.flow == Flow::kBranch && !never) {
      followers.taken = static_cast<std::size_t>(instruction.target);
    }
    for (const std::size_t follower : {followers.next, followers.taken}) {
      if (follower < code_.size()) leaders_[follower].push_back(place);
    }
  }
  reached_ = reached_without(kNowhere, Way::kNext);
}

std::vector<bool> CodePaths::reached_without(std::size_t branch, Way way) const {
  std::vector<bool> reached(code_.size(), false);
  std::vector<std::size_t> open{0};
  while (!open.empty()) {
    const std::size_t place = open.back();
    open.pop_back();
    if (place >= code_.size() || reached[place]) continue;
    reached[place] = true;
    const Followers& followers = followers_[place];
    if (place != branch || way != Way::kNext) open.push_back(followers.next);
    if (place != branch || way != Way::kTaken) open.push_back(followers.taken);
  }
  return reached;
}

MemoryUse CodePaths::only_behind(std::size_t branch, Way way) const {
  const std::vector<bool> without = reached_without(branch, way);
  MemoryUse use;
  for (std::size_t place = 0; place < code_.size(); ++place) {
    if (reached_[place] && !without[place]) use.add(uses_[place]);
  }
  return use;
}

MemoryUse CodePaths::before(std::size_t barrier) const { return near(barrier, false); }
MemoryUse CodePaths::behind(std::size_t barrier) const { return near(barrier, true); }

// Barriers of the block order a warp's lanes, too; those of a warp nothing between warps.
MemoryUse CodePaths::near(std::size_t barrier, bool forward) const {
  const bool of_block = code_[barrier].flow == Flow::kBarrier;
  std::vector<bool> seen(code_.size(), false);
  std::vector<std::size_t> open;
  const auto go_on = [&](std::size_t place) {
    if (forward) {
      open.push_back(followers_[place].next);
      open.push_back(followers_[place].taken);
    } else {
      open.insert(open.end(), leaders_[place].begin(), leaders_[place].end());
    }
  };
  MemoryUse use;
  go_on(barrier);
  while (!open.empty()) {
    const std::size_t place = open.back();
    open.pop_back();
    if (place >= code_.size() || seen[place] || !reached_[place]) continue;
    seen[place] = true;
    const Instruction& instruction = code_[place];
    const bool is_block_barrier = instruction.flow == Flow::kBarrier;
    if (is_block_barrier || (!of_block && instruction.orders_memory)) continue;
    use.add(uses_[place]);
    go_on(place);
  }
  return use;
}

}  // namespace trainscope::ptx
