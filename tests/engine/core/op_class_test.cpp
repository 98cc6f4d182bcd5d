// Words of op classes.
#include "engine/core/op_class.h"

#include <doctest/doctest.h>

#include <set>
#include <string_view>

namespace trainscope {
namespace {

TEST_CASE("op_class: each class has a word of its own, its number is the one in plan.bin") {
  std::set<std::string_view> words;
  for (std::size_t i = 0; i < kOpClasses; ++i) words.insert(name_of(static_cast<OpClass>(i)));
  CHECK(words.size() == kOpClasses);
  CHECK(!words.contains(""));
  CHECK(static_cast<int>(OpClass::kUnstated) == 0);
  CHECK(name_of(static_cast<OpClass>(1)) == "matmul");
  CHECK(name_of(static_cast<OpClass>(6)) == "reduction");
  CHECK(name_of(static_cast<OpClass>(10)) == "other");
  CHECK(static_cast<std::size_t>(OpClass::kOther) == kOpClasses - 1);
}

}  // namespace
}  // namespace trainscope
