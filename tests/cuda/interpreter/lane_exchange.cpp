// Shuffles and votes among the lanes of a warp, and barriers.
#include <bit>
#include <cstdint>

#include "tests/cuda/interpreter/lanewise.h"
#include "tests/cuda/interpreter/machine.h"

namespace trainscope::ptx {
namespace {

enum class Shuffle : std::uint8_t { kIndex, kUp, kDown, kButterfly };

// operand 0 = operand 2 of another lane, operand 1 whether that is in the same segment of the warp;
// operand 4 holds the segments' size as PTX codes it, operand 5 the lanes.
template <Shuffle kShuffle>
void run_shuffle(Warp& warp, const Instruction& instruction, unsigned mask) {
  const Lanes values = warp.operand(instruction, 2);
  const Lanes by = warp.operand(instruction, 3);
  const Lanes clamps = warp.operand(instruction, 4);
  Lanes& to = warp.operand(instruction, 0);
  for_lanes(mask, [&](unsigned lane) {
    const auto offset = static_cast<unsigned>(by.words[lane]) & (kLanes - 1);
    const auto clamp = static_cast<unsigned>(clamps.words[lane]) & (kLanes - 1);
    const auto segment = static_cast<unsigned>(clamps.words[lane] >> 8) & (kLanes - 1);
    const unsigned last = (lane & segment) | (clamp & ~segment);
    const unsigned first = lane & segment;
    unsigned source = lane;
    bool inside = true;
    switch (kShuffle) {
      case Shuffle::kUp:
        inside = static_cast<int>(lane) - static_cast<int>(offset) >= static_cast<int>(last);
        source = lane - offset;
        break;
      case Shuffle::kDown:
        source = lane + offset;
        inside = source <= last;
        break;
      case Shuffle::kButterfly:
        source = lane ^ offset;
        inside = source <= last;
        break;
      case Shuffle::kIndex:
        source = first | (offset & ~segment);
        inside = source <= last;
        break;
    }
    if (!inside) source = lane;
    if ((mask >> source & 1U) == 0) {
      warp.machine().fail(warp, lane, instruction,
                          "a shuffle reads a lane that its mask leaves out");
    }
    to.words[lane] = static_cast<std::uint32_t>(values.words[source]);
    if (instruction.operands[1] != Instruction::kNone) {
      warp.operand(instruction, 1).words[lane] = inside ? 1 : 0;
    }
  });
}

enum class Vote : std::uint8_t { kBallot, kAny, kAll };

template <Vote kVote>
void run_vote(Warp& warp, const Instruction& instruction, unsigned mask) {
  const Lanes& votes = warp.operand(instruction, 1);
  unsigned given = 0;
  for_lanes(mask, [&](unsigned lane) { given |= (votes.words[lane] != 0 ? 1U : 0U) << lane; });
  std::uint64_t result = given;
  if (kVote == Vote::kAny) result = given != 0 ? 1 : 0;
  if (kVote == Vote::kAll) result = given == mask ? 1 : 0;
  Lanes& to = warp.operand(instruction, 0);
  for_lanes(mask, [&](unsigned lane) { to.words[lane] = result; });
}

void run_nothing(Warp& /*warp*/, const Instruction& /*instruction*/, unsigned /*mask*/) {}

// Behind a barrier: operand 0 from how many threads of the block came with a vote.
template <Vote kVote>
void run_block_vote(Warp& warp, const Instruction& instruction, unsigned mask) {
  const Machine::BlockVotes votes = warp.machine().votes();
  std::uint64_t result = votes.given;
  if (kVote == Vote::kAny) result = votes.given != 0 ? 1 : 0;
  if (kVote == Vote::kAll) result = votes.given == votes.threads ? 1 : 0;
  Lanes& to = warp.operand(instruction, 0);
  for_lanes(mask, [&](unsigned lane) { to.words[lane] = result; });
}

}  // namespace

void add_lane_opcodes(OpcodeTable& table) {
  table["shfl.sync.idx.b32"] = {run_shuffle<Shuffle::kIndex>, Flow::kLanesMeet};
  table["shfl.sync.up.b32"] = {run_shuffle<Shuffle::kUp>, Flow::kLanesMeet};
  table["shfl.sync.down.b32"] = {run_shuffle<Shuffle::kDown>, Flow::kLanesMeet};
  table["shfl.sync.bfly.b32"] = {run_shuffle<Shuffle::kButterfly>, Flow::kLanesMeet};
  table["vote.sync.ballot.b32"] = {run_vote<Vote::kBallot>, Flow::kLanesMeet};
  table["vote.sync.any.pred"] = {run_vote<Vote::kAny>, Flow::kLanesMeet};
  table["vote.sync.all.pred"] = {run_vote<Vote::kAll>, Flow::kLanesMeet};
  table["bar.warp.sync"] = {.run = run_nothing, .flow = Flow::kLanesMeet, .orders_memory = true};
  const auto add_barrier = [&](const char* name, Run run) {
    table[name] = {.run = run, .flow = Flow::kBarrier, .orders_memory = true};
  };
  add_barrier("bar.sync", run_nothing);
  add_barrier("bar.red.popc.u32", run_block_vote<Vote::kBallot>);
  add_barrier("bar.red.or.pred", run_block_vote<Vote::kAny>);
  add_barrier("bar.red.and.pred", run_block_vote<Vote::kAll>);
}

}  // namespace trainscope::ptx
