// The engine against the stored numbers of every reference folder in tests/data/models.
#include "engine/check/verify.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "tests/engine/core/core_test_tools.h"

namespace trainscope {
namespace {

std::filesystem::path folder_of(std::string_view model) {
  return std::filesystem::path(TRAINSCOPE_SOURCE_DIR) / "tests/data/models" / model;
}

std::size_t rows_of(const VerifyReport& report, std::string_view what) {
  return static_cast<std::size_t>(
      std::ranges::count(report.rows, what, [](const VerifyRow& row) { return row.what; }));
}

void check_all_rows(const VerifyReport& report) {
  for (const VerifyRow& row : report.rows) {
    INFO(row.what << " " << row.name << ": error " << row.error << ", limit " << row.limit);
    CHECK(row.ok());
  }
  CHECK(report.failed == 0);
  MESSAGE(fmt::format("{}: {} rows, largest error / limit {:.2f}",
                      report.folder.filename().string(), report.rows.size(), report.worst_share));
}

// What a folder must have been compared on, so that an empty comparison cannot pass.
struct Expected {
  std::string_view model;
  std::size_t gradients;  // trained parameters, once in f32 and once in f64
  std::size_t activations;
};

}  // namespace

TEST_CASE("verify: every number of every reference folder is within its limit") {
  constexpr Expected kExpected[] = {{"mlp", 6, 3},   {"lenet", 10, 5}, {"resnet18", 62, 5},
                                    {"gpt2", 28, 5}, {"bert", 42, 5},  {"llama", 21, 5}};
  for (const Expected& expected : kExpected) {
    SUBCASE(std::string(expected.model).c_str()) {
      const VerifyReport report = verify_reference(folder_of(expected.model), {});
      check_all_rows(report);
      CHECK(rows_of(report, "loss") == 2);
      CHECK(rows_of(report, "grad") == 2 * expected.gradients);
      CHECK(rows_of(report, "act") >= expected.activations);
      CHECK(rows_of(report, "dact") >= expected.activations);
      CHECK(rows_of(report, "losses") == 2);
      CHECK(rows_of(report, "param") >= 2 * expected.gradients);
    }
  }
}

// The stored numbers are those of the right optimizer: most of its parameters must be out.
TEST_CASE("verify: another epsilon, decay or beta of AdamW is out of the limits") {
  struct Mistake {
    std::string right;
    std::string wrong;
  };
  const Mistake mistakes[] = {{R"("eps": 1e-08)", R"("eps": 1e-06)"},
                              {R"("eps": 1e-08)", R"("eps": 2e-08)"},
                              {R"("weight_decay": 0.01)", R"("weight_decay": 0.0)"},
                              {R"(0.999)", R"(0.99)"}};
  for (const Mistake& mistake : mistakes) {
    CAPTURE(mistake.wrong);
    const TemporaryFolder folder;
    std::filesystem::copy(folder_of("lenet"), folder.path());
    std::string meta = get(folder / "meta.json");
    const std::size_t at = meta.find(mistake.right);
    REQUIRE(at != std::string::npos);
    meta.replace(at, mistake.right.size(), mistake.wrong);
    put(folder / "meta.json", meta);
    const VerifyReport report = verify_reference(folder.path(), {});
    const auto out = std::ranges::count_if(report.rows, [](const VerifyRow& row) {
      return row.what == "param" && row.name.starts_with("adamw") && !row.ok();
    });
    CHECK(out >= 5);
  }
}

// resnet18 is left out: with rounded operands some of its Relus switch, and gradients say nothing.
TEST_CASE("verify: loss and gradients in bf16 are as near as rounded operands let them be") {
  for (const char* model : {"mlp", "lenet", "gpt2", "bert", "llama"}) {
    SUBCASE(model) {
      VerifyOptions options;
      options.precision = StepPrecision::kBF16;
      const VerifyReport report = verify_reference(folder_of(model), options);
      check_all_rows(report);
      CHECK(rows_of(report, "loss") == 1);
      CHECK(rows_of(report, "grad") >= 6);
      CHECK(rows_of(report, "grads") == 1);
      CHECK(report.worst_share > 0.01);  // f32 would be far below
    }
  }
}

TEST_SUITE("slow") {
  TEST_CASE("verify: 400 steps of convergence-gpt2 in bf16 and fp16 stay within 1 % of the curve") {
    for (StepPrecision precision : {StepPrecision::kBF16, StepPrecision::kF16}) {
      CAPTURE(name_of(precision));
      VerifyOptions options;
      options.precision = precision;
      const VerifyReport report = verify_reference(folder_of("convergence-gpt2"), options);
      check_all_rows(report);
      CHECK(rows_of(report, "losses") == 1);
      CHECK(rows_of(report, "validation") == 5);
    }
  }
  TEST_CASE("verify: 400 steps of convergence-gpt2 follow the stored float64 curve") {
    const VerifyReport report = verify_reference(folder_of("convergence-gpt2"), {});
    check_all_rows(report);
    CHECK(rows_of(report, "losses") == 1);
    CHECK(rows_of(report, "validation") == 5);
  }
}

}  // namespace trainscope
