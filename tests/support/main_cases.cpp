// Cases for main_test.py, which checks the exit codes that tests/support/main.cpp adds to doctest.
#include <doctest/doctest.h>

#include <cstdlib>

#include "tests/support/shared.h"

TEST_CASE("runs: passes") { CHECK(!trainscope::test::has_shared("a/name/that/nobody/has")); }

TEST_CASE("fails: only when asked to") { CHECK(std::getenv("TRAINSCOPE_TEST_FAIL") == nullptr); }

TEST_CASE("left out: always" * doctest::skip()) { FAIL("a skipped case ran"); }
