// Which buffers may lie inside others, and where that pays.
#include "engine/plan/sub_ranges.h"

#include <algorithm>
#include <utility>

#include "engine/ir/op_def.h"
#include "memplan/problem.h"

namespace trainscope {
namespace {

constexpr std::int32_t kNone = -1;
constexpr std::int64_t kUnit = memplan::Problem{}.alignment_bytes;

std::int64_t rounded(std::int64_t bytes) { return (bytes + kUnit - 1) / kUnit * kUnit; }

// A buffer of the lifetimes. All its values begin where it does.
struct RangedBlock {
  std::int64_t first = 0;
  std::int64_t last = 0;
  std::int64_t bytes = 0;
  std::vector<std::int64_t> writes = {};  // steps; of whatever lies inside, too
  bool bound = false;           // parameters, states, constants; in another arena: neither
  bool given = false;           // there before the step: lies in no other
  std::int32_t inside = kNone;  // the block that it lies in
  std::int64_t offset = 0;      // ... and where
};

struct Place {
  std::int32_t block = kNone;
  std::int64_t offset = 0;
};

class RangeSearch {
 public:
  RangeSearch(const Graph& graph, const ExecutionOrder& order, const RangeFacts& facts,
              Lifetimes& lifetimes)
      : graph_(graph), order_(order), facts_(facts), lifetimes_(lifetimes) {}

  void run() {
    describe_blocks();
    std::int64_t step = 0;
    for (const Execution& run : order_.executions) {
      if (is_view(run)) continue;
      if (run.node != kNoNode) {
        const ByteRanges& ranges = facts_.ranges_of[static_cast<std::size_t>(run.node)];
        if (!ranges.offsets.empty()) share(run, ranges, step);
      }
      ++step;
    }
    merge_buffers();
  }

 private:
  bool is_view(const Execution& run) const {
    return run.node != kNoNode && graph_.node(run.node).op->is_view;
  }
  RangedBlock& block(std::int32_t i) { return blocks_[static_cast<std::size_t>(i)]; }
  std::int32_t own_block(std::int32_t number) const {
    return number == ExecutionOrder::kNone ? kNone
                                           : lifetimes_.buffer_of[static_cast<std::size_t>(number)];
  }
  std::int64_t bytes_of(std::int32_t number) const {
    const auto at = static_cast<std::size_t>(number);
    const std::size_t capacity = graph_.value_capacity();
    const ValueId value = at < capacity ? ValueId(number) : order_.originals[at - capacity];
    return static_cast<std::int64_t>(graph_.value(value).type.bytes());
  }

  void describe_blocks() {
    for (const Lifetimes::Buffer& buffer : lifetimes_.buffers) {
      blocks_.push_back({.first = buffer.first,
                         .last = buffer.last,
                         .bytes = static_cast<std::int64_t>(buffer.bytes),
                         .bound = buffer.persistent || buffer.external || buffer.host});
      steps_ = std::max(steps_, buffer.last + 1);
    }
    std::int64_t step = 0;
    for (const Execution& run : order_.executions) {
      if (is_view(run)) continue;
      for (std::int32_t v : order_.outputs(run)) {
        if (own_block(v) != kNone) block(own_block(v)).writes.push_back(step);
      }
      ++step;
    }
    for (ValueId v : graph_.inputs) {
      const std::int32_t own = own_block(static_cast<std::int32_t>(v));
      if (own != kNone) block(own).given = true;
    }
  }

  // Where a block is: in the outermost of those that it lies in.
  Place place_of(std::int32_t own) {
    Place place{.block = own};
    while (block(place.block).inside != kNone) {
      place.offset += block(place.block).offset;
      place.block = block(place.block).inside;
    }
    return place;
  }

  void share(const Execution& run, const ByteRanges& ranges, std::int64_t step) {
    const std::int32_t large = ranges.in_output ? order_.outputs(run)[0] : order_.inputs(run)[0];
    if (own_block(large) == kNone) return;
    const Place whole = place_of(own_block(large));
    if (block(whole.block).bound) return;
    if (ranges.in_output && !holds_alone(whole, large, step)) return;
    const auto small = ranges.in_output ? order_.inputs(run) : order_.outputs(run);
    std::vector<std::int32_t> parts;
    for (std::size_t i = 0; i < std::min(small.size(), ranges.offsets.size()); ++i) {
      if (own_block(small[i]) == kNone) continue;
      const Place part = place_of(own_block(small[i]));
      const std::int64_t offset = whole.offset + ranges.offsets[i];
      const bool taken = part.block == whole.block || part.offset != 0 ||
                         std::ranges::find(parts, part.block) != parts.end();
      if (taken || !fits(block(part.block), bytes_of(small[i]), block(whole.block), offset)) {
        continue;
      }
      // What a Slice or Split makes is not in the place of anything before.
      if (!ranges.in_output && block(part.block).first != step) continue;
      if (!agree_after(block(part.block), block(whole.block), step)) continue;
      block(part.block).offset = offset;
      parts.push_back(part.block);
    }
    join_all_or_some(whole.block, std::move(parts));
  }

  // Whether a result has a block of its own that nothing was in before.
  bool holds_alone(Place whole, std::int32_t result, std::int64_t step) {
    const RangedBlock& b = block(whole.block);
    return whole.offset == 0 && !b.given && b.first == step && b.bytes == bytes_of(result);
  }

