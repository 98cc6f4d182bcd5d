// The record of a plan: every call of a training step, every value, and every buffer with its place
// in memory. It is one to one with the program that ran: a CallId, ValueId, BufferId or NodeId of
// the program is the position of its row here; so it is with the program of a call's body in the
// record of that body.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/bundle/plan_rows.h"  // IWYU pragma: export

namespace trainscope {

// Texts, each once, one after the other.
class PlanTexts {
 public:
  PlanTexts() { id(""); }
  TextId id(std::string_view text);  // adds it where it is new

  std::span<const std::uint32_t> ends() const { return ends_; }  // of each in bytes()
  std::span<const char> bytes() const { return bytes_; }

 private:
  std::vector<std::uint32_t> ends_;
  std::vector<char> bytes_;
  std::unordered_map<std::string, TextId> known_;
};

// A record that is being made.
struct PlanRecord {
  PlanFacts facts = {};
  std::vector<PlanSpace> spaces = {{}, {.kind = PlanSpaceKind::kHost}};
  std::vector<PlanRecompute> recompute = {};  // one, or none without recomputation
  PlanTexts texts = {};
  std::vector<std::int64_t> dims = {};
  std::vector<PlanValue> values = {};
  std::vector<PlanBuffer> buffers = {};
  std::vector<std::uint32_t> members = {};  // values in buffers
  std::vector<PlanNode> nodes = {};
  std::vector<PlanCall> calls = {};
  std::vector<PlanOperand> operands = {};
  std::vector<std::uint32_t> waits = {};
  std::vector<TextId> names = {};
  std::vector<PlanOtherKernel> other_kernels = {};
  std::vector<PlanSection> sections = {};
  std::vector<std::uint32_t> inputs = {};   // values, in the graph's order
  std::vector<std::uint32_t> outputs = {};  // values
  std::vector<PlanBody> bodies = {};
  std::vector<PlanCarried> carried = {};
  std::vector<PlanRecord> body_plans = {};  // of each body
};

// A record to read, in memory or in a mapped file: a view of its rows. What comes from a file has
// been checked: every position is inside its table.
struct PlanView {
  std::shared_ptr<const void> holder = {};    // of what the rows lie in; null: of a borrowed record
  std::span<const PlanFacts> facts_row = {};  // one
  std::span<const PlanSpace> spaces = {};     // the device's and the host's
  std::span<const PlanRecompute> recompute = {};
  std::span<const std::uint32_t> text_ends = {};
  std::span<const char> text_bytes = {};
  std::span<const std::int64_t> dims = {};
  std::span<const PlanValue> values = {};
  std::span<const PlanBuffer> buffers = {};
  std::span<const std::uint32_t> members = {};
  std::span<const PlanNode> nodes = {};
  std::span<const PlanCall> calls = {};
  std::span<const PlanOperand> operands = {};
  std::span<const std::uint32_t> waits = {};
  std::span<const TextId> names = {};
  std::span<const PlanOtherKernel> other_kernels = {};
  std::span<const PlanSection> sections = {};
  std::span<const std::uint32_t> inputs = {};
  std::span<const std::uint32_t> outputs = {};
  std::span<const PlanBody> bodies = {};
  std::span<const PlanCarried> carried = {};
  std::vector<PlanView> body_plans = {};

  const PlanFacts& facts() const { return facts_row[0]; }
  const PlanSpace& space(PlanSpaceKind kind) const {
    return spaces[static_cast<std::size_t>(kind)];
  }
  const PlanSpace& arena() const { return space(PlanSpaceKind::kDevice); }
  std::string_view text(TextId id) const;
  std::string_view name_of(const PlanCall& call) const;  // of its node, or of what it writes
  std::string_view op_of(const PlanCall& call) const;    // of its node; empty for a copy
  // Of that op; kUnstated for a copy, and in records of older programs and of other engines.
  OpClass class_of(const PlanCall& call) const;
  std::span<const TextId> sources_of(const PlanCall& call) const;
  // Kernels that were asked before the call's own, and those that come after it in the list.
  std::span<const PlanOtherKernel> kernels_before(const PlanCall& call) const;
  std::span<const PlanOtherKernel> kernels_behind(const PlanCall& call) const;
  bool is_external(const PlanValue& value) const {
    return value.buffer != kNoRow && buffers[value.buffer].external != 0;
  }
};

PlanView view_of(const PlanRecord& record);
// ... that has a share of it.
PlanView view_of(const std::shared_ptr<const PlanRecord>& record);

// By value: the one that it has the elements of, which a node before it computed: it was computed
// once more, or went to host memory or came back. All others are themselves.
std::vector<std::uint32_t> original_values(const PlanView& plan);

// Whether it has bytes in the program's own arena on the device.
bool is_in_arena(const PlanBuffer& buffer);

// Bytes alive at each time in that arena.
std::vector<std::int64_t> live_bytes(const PlanView& plan);

// Empty when every position is inside its table and every size makes sense, else what does not.
std::string find_fault(const PlanView& plan);

}  // namespace trainscope
