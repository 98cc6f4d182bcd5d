// Texts of a record, and what its rows say.
#include "engine/bundle/plan_record.h"

#include <algorithm>
#include <numeric>

#include "engine/core/error.h"

namespace trainscope {

TextId PlanTexts::id(std::string_view text) {
  const auto next = static_cast<TextId>(ends_.size());
  const auto [known, is_new] = known_.try_emplace(std::string(text), next);
  if (!is_new) return known->second;
  CHECK_INVARIANT(bytes_.size() + text.size() < kNoRow);
  bytes_.insert(bytes_.end(), text.begin(), text.end());
  ends_.push_back(static_cast<std::uint32_t>(bytes_.size()));
  return next;
}

PlanView view_of(const PlanRecord& record) {
  PlanView view{.holder = nullptr,
                .facts_row = {&record.facts, 1},
                .spaces = record.spaces,
                .recompute = record.recompute,
                .text_ends = record.texts.ends(),
                .text_bytes = record.texts.bytes(),
                .dims = record.dims,
                .values = record.values,
                .buffers = record.buffers,
                .members = record.members,
                .nodes = record.nodes,
                .calls = record.calls,
                .operands = record.operands,
                .waits = record.waits,
                .names = record.names,
                .other_kernels = record.other_kernels,
                .sections = record.sections,
                .inputs = record.inputs,
                .outputs = record.outputs,
                .bodies = record.bodies,
                .carried = record.carried};
  for (const PlanRecord& body : record.body_plans) view.body_plans.push_back(view_of(body));
  return view;
}

std::string_view PlanView::text(TextId id) const {
  const std::size_t begin = id == 0 ? 0 : text_ends[id - 1];
  return {text_bytes.data() + begin, text_ends[id] - begin};
}

std::string_view PlanView::name_of(const PlanCall& call) const {
  if (call.node != kNoRow) return text(nodes[call.node].name);
  for (const PlanOperand& output : rows_of(operands, call.outputs)) {
    if (output.value != kNoRow) return text(values[output.value].name);
  }
  return {};
}

PlanView view_of(const std::shared_ptr<const PlanRecord>& record) {
  PlanView view = view_of(*record);
  view.holder = record;
  return view;
}

namespace {

bool computes(const PlanCall& call) {
  return call.node != kNoRow && call.kind != PlanCallKind::kStateCopy;
}

}  // namespace

std::string_view PlanView::op_of(const PlanCall& call) const {
  return computes(call) ? text(nodes[call.node].op) : std::string_view();
}

OpClass PlanView::class_of(const PlanCall& call) const {
  return computes(call) ? nodes[call.node].op_class : OpClass::kUnstated;
}

std::span<const TextId> PlanView::sources_of(const PlanCall& call) const {
  if (call.node == kNoRow) return {};
  return rows_of(names, nodes[call.node].sources);
}

std::span<const PlanOtherKernel> PlanView::kernels_before(const PlanCall& call) const {
  const RowRange& all = call.other_kernels;
  return rows_of(other_kernels, {.begin = all.begin, .count = all.count - call.behind});
}

std::span<const PlanOtherKernel> PlanView::kernels_behind(const PlanCall& call) const {
  return rows_of(other_kernels, call.other_kernels).last(call.behind);
}

std::string_view name_of(PlanPhase phase) {
  constexpr std::array<std::string_view, 3> kNames = {"forward", "backward", "update"};
  return kNames.at(static_cast<std::size_t>(phase));
}

std::string_view name_of(PlanSpaceKind kind) {
  constexpr std::array<std::string_view, 2> kNames = {"device", "host"};
  return kNames.at(static_cast<std::size_t>(kind));
}

std::string_view name_of(PlanValueKind kind) {
  constexpr std::array<std::string_view, 6> kNames = {"input",    "parameter", "state",
                                                      "constant", "node",      "erased"};
  return kNames.at(static_cast<std::size_t>(kind));
}

std::string_view name_of(BufferClass holds) {
  constexpr std::array<std::string_view, 9> kNames = {"parameter", "state",     "constant",
                                                      "input",     "gradient",  "activation",
                                                      "update",    "workspace", "held"};
  return kNames.at(static_cast<std::size_t>(holds));
}

std::string_view name_of(PlanCallKind kind) {
  constexpr std::array<std::string_view, 5> kNames = {"kernel", "transfer", "add_partials",
                                                      "state_copy", "program"};
  return kNames.at(static_cast<std::size_t>(kind));
}

std::string_view name_of(PlanSlice slice) {
  constexpr std::array<std::string_view, 4> kNames = {"whole", "examples", "partial", "elements"};
  return kNames.at(static_cast<std::size_t>(slice));
}

std::vector<std::uint32_t> original_values(const PlanView& plan) {
  std::vector<std::uint32_t> originals(plan.values.size());
  std::iota(originals.begin(), originals.end(), 0U);
  std::vector<RowRange> made(plan.nodes.size());  // operands, in the node's order
  const auto lead = [&](const PlanOperand& to, const PlanOperand& from) {
    if (to.value != kNoRow && from.value != kNoRow) originals[to.value] = originals[from.value];
  };
  for (const PlanCall& call : plan.calls) {
    if (!computes(call) || call.kind == PlanCallKind::kAddPartials) continue;
    if (made[call.node].count == 0) made[call.node] = call.outputs;
    RowRange from = call.inputs;
    if (call.kind != PlanCallKind::kTransfer) {
      const std::uint32_t first = plan.nodes[call.node].rematerialized_of;
      if (first == kNoRow) continue;
      from = made[first];
    }
    for (std::uint32_t i = 0; i < std::min(call.outputs.count, from.count); ++i) {
      lead(plan.operands[call.outputs.begin + i], plan.operands[from.begin + i]);
    }
  }
  return originals;
}

bool is_in_arena(const PlanBuffer& buffer) {
  return buffer.space == PlanSpaceKind::kDevice && buffer.external == 0;
}

std::vector<std::int64_t> live_bytes(const PlanView& plan) {
  const std::uint32_t times = plan.facts().times;
  // Without a sign: sums of extreme sizes wrap around.
  std::vector<std::uint64_t> change(std::size_t{times} + 1, 0);
  for (const PlanBuffer& buffer : plan.buffers) {
    if (!is_in_arena(buffer)) continue;
    change[std::min(buffer.begin, times)] += static_cast<std::uint64_t>(buffer.bytes);
    change[std::min(buffer.end, times)] -= static_cast<std::uint64_t>(buffer.bytes);
  }
  std::vector<std::int64_t> live(times);
  std::uint64_t sum = 0;
  for (std::size_t time = 0; time < times; ++time) {
    sum += change[time];
    live[time] = static_cast<std::int64_t>(sum);
  }
  return live;
}

}  // namespace trainscope