  // A block of this value alone, that fills whole units of the other one.
  static bool fits(const RangedBlock& part, std::int64_t value_bytes, const RangedBlock& whole,
                   std::int64_t offset) {
    const std::int64_t end = offset + value_bytes;
    return !part.bound && !part.given && value_bytes > 0 && part.bytes == value_bytes &&
           offset % kUnit == 0 && end <= whole.bytes && (end % kUnit == 0 || end == whole.bytes);
  }

  // Whether the two hold the same as long as both are needed, if they do so after `step`.
  static bool agree_after(const RangedBlock& a, const RangedBlock& b, std::int64_t step) {
    const auto overwrites = [step](const RangedBlock& one, const RangedBlock& other) {
      return std::ranges::any_of(one.writes,
                                 [&](std::int64_t at) { return step < at && at <= other.last; });
    };
    return !overwrites(a, b) && !overwrites(b, a);
  }

  void join_all_or_some(std::int32_t whole, std::vector<std::int32_t> parts) {
    if (parts.empty() || joined(whole, parts)) return;
    // What is made last lengthens the result's life least.
    std::ranges::stable_sort(parts, std::ranges::greater{},
                             [this](std::int32_t part) { return block(part).first; });
    for (std::int32_t part : parts) joined(whole, {part});
  }

  // Joins the parts to the whole if the most bytes alive meanwhile do not grow by it.
  bool joined(std::int32_t whole, const std::vector<std::int32_t>& parts) {
    if (alive_.empty()) count_alive();
    RangedBlock all = block(whole);
    for (std::int32_t i : parts) {
      const RangedBlock& part = block(i);
      all.first = std::min(all.first, part.first);
      all.last = std::max(all.last, part.last);
      all.writes.insert(all.writes.end(), part.writes.begin(), part.writes.end());
    }
    const auto begin = alive_.begin() + all.first;
    const auto end = alive_.begin() + all.last + 1;
    std::vector<std::int64_t> after(begin, end);
    const auto add = [&](const RangedBlock& b, std::int64_t bytes) {
      for (std::int64_t step = b.first; step <= b.last; ++step) {
        after[static_cast<std::size_t>(step - all.first)] += bytes;
      }
    };
    add(all, rounded(all.bytes));
    add(block(whole), -rounded(all.bytes));
    for (std::int32_t i : parts) add(block(i), -rounded(block(i).bytes));
    if (std::ranges::max(after) > *std::max_element(begin, end)) return false;
    std::ranges::copy(after, begin);
    for (std::int32_t i : parts) block(i).inside = whole;
    block(whole) = std::move(all);
    return true;
  }

  // By step; what lives throughout makes no difference.
  void count_alive() {
    alive_.assign(static_cast<std::size_t>(steps_) + 1, 0);
    for (const RangedBlock& b : blocks_) {
      if (b.bound) continue;
      alive_[static_cast<std::size_t>(b.first)] += rounded(b.bytes);
      alive_[static_cast<std::size_t>(b.last) + 1] -= rounded(b.bytes);
    }
    for (std::size_t step = 1; step < alive_.size(); ++step) alive_[step] += alive_[step - 1];
    for (std::size_t step = 0; step < std::min(alive_.size(), facts_.workspaces.size()); ++step) {
      alive_[step] += rounded(facts_.workspaces[step]);
    }
  }

  void merge_buffers() {
    std::vector<std::int32_t> number(blocks_.size(), kNone);
    std::vector<Lifetimes::Buffer> buffers;
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      if (blocks_[i].inside != kNone) continue;
      number[i] = static_cast<std::int32_t>(buffers.size());
      buffers.push_back(lifetimes_.buffers[i]);
      buffers.back().first = blocks_[i].first;
      buffers.back().last = blocks_[i].last;
    }
    lifetimes_.buffers = std::move(buffers);
    for (std::size_t v = 0; v < lifetimes_.buffer_of.size(); ++v) {
      if (lifetimes_.buffer_of[v] == kNone) continue;
      const Place place = place_of(lifetimes_.buffer_of[v]);
      lifetimes_.buffer_of[v] = number[static_cast<std::size_t>(place.block)];
      lifetimes_.offset_of[v] = place.offset;
    }
  }

  const Graph& graph_;
  const ExecutionOrder& order_;
  const RangeFacts& facts_;
  Lifetimes& lifetimes_;
  std::vector<RangedBlock> blocks_;  // by buffer, as the lifetimes came
  std::int64_t steps_ = 0;           // the last one is the end of the step
  std::vector<std::int64_t> alive_;  // bytes by step; empty: not asked for yet
};

}  // namespace

std::vector<ByteRanges> ranges_of_nodes(const Graph& graph) {
  std::vector<ByteRanges> all;
  for (NodeId id : graph.order()) {
    ByteRanges ranges = byte_ranges(graph, graph.node(id));
    if (ranges.offsets.empty()) continue;
    all.resize(graph.node_capacity());
    all[static_cast<std::size_t>(id)] = std::move(ranges);
  }
  return all;
}

void share_ranges(const Graph& graph, const ExecutionOrder& order, const RangeFacts& facts,
                  Lifetimes& lifetimes) {
  RangeSearch(graph, order, facts, lifetimes).run();
}

}  // namespace trainscope
