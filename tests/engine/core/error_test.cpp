// Tests of errors and of checked invariants.
#include "engine/core/error.h"

#include <doctest/doctest.h>

#include "tests/engine/core/core_test_tools.h"
#include "tests/support/ended.h"

namespace trainscope {
namespace {

TEST_CASE("error: carries code, message, where and the first hint") {
  const Error error = error_of([] {
    throw Error(ErrorCode::kBadInput, "wrong").at("node 'a'").at("file 'm'").hint("x").hint("y");
  });
  CHECK(error.code() == ErrorCode::kBadInput);
  CHECK(std::string_view(error.what()) == "wrong");
  CHECK(error.context() == std::vector<std::string>{"node 'a'", "file 'm'"});
  CHECK(error.hint() == "x");
}

TEST_CASE("error: require throws only when its condition fails") {
  require(true, ErrorCode::kUsage, "no {}", 1);
  const Error error = error_of([] { require(false, ErrorCode::kUsage, "{} of {}", 1, "two"); });
  CHECK(error.code() == ErrorCode::kUsage);
  CHECK(error.message() == "1 of two");
}

TEST_CASE("error: what is not supported is bad input with a mark") {
  require_supported(true, "no {}", 1);
  const Error error = error_of([] { require_supported(false, "{} of {}", 1, "two"); });
  CHECK(error.code() == ErrorCode::kBadInput);
  CHECK(error.message() == "1 of two");
  CHECK(error.unsupported());
  CHECK_FALSE(error_of([] { fail(ErrorCode::kBadInput, "broken"); }).unsupported());
}

void fail_check() { check_failed("1 < 0", "engine/x.cpp", 42); }

TEST_CASE("error: a failed invariant says file, line and condition and ends the program") {
#ifdef TRAINSCOPE_CHECKS_ABORT
  constexpr auto kWanted = test::Ended::By::kAbort;
#else
  constexpr auto kWanted = test::Ended::By::kException;
#endif
  const test::Ended ended = test::ended(fail_check);
  CHECK(ended.by == kWanted);
  CHECK(ended.text.starts_with("engine/x.cpp:42: check failed: 1 < 0; this is a bug"));
}

TEST_CASE("error: an invariant that holds does nothing") {
  int evaluated = 0;
  CHECK_INVARIANT(++evaluated == 1);
  CHECK(evaluated == 1);
}

}  // namespace
}  // namespace trainscope
