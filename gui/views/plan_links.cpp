// Lists by row, made by counting.
#include "gui/views/plan_links.h"

#include <algorithm>
#include <utility>

#include "profiler/analysis/breakdown.h"

namespace trainscope::gui {
namespace {

using Pairs = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

// Each pair once, by row and then by item.
void order_and_thin(Pairs& pairs) {
  std::ranges::sort(pairs);
  const auto rest = std::ranges::unique(pairs);
  pairs.erase(rest.begin(), rest.end());
}

void sort_and_thin(std::vector<std::uint32_t>& rows) {
  std::ranges::sort(rows);
  const auto rest = std::ranges::unique(rows);
  rows.erase(rest.begin(), rest.end());
}

// What of the values of `range` is a value of the plan.
template <typename F>
void each_operand(const PlanView& plan, RowRange range, F f) {
  for (const PlanOperand& operand : rows_of(plan.operands, range)) f(operand);
}

}  // namespace

RowLists::RowLists(std::size_t rows, std::span<const std::pair<std::uint32_t, std::uint32_t>> pairs)
    : ends_(rows, 0), items_(pairs.size()) {
  std::vector<std::uint32_t> next(rows + 1, 0);
  for (const auto& [row, item] : pairs) ++next[row + 1];
  for (std::size_t row = 0; row < rows; ++row) {
    next[row + 1] += next[row];
    ends_[row] = next[row + 1];
  }
  for (const auto& [row, item] : pairs) items_[next[row]++] = item;
}

std::span<const std::uint32_t> RowLists::of(std::uint32_t row) const {
  if (row >= ends_.size()) return {};
  const std::uint32_t begin = row == 0 ? 0 : ends_[row - 1];
  return std::span(items_).subspan(begin, ends_[row] - begin);
}

PlanLinks::PlanLinks(const PlanView& plan) : plan_(plan) {
  for (std::uint32_t i = 0; i < plan.nodes.size(); ++i) {
    if (plan.nodes[i].serial != 0) node_of_serial_.emplace(plan.nodes[i].serial, i);
  }
  for (std::uint32_t i = 0; i < plan.values.size(); ++i) {
    if (plan.values[i].serial != 0) value_of_serial_.emplace(plan.values[i].serial, i);
  }
  Pairs calls;
  Pairs writers;
  Pairs readers;
  for (std::uint32_t i = 0; i < plan.calls.size(); ++i) {
    const PlanCall& call = plan.calls[i];
    if (call.node != kNoRow) calls.emplace_back(call.node, i);
    each_operand(plan, call.inputs, [&](const PlanOperand& operand) {
      if (operand.value != kNoRow) readers.emplace_back(operand.value, i);
    });
    each_operand(plan, call.outputs, [&](const PlanOperand& operand) {
      if (operand.value != kNoRow) writers.emplace_back(operand.value, i);
    });
  }
  order_and_thin(readers);
  order_and_thin(writers);
  calls_of_node_ = RowLists(plan.nodes.size(), calls);
  writers_ = RowLists(plan.values.size(), writers);
  readers_ = RowLists(plan.values.size(), readers);
}

std::uint32_t PlanLinks::node_of_serial(std::uint32_t serial) const {
  const auto found = node_of_serial_.find(serial);
  return found == node_of_serial_.end() ? kNoRow : found->second;
}

std::uint32_t PlanLinks::value_of_serial(std::uint32_t serial) const {
  const auto found = value_of_serial_.find(serial);
  return found == value_of_serial_.end() ? kNoRow : found->second;
}

std::uint32_t PlanLinks::node_named(std::string_view name) const {
  std::uint32_t stems = kNoRow;
  for (std::uint32_t i = 0; i < plan_.nodes.size(); ++i) {
    if (plan_.text(plan_.nodes[i].name) == name) return i;
    if (stems != kNoRow) continue;
    for (const TextId source : rows_of(plan_.names, plan_.nodes[i].sources)) {
      if (plan_.text(source) == name) stems = i;
    }
  }
  return stems;
}

std::vector<std::uint32_t> PlanLinks::calls_before(std::uint32_t call) const {
  std::vector<std::uint32_t> found;
  if (call >= plan_.calls.size()) return found;
  each_operand(plan_, plan_.calls[call].inputs, [&](const PlanOperand& operand) {
    if (operand.value == kNoRow) return;
    for (const std::uint32_t writer : writers_of(operand.value)) {
      if (writer < call) found.push_back(writer);
    }
  });
  sort_and_thin(found);
  return found;
}

std::vector<std::uint32_t> PlanLinks::calls_after(std::uint32_t call) const {
  std::vector<std::uint32_t> found;
  if (call >= plan_.calls.size()) return found;
  each_operand(plan_, plan_.calls[call].outputs, [&](const PlanOperand& operand) {
    if (operand.value == kNoRow) return;
    for (const std::uint32_t reader : readers_of(operand.value)) {
      if (reader > call) found.push_back(reader);
    }
  });
  sort_and_thin(found);
  return found;
}

namespace {

// The first value that a call writes, and its buffer.
void take_result(const PlanView& plan, const PlanCall& call, Selection& selection) {
  for (const PlanOperand& operand : rows_of(plan.operands, call.outputs)) {
    if (operand.value == kNoRow) continue;
    selection.value = plan.values[operand.value].serial;
    selection.buffer = operand.buffer;
    return;
  }
}

Selection without_things(Selection from) {
  Selection selection;
  selection.stage = from.stage;
  selection.step = from.step;
  selection.range = from.range;
  return selection;
}

}  // namespace

Selection select_call(const PlanLinks& links, Selection from, std::uint32_t call) {
  Selection selection = without_things(std::move(from));
  const PlanView& plan = links.plan();
  if (call >= plan.calls.size()) return selection;
  const PlanCall& row = plan.calls[call];
  selection.subject = Subject::kCall;
  selection.call = call;
  selection.kernel = plan.text(row.kernel);
  if (row.node != kNoRow) selection.node = plan.nodes[row.node].serial;
  take_result(plan, row, selection);
  return selection;
}

Selection select_node(const PlanLinks& links, Selection from, std::uint32_t serial) {
  const std::uint32_t node = links.node_of_serial(serial);
  const auto calls = node == kNoRow ? std::span<const std::uint32_t>() : links.calls_of_node(node);
  Selection selection = calls.empty() ? without_things(std::move(from))
                                      : select_call(links, std::move(from), calls.front());
  selection.subject = Subject::kNode;
  selection.node = serial;
  return selection;
}

Selection select_value(const PlanLinks& links, Selection from, std::uint32_t serial) {
  const std::uint32_t value = links.value_of_serial(serial);
  const auto writers = value == kNoRow ? std::span<const std::uint32_t>() : links.writers_of(value);
  Selection selection = writers.empty() ? without_things(std::move(from))
                                        : select_call(links, std::move(from), writers.front());
  selection.subject = Subject::kValue;
  selection.value = serial;
  if (value != kNoRow) selection.buffer = links.plan().values[value].buffer;
  return selection;
}

Selection select_buffer(const PlanLinks& links, Selection from, std::uint32_t buffer) {
  const PlanView& plan = links.plan();
  if (buffer >= plan.buffers.size()) return without_things(std::move(from));
  const PlanBuffer& row = plan.buffers[buffer];
  const bool is_of_call = row.owner_kind == BufferOwner::kCall && row.owner < plan.calls.size();
  Selection selection;
  if (is_of_call) {
    selection = select_call(links, std::move(from), row.owner);
  } else if (row.owner_kind == BufferOwner::kValue && row.owner < plan.values.size()) {
    selection = select_value(links, std::move(from), plan.values[row.owner].serial);
  } else {
    selection = without_things(std::move(from));
  }
  selection.subject = Subject::kBuffer;
  selection.buffer = buffer;
  return selection;
}

Selection select_kernel(const PlanLinks& links, Selection from, std::string_view kernel) {
  const PlanView& plan = links.plan();
  for (std::uint32_t i = 0; i < plan.calls.size(); ++i) {
    if (profiler::kernel_of(plan, plan.calls[i]) != kernel) continue;
    Selection selection = select_call(links, std::move(from), i);
    selection.subject = Subject::kKernel;
    selection.kernel = kernel;
    return selection;
  }
  return without_things(std::move(from));
}

}  // namespace trainscope::gui
