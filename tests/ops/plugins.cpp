// Loads the plugin that TRAINSCOPE_PLUGIN names before the suite begins, whose rows and kernels are
// then tested as all others are.
#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>

#include "engine/core/error.h"
#include "engine/plugin/plugin.h"

namespace trainscope::test {
namespace {

struct PluginLoader : doctest::IReporter {
  explicit PluginLoader(const doctest::ContextOptions& /*options*/) {}
  void test_run_start() override {
    const char* file = std::getenv("TRAINSCOPE_PLUGIN");
    if (file == nullptr || *file == '\0') return;
    try {
      const LoadedPlugin& plugin = load_plugin(file);
      std::printf("with the plugin '%s': %zu ops, %zu kernels\n", plugin.name.c_str(),
                  plugin.ops.size(), plugin.kernels.size());
    } catch (const Error& error) {
      std::fprintf(stderr, "%s\n", error.what());
      std::exit(1);
    }
  }
  void report_query(const doctest::QueryData& /*data*/) override {}
  void test_run_end(const doctest::TestRunStats& /*stats*/) override {}
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

REGISTER_LISTENER("plugins", 1, PluginLoader);

}  // namespace
}  // namespace trainscope::test
