// plan.bin: which of its sections holds which table of a record.
#include "engine/bundle/plan_file.h"

#include <utility>
#include <vector>

#include "engine/bundle/plan_sections.h"
#include "engine/bundle/plan_version_1.h"
#include "engine/core/error.h"
#include "engine/core/text.h"

namespace trainscope {
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
  visit(9, plan.nodes);
  visit(12, plan.waits);
  visit(13, plan.names);
  visit(14, plan.other_kernels);
  visit(15, plan.sections);
}

// ... and for all others.
template <typename View, typename Visit>
void each_newer_table(View& plan, Visit visit) {
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

PlanView view_of_sections(const SectionTable& sections, int depth) {
  require(depth <= kMostNested, ErrorCode::kBadInput, "its bodies are nested {} deep", depth);
  PlanView plan = lasting_tables(sections);
  each_newer_table(plan, [&]<typename Row>(std::uint32_t kind, std::span<const Row>& rows) {
    rows = sections.rows<Row>(kind);
  });
  const std::span<const std::byte> bytes = sections.rows<std::byte>(kBodyBytes);
  for (const PlanBody& body : plan.bodies) {
    const bool is_inside = body.offset % kPlanSectionAlignment == 0 &&
                           body.offset <= bytes.size() && body.bytes <= bytes.size() - body.offset;
    require(is_inside, ErrorCode::kBadInput, "a body is not inside the bodies");
    const SectionTable inner(bytes.subspan(body.offset, body.bytes), sections.version(),
                             sections.version());
    plan.body_plans.push_back(view_of_sections(inner, depth + 1));
  }
  return checked(std::move(plan));
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

PlanView view_of_plan_file(std::span<const std::byte> bytes) {
  return view_of_sections(SectionTable(bytes, kOldestWithTheseRows, kPlanRecordVersion), 1);
}

StoredPlan::StoredPlan(PlanRecord record)
    : record_(std::make_unique<PlanRecord>(std::move(record))), view_(view_of(*record_)) {}

StoredPlan::~StoredPlan() = default;
StoredPlan::StoredPlan(StoredPlan&&) noexcept = default;
StoredPlan& StoredPlan::operator=(StoredPlan&&) noexcept = default;

StoredPlan::StoredPlan(MappedFile file) : file_(std::make_unique<MappedFile>(std::move(file))) {
  const SectionTable sections(file_->bytes(), 1, kPlanRecordVersion);
  if (sections.version() >= kOldestWithTheseRows) {
    view_ = view_of_sections(sections, 1);
    return;
  }
  older_ = std::make_unique<TablesOfVersion1>(tables_of_version_1(sections));
  view_ = lasting_tables(sections);
  view_.facts_row = {&older_->facts, 1};
  view_.spaces = older_->spaces;
  view_.values = older_->values;
  view_.calls = older_->calls;
  view_.operands = older_->operands;
  view_ = checked(std::move(view_));
}

StoredPlan StoredPlan::open(const FolderEntry& entry) {
  MappedFile file = MappedFile::open(entry);
  try {
    return StoredPlan(std::move(file));
  } catch (const Error& error) {
    throw Error(error.code(),
                fmt::format("'{}': {}", printable(entry.path().string()), error.message()))
        .hint(kPlanFileHint);
  }
}

}  // namespace trainscope
