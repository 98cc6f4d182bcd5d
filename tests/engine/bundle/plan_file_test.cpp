// plan.bin: what is written is read back; every kind of damage is refused with one clear error.
#include "engine/bundle/plan_file.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <functional>
#include <random>
#include <vector>

#include "engine/bundle/plan_json.h"
#include "engine/core/hash.h"
#include "tests/engine/bundle/plan_tools.h"
#include "tests/engine/core/core_test_tools.h"

namespace trainscope {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kHeaderBytes = 32;
constexpr std::size_t kSectionBytes = 32;

template <typename T>
T number_at(const std::string& file, std::size_t offset) {
  T number;
  std::memcpy(&number, file.data() + offset, sizeof(T));
  return number;
}

template <typename T>
void put_number(std::string& file, std::size_t offset, T number) {
  std::memcpy(file.data() + offset, &number, sizeof(T));
}

std::size_t section_at(std::uint32_t section) { return kHeaderBytes + section * kSectionBytes; }

std::size_t rows_of_section(const std::string& file, std::uint32_t section) {
  return number_at<std::uint64_t>(file, section_at(section) + 8);
}

// Makes the hashes right again, so that damage reaches what comes behind them.
void seal(std::string& file) {
  const auto count = number_at<std::uint32_t>(file, 12);
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::size_t at = section_at(i);
    const auto size =
        number_at<std::uint32_t>(file, at + 4) * number_at<std::uint64_t>(file, at + 16);
    const auto offset = number_at<std::uint64_t>(file, at + 8);
    if (offset > file.size() || size > file.size() - offset) continue;
    put_number(file, at + 24, hash_bytes(std::as_bytes(std::span(file).subspan(offset, size))));
  }
  put_number(file, 24, std::uint64_t{0});
  const auto head = std::as_bytes(std::span(file).first(section_at(count)));
  put_number(file, 24, hash_bytes(head));
}

// Empty when it opens.
std::string refusal(const std::string& file) {
  try {
    const StoredPlan stored(SharedBytes::copy_of(file));
    return {};
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kBadInput);
    CHECK(!error.message().empty());
    return error.message();
  }
}

}  // namespace

TEST_CASE("plan file: what is written is read back") {
  const TemporaryFolder folder;
  const PlanRecord plan = chain_plan(5);
  const FolderEntry entry = Folder::open(folder.path()) / "plan.bin";
  write_plan_file(plan, entry);
  CHECK(get(folder / "plan.bin") == plan_file_bytes(plan));
  const StoredPlan stored = StoredPlan::open(entry);
  CHECK(plan_json(stored.view()) == plan_json(view_of(plan)));
  const PlanView view = stored.view();
  CHECK(view.calls.size() == 5);
  CHECK(view.text(view.buffers[3].label) == "relu_2:0");
  CHECK(view.arena().bytes == 192);
}

TEST_CASE("plan file: bodies are records of their own, as deep as they are nested") {
  const TemporaryFolder folder;
  const FolderEntry entry = Folder::open(folder.path()) / "plan.bin";
  const PlanRecord plan = plan_with_body(3, plan_with_body(2, chain_plan(1)));
  write_plan_file(plan, entry);
  const StoredPlan stored = StoredPlan::open(entry);
  CHECK(plan_json(stored.view()) == plan_json(view_of(plan)));
  REQUIRE(stored.view().body_plans.size() == 1);
  const PlanView& body = stored.view().body_plans[0];
  CHECK(body.calls.size() == 2);
  REQUIRE(body.body_plans.size() == 1);
  CHECK(body.body_plans[0].name_of(body.body_plans[0].calls[0]) == "relu_0");

  PlanRecord deep = chain_plan(1);
  for (int i = 0; i < 15; ++i) deep = plan_with_body(1, std::move(deep));
  CHECK(refusal(plan_file_bytes(deep)).empty());
  CHECK(contains(refusal(plan_file_bytes(plan_with_body(1, std::move(deep)))), "nested 17 deep"));
}

