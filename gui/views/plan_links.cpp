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

// The values of a call's operands, those that are left out aside.
template <typename F>
void each_value(const PlanView& plan, RowRange range, F f) {
  for (const PlanOperand& operand : rows_of(plan.operands, range)) {
    if (operand.value != kNoRow) f(operand.value);
  }
}

// Whether it does what its node does: what adds partials up and what copies a state go on with the
// node's results.
bool computes_node(const PlanCall& call) {
  return call.node != kNoRow && call.kind != PlanCallKind::kAddPartials &&
         call.kind != PlanCallKind::kStateCopy;
}

// Of each value the one that it is a view of through whatever views. Of views in a circle, which a
// damaged record may have, one of them.
std::vector<std::uint32_t> storages(const PlanView& plan) {
  std::vector<std::uint32_t> storage(plan.values.size(), kNoRow);
  std::vector<std::uint32_t> behind;
  for (std::uint32_t i = 0; i < plan.values.size(); ++i) {
    behind.clear();
    std::uint32_t at = i;
    while (storage[at] == kNoRow) {
      storage[at] = at;
      behind.push_back(at);
      if (plan.values[at].view_of != kNoRow) at = plan.values[at].view_of;
    }
    for (const std::uint32_t value : behind) storage[value] = storage[at];
  }
  return storage;
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
  storage_ = storages(plan);
  add_calls();
  add_nodes();
}

void PlanLinks::add_calls() {
  Pairs calls;
  Pairs writers;
  Pairs readers;
  for (std::uint32_t i = 0; i < plan_.calls.size(); ++i) {
    const PlanCall& call = plan_.calls[i];
    if (call.node != kNoRow) calls.emplace_back(call.node, i);
    each_value(plan_, call.inputs,
               [&](std::uint32_t value) { readers.emplace_back(storage_[value], i); });
    each_value(plan_, call.outputs,
               [&](std::uint32_t value) { writers.emplace_back(storage_[value], i); });
  }
  order_and_thin(readers);
  order_and_thin(writers);
  calls_of_node_ = RowLists(plan_.nodes.size(), calls);
  writers_ = RowLists(plan_.values.size(), writers);
  readers_ = RowLists(plan_.values.size(), readers);
}

void PlanLinks::add_nodes() {
  Pairs results;
  Pairs readers;
  for (const PlanCall& call : plan_.calls) {
    if (!computes_node(call)) continue;
    each_value(plan_, call.inputs,
               [&](std::uint32_t value) { readers.emplace_back(value, call.node); });
  }
  for (std::uint32_t i = 0; i < plan_.values.size(); ++i) {
    const PlanValue& value = plan_.values[i];
    if (value.producer == kNoRow) continue;
    results.emplace_back(value.producer, i);
    if (value.view_of != kNoRow) readers.emplace_back(value.view_of, value.producer);
  }
  order_and_thin(readers);
  results_ = RowLists(plan_.nodes.size(), results);
  reader_nodes_ = RowLists(plan_.values.size(), readers);
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

std::vector<std::uint32_t> PlanLinks::operands_of(std::uint32_t node,
                                                  RowRange PlanCall::*which) const {
  std::vector<std::uint32_t> found;
  for (const std::uint32_t call : calls_of_node(node)) {
    if (!computes_node(plan_.calls[call])) continue;
    each_value(plan_, plan_.calls[call].*which, [&](std::uint32_t value) {
      if (std::ranges::find(found, value) == found.end()) found.push_back(value);
    });
  }
  return found;
}

std::vector<std::uint32_t> PlanLinks::inputs_of_node(std::uint32_t node) const {
  std::vector<std::uint32_t> found = operands_of(node, &PlanCall::inputs);
  for (const std::uint32_t result : results_.of(node)) {
    const std::uint32_t viewed = plan_.values[result].view_of;
    if (viewed != kNoRow && std::ranges::find(found, viewed) == found.end()) {
      found.push_back(viewed);
    }
  }
  return found;
}

std::vector<std::uint32_t> PlanLinks::outputs_of_node(std::uint32_t node) const {
  std::vector<std::uint32_t> found = operands_of(node, &PlanCall::outputs);
  if (!found.empty()) return found;
  const std::span<const std::uint32_t> results = results_.of(node);
  return {results.begin(), results.end()};
}

std::uint32_t PlanLinks::storage_of(std::uint32_t value) const {
  return value < storage_.size() ? storage_[value] : value;
}

std::vector<std::uint32_t> PlanLinks::calls_before(std::uint32_t call) const {
  std::vector<std::uint32_t> found;
  if (call >= plan_.calls.size()) return found;
  each_value(plan_, plan_.calls[call].inputs, [&](std::uint32_t value) {
    for (const std::uint32_t writer : writers_of(value)) {
      if (writer < call) found.push_back(writer);
    }
  });
  sort_and_thin(found);
  return found;
}

std::vector<std::uint32_t> PlanLinks::calls_after(std::uint32_t call) const {
  std::vector<std::uint32_t> found;
  if (call >= plan_.calls.size()) return found;
  each_value(plan_, plan_.calls[call].outputs, [&](std::uint32_t value) {
    for (const std::uint32_t reader : readers_of(value)) {
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
  if (node == kNoRow || !calls.empty()) return selection;
  const std::vector<std::uint32_t> results = links.outputs_of_node(node);
  if (results.empty()) return selection;
  const PlanValue& result = links.plan().values[results.front()];
  selection.value = result.serial;
  selection.buffer = result.buffer;
  return selection;
}

Selection select_value(const PlanLinks& links, Selection from, std::uint32_t serial) {
  const std::uint32_t value = links.value_of_serial(serial);
  const auto writers = value == kNoRow ? std::span<const std::uint32_t>() : links.writers_of(value);
  Selection selection = writers.empty() ? without_things(std::move(from))
                                        : select_call(links, std::move(from), writers.front());
  selection.subject = Subject::kValue;
  selection.value = serial;
  if (value == kNoRow) return selection;
  const PlanView& plan = links.plan();
  const PlanValue& row = plan.values[value];
  selection.buffer = row.buffer;
  if (row.view_of != kNoRow && row.producer != kNoRow) {  // its call is another node's
    selection.node = plan.nodes[row.producer].serial;
  }
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
