// Positions by name, while names come and go.
#include "engine/ir/name_index.h"

#include <doctest/doctest.h>

#include <map>
#include <random>
#include <string>

namespace trainscope::test {
namespace {

struct Thing {
  std::string name;
};

}  // namespace

TEST_CASE("name index: finds what was added and not what was erased, as a map does") {
  std::vector<Thing> things;
  NameIndex index;
  std::map<std::string, std::int32_t> expected;
  CHECK(index.find(things, "n0") == NameIndex::kNone);
  std::mt19937 random(7);
  for (int round = 0; round < 5000; ++round) {
    const std::string name = "n" + std::to_string(random() % 300);
    const auto found = expected.find(name);
    CHECK(index.find(things, name) == (found == expected.end() ? NameIndex::kNone : found->second));
    if (found != expected.end() && random() % 2 == 0) {
      index.erase(things, found->second);
      expected.erase(found);
      continue;
    }
    things.push_back({name});
    const auto position = static_cast<std::int32_t>(things.size() - 1);
    CHECK(index.add(things, position) == expected.emplace(name, position).second);
  }
  CHECK(expected.size() > 100);
}

TEST_CASE("name index: a name that comes and goes for ever needs no more slots") {
  std::vector<Thing> things{{"a"}, {"b"}};
  NameIndex index;
  REQUIRE(index.add(things, 0));
  for (int round = 0; round < 1000; ++round) {
    things[1].name = "b" + std::to_string(round);
    REQUIRE(index.add(things, 1));
    index.erase(things, 1);
    REQUIRE(index.find(things, things[1].name) == NameIndex::kNone);
    REQUIRE(index.find(things, "a") == 0);
  }
}

}  // namespace trainscope::test
