// The entry point of every test program: doctest, plus exit code 77 when nothing could run.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace {

constexpr int kSkipReturnCode = 77;  // ctest shows the test as skipped

// Doctest creates its listeners itself, without arguments: this is how a count gets out of one.
unsigned& matching_test_cases() {
  static unsigned count = 0;
  return count;
}

struct CountListener : doctest::IReporter {
  explicit CountListener(const doctest::ContextOptions& /*options*/) {}
  void report_query(const doctest::QueryData& data) override {
    if (data.run_stats != nullptr) {
      matching_test_cases() = data.run_stats->numTestCasesPassingFilters;
    }
  }
  void test_run_end(const doctest::TestRunStats& stats) override {
    matching_test_cases() = stats.numTestCasesPassingFilters;
  }
  void test_run_start() override {}
  void test_case_start(const doctest::TestCaseData& /*test*/) override {}
  void test_case_reenter(const doctest::TestCaseData& /*test*/) override {}
  void test_case_end(const doctest::CurrentTestCaseStats& /*stats*/) override {}
  void test_case_exception(const doctest::TestCaseException& /*exception*/) override {}
  void subcase_start(const doctest::SubcaseSignature& /*subcase*/) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData& /*assertion*/) override {}
  void log_message(const doctest::MessageData& /*message*/) override {}
  void test_case_skipped(const doctest::TestCaseData& /*test*/) override {}
};

REGISTER_LISTENER("count", 1, CountListener);

// Test cases that match the filters of the command line, those with a skip() decorator included.
unsigned count_with_skipped(int argc, char** argv) {
  doctest::Context context(argc, argv);
  context.setOption("no-skip", true);
  context.setOption("count", true);
  context.run();
  return matching_test_cases();
}

// Runs that leave AVX-512 unused are those of all others where there is none.
bool lacks_what_it_needs() {
  const char* needs = std::getenv("TRAINSCOPE_TEST_NEEDS");
  return needs != nullptr && std::string_view(needs) == "avx512" &&
         !__builtin_cpu_supports("avx512f");
}

}  // namespace

int main(int argc, char** argv) {
  if (lacks_what_it_needs()) {
    std::fputs("skipped: this processor has no AVX-512\n", stderr);
    return kSkipReturnCode;
  }
  doctest::Context context(argc, argv);
  const int result = context.run();
  if (context.shouldExit() || result != 0 || matching_test_cases() > 0) return result;
  if (count_with_skipped(argc, argv) > 0) return kSkipReturnCode;
  std::fputs("no test case matches the filter: a run of nothing must not pass\n", stderr);
  return 1;
}