TEST_CASE("plan file: version 2 opens; of kernels behind a call's own it knew nothing") {
  const fs::path committed = fs::path(TRAINSCOPE_SOURCE_DIR) / "tests/data/plan-version-2/plan.bin";
  const TemporaryFolder folder;
  fs::copy(committed, folder.path());
  const StoredPlan stored =
      StoredPlan::open(Folder::open(folder.path()) / committed.filename().string());
  const PlanView& plan = stored.view();
  CHECK(plan.calls.size() == 18);
  CHECK(plan.arena().bytes == 107136);
  std::size_t before = 0;
  for (const PlanCall& call : plan.calls) {
    CHECK(plan.kernels_behind(call).empty());
    for (const PlanOtherKernel& other : plan.kernels_before(call)) {
      CHECK(!plan.text(other.reason).empty());
      ++before;
    }
  }
  CHECK(before == 8);
}

TEST_CASE("plan file: version 3 opens; of its nodes less was known") {
  const fs::path committed = fs::path(TRAINSCOPE_SOURCE_DIR) / "tests/data/plan-version-3/plan.bin";
  const TemporaryFolder folder;
  fs::copy(committed, folder.path());
  const StoredPlan stored =
      StoredPlan::open(Folder::open(folder.path()) / committed.filename().string());
  const PlanView& plan = stored.view();
  CHECK(plan.calls.size() == 25);
  CHECK(plan.arena().bytes == 19520);
  std::size_t behind = 0;
  for (const PlanCall& call : plan.calls) behind += plan.kernels_behind(call).size();
  CHECK(behind > 0);
  std::size_t gradients = 0;
  for (const PlanNode& node : plan.nodes) {
    CHECK(node.op_class == OpClass::kUnstated);
    CHECK(node.rematerialized_of == kNoRow);
    if (node.backward_of != 0) ++gradients;
  }
  CHECK(gradients > 0);
  const StoredPlan moved(SharedBytes::copy_of(get(committed)));
  CHECK(plan_json(moved.view()) == plan_json(plan));
}

TEST_CASE("plan file: version 1 opens, without what it did not know") {
  const fs::path committed = fs::path(TRAINSCOPE_SOURCE_DIR) / "tests/data/plan-version-1/plan.bin";
  const TemporaryFolder folder;
  fs::copy(committed, folder.path());
  const StoredPlan stored =
      StoredPlan::open(Folder::open(folder.path()) / committed.filename().string());
  const PlanView& plan = stored.view();
  CHECK(plan.calls.size() == 45);
  CHECK(plan.sections.size() == 3);
  CHECK(plan.arena().bytes == 166336);
  CHECK(plan.arena().alignment_bytes == 64);
  CHECK(plan.space(PlanSpaceKind::kHost).bytes == 0);
  CHECK(plan.text(plan.arena().method) != "");
  CHECK(plan.text(plan.facts().device) == "");
  CHECK(plan.facts().threads == 2);
  for (const PlanCall& call : plan.calls) {
    CHECK(call.kernel_flops == -1);
    CHECK(call.body == kNoRow);
    const bool tile_alone = call.workspace != kNoRow && call.tile != kNoRow;
    CHECK((call.workspace_bytes == -1) == tile_alone);
    for (const PlanOperand& operand : rows_of(plan.operands, call.inputs)) {
      if (operand.value == kNoRow) continue;
      const bool known = plan.text(operand.dtype) != "";
      CHECK(known == (operand.slice == PlanSlice::kWhole));
    }
  }
  for (const PlanValue& value : plan.values) CHECK(value.view_of == kNoRow);
  const Json json = Json::parse(plan_json(plan));
  CHECK(json.at("calls").at(0).at("kernel_flops").is_null());

  std::string damaged = get(committed);
  damaged[rows_of_section(damaged, 9)] ^= 1;
  put(folder / "plan.bin", damaged);
  const Error error = error_of([&] { StoredPlan::open(Folder::open(folder.path()) / "plan.bin"); });
  CHECK(contains(error.message(), "section 10 is damaged: its hash is another"));
}

