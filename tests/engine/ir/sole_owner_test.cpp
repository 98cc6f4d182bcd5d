// Who may change in place what was shared.
#include "engine/ir/sole_owner.h"

#include <doctest/doctest.h>

#include <memory>
#include <thread>
#include <utility>

namespace trainscope::test {

TEST_CASE("sole owner: one of one, not one of two, nobody of nothing") {
  auto shared = std::make_shared<int>(1);
  CHECK(is_sole_owner(shared));
  auto other = shared;
  CHECK_FALSE(is_sole_owner(shared));
  CHECK_FALSE(is_sole_owner(other));
  other.reset();
  CHECK(is_sole_owner(shared));
  CHECK_FALSE(is_sole_owner(other));
}

TEST_CASE("sole owner: after the other owner's thread has read, and let go") {
  for (int round = 0; round < 200; ++round) {
    auto shared = std::make_shared<int>(round);
    int seen = -1;
    std::thread reader([mine = shared, &seen]() mutable {
      seen = *mine;
      mine.reset();
    });
    while (!is_sole_owner(shared)) std::this_thread::yield();
    *shared = -1;
    reader.join();
    CHECK(seen == round);
  }
}

}  // namespace trainscope::test
