// The legend of op classes: which there are, in an order that colours follow.
#include "gui/views/op_class.h"

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

namespace trainscope::gui {
namespace {

TEST_CASE("op_class: each class has a place in the legend, and its colour with it") {
  const std::vector<std::string_view> words = {"matmul",    "attention", "norm",     "activation",
                                               "pointwise", "reduction", "movement", "loss",
                                               "optimizer", "other"};
  REQUIRE(words.size() == kLegendPlaces);
  for (std::size_t place = 0; place < kLegendPlaces; ++place) {
    CHECK(name_of(class_at(place)) == words[place]);
    CHECK(legend_place(class_at(place)) == place);
  }
  CHECK(legend_place(OpClass::kUnstated) == legend_place(OpClass::kOther));
}

}  // namespace
}  // namespace trainscope::gui