TEST_CASE("plan file: a copy of the view, or of a body's, keeps what its rows lie in") {
  const PlanRecord plan = plan_with_body(3, chain_plan(2));
  PlanView whole;
  PlanView body;
  {
    const StoredPlan stored(SharedBytes::copy_of(plan_file_bytes(plan)));
    whole = stored.view();
    body = stored.view().body_plans[0];
  }
  CHECK(plan_json(whole) == plan_json(view_of(plan)));
  whole = {};
  CHECK(plan_json(body) == plan_json(view_of(plan.body_plans[0])));
  CHECK(body.holder.use_count() == 1);
}

TEST_CASE("plan file: a plan without calls is one too") {
  const PlanRecord empty;
  CHECK(refusal(plan_file_bytes(empty)).empty());
}

TEST_CASE("plan file: cut short at every byte it is refused") {
  const std::string file = plan_file_bytes(chain_plan(2));
  for (std::size_t size = 0; size < file.size(); ++size) {
    CAPTURE(size);
    CHECK(!refusal(file.substr(0, size)).empty());
  }
  CHECK(!refusal(file + std::string(1, '\0')).empty());
}

TEST_CASE("plan file: a flipped bit is refused, or is between two sections") {
  const PlanRecord plan = chain_plan(2);
  const std::string file = plan_file_bytes(plan);
  const std::string text = plan_json(view_of(plan));
  std::size_t refused = 0;
  for (std::size_t bit = 0; bit < 8 * file.size(); ++bit) {
    std::string damaged = file;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    if (!refusal(damaged).empty()) {
      ++refused;
      continue;
    }
    CHECK(plan_json(StoredPlan(SharedBytes::copy_of(damaged)).view()) == text);
  }
  CHECK(refused > 4 * file.size());
}

TEST_CASE("plan file: the header says what is wrong with it") {
  struct Row {
    std::size_t offset;
    std::uint32_t number;
    const char* message;
  };
  constexpr std::uint32_t kSections = 9;  // in the file's order: those of version 1 first
  constexpr std::uint32_t kFacts = 11;
  constexpr std::uint32_t kCalls = 13;
  const Row rows[] = {
      {0, 0, "it is no plan of trainscope"},
      {8, kPlanRecordVersion + 1,
       "version 5 of the plan record, this program reads versions 1 to 4"},
      {12, 65, "its table of 65 sections is not all there"},
      {16, 9, "its header says"},
      {section_at(kFacts), 99, "section 1 is missing"},
      {section_at(kFacts), 2, "section 2 is there twice"},
      {section_at(kSections), 1, "section 15 is missing"},
      {section_at(0), 1, "section 2 is missing"},
      {section_at(kCalls) + 4, 80, "section 10 has rows of 80 bytes instead of 136"},
      {section_at(kCalls) + 8, 1, "section 10 is not inside the file"},
      {section_at(kCalls) + 12, 1, "section 10 is not inside the file"},
      {section_at(kCalls) + 16, 1 << 20, "section 10 is not inside the file"},
      {section_at(kCalls) + 20, 1 << 30, "section 10 is not inside the file"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.message);
    std::string file = plan_file_bytes(chain_plan(3));
    put_number(file, row.offset, row.number);
    const bool has_table = row.offset >= kHeaderBytes;
    if (has_table) CHECK(refusal(file) == "the header is damaged: its hash is another");
    if (has_table) seal(file);
    CHECK(contains(refusal(file), row.message));
  }
  std::string file = plan_file_bytes(chain_plan(3));
  file[rows_of_section(file, kCalls)] ^= 1;
  CHECK(refusal(file) == "section 10 is damaged: its hash is another");
}

