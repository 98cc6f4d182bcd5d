// A sum's error is told by the part that is missing, there twice, or of another size.
#include "engine/bisect/contributions.h"

#include <doctest/doctest.h>

namespace trainscope::test {
namespace {

const std::vector<Coordinates> kParts = {{0.0, 0.0, 0.0}, {1.0, 2.0, 0.0}, {0.0, 1.0, -4.0}};
const NamedNode kReader{.op = "Add", .name = "/a"};

// What contribution_fault says where the second part is in the sum so many times.
ContributionFault fault_of(double times) {
  const std::optional<Explanation> found =
      explained_by(sum_of({0.0, 0.0, 0.0}, times - 1.0, kParts[1]), kParts);
  REQUIRE(found.has_value());
  CHECK(found->part == 1);
  CHECK(found->left == doctest::Approx(0.0));
  return contribution_fault(kReader, 1.0 + found->factor);
}

}  // namespace

TEST_CASE("contributions: the part that explains the error is named") {
  CHECK(fault_of(0.0).cause == "the contribution of Add '/a' is missing");
  CHECK(fault_of(0.0).kind == FaultKind::kGraph);
  CHECK(fault_of(2.0).cause == "the contribution of Add '/a' is counted twice");
  CHECK(fault_of(2.0).kind == FaultKind::kGraph);
  CHECK(fault_of(0.5).cause == "the contribution of Add '/a' is 0.5 times what it must be");
  CHECK(fault_of(0.5).kind == FaultKind::kOp);
  CHECK(fault_of(-1.0).cause == "the contribution of Add '/a' is of the other sign");
}

TEST_CASE("contributions: what no part explains is left, and of zeros nothing is said") {
  const std::optional<Explanation> found = explained_by({0.0, 3.0, 3.0}, kParts);
  REQUIRE(found.has_value());
  CHECK(found->left > 2.0);
  CHECK_FALSE(explained_by({1.0, 1.0, 1.0}, std::span(kParts).first(1)).has_value());
}

}  // namespace trainscope::test
