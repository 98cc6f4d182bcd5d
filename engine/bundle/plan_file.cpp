// plan.bin: which of its sections holds which table of a record.
#include "engine/bundle/plan_file.h"

#include <concepts>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "engine/bundle/plan_older_rows.h"
#include "engine/core/error.h"
#include "engine/core/text.h"

namespace trainscope {

// What the rows of a view lie in, of a record and of all bodies in it: a file's bytes, and tables
// that are others now.
struct PlanStorage {
  SharedBytes file = {};
  std::optional<PlanRecord> record = {};  // instead: one that was made
  std::optional<TablesOfVersion1> version_1 = {};
  std::deque<std::vector<PlanNode>> older_nodes = {};
};

namespace {

// Bodies within bodies: a file says more only to have its reader go deep.
constexpr int kMostNested = 16;
constexpr std::uint32_t kBodyBytes = 21;

// Calls visit(kind, rows) for the tables whose rows are as in version 1. Numbers stay.
template <typename View, typename Visit>
void each_lasting_table(View& plan, Visit visit) {
  visit(2, plan.recompute);
  visit(3, plan.text_ends);
  visit(4, plan.text_bytes);
  visit(5, plan.dims);
  visit(7, plan.buffers);
  visit(8, plan.members);
  visit(12, plan.waits);
  visit(13, plan.names);
  visit(14, plan.other_kernels);
  visit(15, plan.sections);
}

// ... and for all others.
template <typename View, typename Visit>
void each_newer_table(View& plan, Visit visit) {
  visit(9, plan.nodes);
  visit(1, plan.facts_row);
  visit(6, plan.values);
  visit(10, plan.calls);
  visit(11, plan.operands);
  visit(16, plan.spaces);
  visit(17, plan.inputs);
  visit(18, plan.outputs);
  visit(19, plan.bodies);
  visit(20, plan.carried);
}

std::string aligned(std::string bytes) {
  const std::size_t behind = bytes.size() % kPlanSectionAlignment;
  if (behind > 0) bytes.resize(bytes.size() + kPlanSectionAlignment - behind);
  return bytes;
}

// Calls write(bytes) with one piece of the record's file after the other.
template <typename Write>
void write_pieces(const PlanRecord& record, Write write) {
  std::string body_bytes;
  std::vector<PlanBody> bodies = record.bodies;
  for (std::size_t i = 0; i < bodies.size(); ++i) {
    const std::string bytes = plan_file_bytes(record.body_plans[i]);
    bodies[i].offset = body_bytes.size();
    bodies[i].bytes = bytes.size();
    body_bytes += aligned(bytes);
  }
  PlanView plan = view_of(record);
  plan.bodies = bodies;
  std::vector<SectionRows> sections;
  const auto add = [&sections](std::uint32_t kind, const auto& rows) {
    sections.push_back(
        {.kind = kind, .row_bytes = sizeof(rows[0]), .rows = std::as_bytes(std::span(rows))});
  };
  each_lasting_table(plan, add);
  each_newer_table(plan, add);
  add(kBodyBytes, body_bytes);
  SectionFile(sections).write(write);
}

PlanView checked(PlanView plan) {
  const std::string fault = find_fault(plan);
  require(fault.empty(), ErrorCode::kBadInput, "{}", fault);
  return plan;
}

PlanView lasting_tables(const SectionTable& sections) {
  PlanView plan;
  each_lasting_table(plan, [&]<typename Row>(std::uint32_t kind, std::span<const Row>& rows) {
    rows = sections.rows<Row>(kind);
  });
  return plan;
}

std::span<const PlanNode> nodes_of(const SectionTable& sections, PlanStorage& storage) {
  if (sections.version() >= kOldestWithTheseNodes) return sections.rows<PlanNode>(9);
  return storage.older_nodes.emplace_back(nodes_of_older_version(sections));
}

PlanView view_of_version_1(const SectionTable& sections, PlanStorage& storage) {
  const TablesOfVersion1& tables = storage.version_1.emplace(tables_of_version_1(sections));
  PlanView plan = lasting_tables(sections);
  plan.nodes = nodes_of(sections, storage);
  plan.facts_row = {&tables.facts, 1};
  plan.spaces = tables.spaces;
  plan.values = tables.values;
  plan.calls = tables.calls;
  plan.operands = tables.operands;
  return checked(std::move(plan));
}

PlanView view_of_sections(const SectionTable& sections, int depth, PlanStorage& storage) {
  require(depth <= kMostNested, ErrorCode::kBadInput, "its bodies are nested {} deep", depth);
  if (sections.version() < kOldestWithTheseCalls) return view_of_version_1(sections, storage);
  PlanView plan = lasting_tables(sections);
  each_newer_table(plan, [&]<typename Row>(std::uint32_t kind, std::span<const Row>& rows) {
    if constexpr (std::same_as<Row, PlanNode>) {
      rows = nodes_of(sections, storage);
    } else {
      rows = sections.rows<Row>(kind);
    }
  });
  const SharedBytes bytes = sections.bytes_of(kBodyBytes, 1);
  for (const PlanBody& body : plan.bodies) {
    const bool is_inside = body.offset % kPlanSectionAlignment == 0 &&
                           body.offset <= bytes.size() && body.bytes <= bytes.size() - body.offset;
    require(is_inside, ErrorCode::kBadInput, "a body is not inside the bodies");
    const SectionTable inner(bytes.part(body.offset, body.bytes), sections.version(),
                             sections.version());
    plan.body_plans.push_back(view_of_sections(inner, depth + 1, storage));
  }
  return checked(std::move(plan));
}

void share(const std::shared_ptr<const void>& holder, PlanView& plan) {
  plan.holder = holder;
  for (PlanView& body : plan.body_plans) share(holder, body);
}

}  // namespace

void write_plan_file(const PlanRecord& record, const FolderEntry& entry) {
  AtomicFile file(entry);
  write_pieces(record, [&file](std::span<const std::byte> bytes) { file.write(bytes); });
  file.commit();
}

std::string plan_file_bytes(const PlanRecord& record) {
  std::string text;
  write_pieces(record, [&text](std::span<const std::byte> bytes) {
    text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  });
  return text;
}

StoredPlan::StoredPlan(PlanRecord record) {
  const auto storage = std::make_shared<PlanStorage>();
  view_ = view_of(storage->record.emplace(std::move(record)));
  share(storage, view_);
}

StoredPlan::StoredPlan(SharedBytes file) {
  const auto storage = std::make_shared<PlanStorage>();
  storage->file = std::move(file);
  view_ = view_of_sections(SectionTable(storage->file, 1, kPlanRecordVersion), 1, *storage);
  share(storage, view_);
}

StoredPlan StoredPlan::open(const FolderEntry& entry) {
  SharedBytes file(MappedFile::open(entry));
  try {
    require(file.size() <= kMostPlanFileBytes, ErrorCode::kBadInput,
            "it has {}, more than the allowed {}", human_bytes(file.size()),
            human_bytes(kMostPlanFileBytes));
    return StoredPlan(std::move(file));
  } catch (const Error& error) {
    throw Error(error.code(),
                fmt::format("'{}': {}", printable(entry.path().string()), error.message()))
        .hint(kPlanFileHint);
  }
}

}  // namespace trainscope