TEST_CASE("plan file: sections of a later program are skipped") {
  std::string file = plan_file_bytes(chain_plan(3));
  // The last section, of bodies, has no rows here: a second one with another number.
  const auto count = number_at<std::uint32_t>(file, 12);
  std::string more = file.substr(section_at(count - 1), kSectionBytes);
  put_number(more, 0, std::uint32_t{77});
  const std::size_t shift = 64;  // all offsets stay multiples of it
  more.resize(shift);
  file.insert(section_at(count), more);
  put_number(file, 12, count + 1);
  put_number(file, 16, std::uint64_t{file.size()});
  for (std::uint32_t i = 0; i <= count; ++i) {
    const std::size_t at = section_at(i) + 8;
    put_number(file, at, number_at<std::uint64_t>(file, at) + shift);
  }
  // The table has grown by 32 bytes, what follows has moved by 64.
  seal(file);
  CHECK(refusal(file).empty());
}

TEST_CASE("plan file: numbers of strangers with right hashes are refused, or do no harm") {
  const std::string good = plan_file_bytes(chain_plan(6));
  const std::size_t begin = section_at(21);
  std::mt19937 random(7);
  const std::uint32_t numbers[] = {0,           1,           2,      kNoRow,     kNoRow - 1,
                                   0x7FFF'FFFF, 0x8000'0000, 0xFFFF, 0x100'0000, 0xFF};
  std::size_t refused = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string file = good;
    for (int change = 0; change <= round % 3; ++change) {
      const std::size_t at = begin + random() % ((file.size() - begin) / 4) * 4;
      put_number(file, at, numbers[random() % std::size(numbers)]);
    }
    seal(file);
    if (!refusal(file).empty()) {
      ++refused;
      continue;
    }
    const StoredPlan stored(SharedBytes::copy_of(file));
    const PlanView& plan = stored.view();
    CHECK(!plan_json(plan).empty());  // every row is read
    CHECK(live_bytes(plan).size() == plan.facts().times);
  }
  CHECK(refused > 5'000);
}

TEST_CASE("plan file: damage is an error that names the file") {
  const TemporaryFolder folder;
  const FolderEntry entry = Folder::open(folder.path()) / "plan.bin";
  CHECK(error_of([&] { StoredPlan::open(entry); }).code() == ErrorCode::kIo);
  for (const std::string& content : {std::string(), std::string("{}"), std::string(4096, '\0')}) {
    put(folder / "plan.bin", content);
    const Error error = error_of([&] { StoredPlan::open(entry); });
    CHECK(error.code() == ErrorCode::kBadInput);
    CHECK(contains(error.message(), "plan.bin': "));
    CHECK(contains(error.hint(), "train --resume auto"));
  }
}

TEST_CASE("plan file: a file that is too long is refused before anything of it is read") {
  const TemporaryFolder folder;
  const FolderEntry entry = Folder::open(folder.path()) / "plan.bin";
  write_plan_file(chain_plan(2), entry);
  std::filesystem::resize_file(folder / "plan.bin", kMostPlanFileBytes + 1);
  const Error error = error_of([&] { StoredPlan::open(entry); });
  CHECK(error.code() == ErrorCode::kBadInput);
  CHECK(contains(error.message(), "more than the allowed 4 GiB"));
}

TEST_CASE("plan file: 100,000 calls are opened and right") {
  const TemporaryFolder folder;
  const FolderEntry entry = Folder::open(folder.path()) / "plan.bin";
  constexpr int kCalls = 100'000;
  write_plan_file(chain_plan(kCalls), entry);
  const auto start = std::chrono::steady_clock::now();
  const StoredPlan stored = StoredPlan::open(entry);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  const PlanView plan = stored.view();
  REQUIRE(plan.calls.size() == kCalls);
  CHECK(plan.name_of(plan.calls[kCalls - 1]) == "relu_99999");
  CHECK(plan.operands[plan.calls[500].inputs.begin].value == 500);
  CHECK(live_bytes(plan).back() == 192);
  MESSAGE(fmt::format("a plan of 100,000 calls, {} bytes, opened in {:.3f} s",
                      get(folder / "plan.bin").size(), seconds.count()));
}

}  // namespace trainscope
