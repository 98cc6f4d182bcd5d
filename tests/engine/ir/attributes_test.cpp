// Copies of attributes and of source names: shared, but each its own.
#include "engine/ir/attributes.h"

#include <doctest/doctest.h>

#include "engine/ir/provenance.h"

namespace trainscope::test {

TEST_CASE("attributes: a copy does not see what its original sets or erases, nor the reverse") {
  Attributes original{{"axis", std::int64_t{1}}, {"mode", std::string("sum")}};
  Attributes copy = original;
  CHECK(&copy.map() == &original.map());  // one list for both
  CHECK(copy == original);
  original.set("axis", std::int64_t{2});
  CHECK(original.integer("axis", 0) == 2);
  CHECK(copy.integer("axis", 0) == 1);
  copy.erase("mode");
  CHECK_FALSE(copy.has("mode"));
  CHECK(original.text("mode", "") == "sum");
  CHECK_FALSE(copy == original);
  copy.erase("absent");
  CHECK(copy.map().size() == 1);
  Attributes none;
  CHECK(none.map().empty());
  CHECK(none == Attributes{});
  none.set("axis", std::int64_t{3});
  CHECK(none.integer("axis", 0) == 3);
  CHECK(Attributes().map().empty());
}

TEST_CASE("source names: a copy does not see what its original adds, nor the reverse") {
  SourceNames original{"a", "b"};
  SourceNames copy = original;
  CHECK(&copy.list() == &original.list());
  original.add("c");
  copy.add("d");
  CHECK(original == SourceNames{"a", "b", "c"});
  CHECK(copy == SourceNames{"a", "b", "d"});
  SourceNames none;
  CHECK(none.empty());
  none.add("e");
  CHECK(none.size() == 1);
  CHECK(SourceNames().empty());
}

}  // namespace trainscope::test
