// Examples that an op's shape rule must refuse.
#pragma once

#include <string_view>

namespace trainscope::test {

struct Refusal {
  std::string_view op;
  std::string_view example;  // in the grammar of OpDef::examples
  std::string_view message;  // a piece of it
};

// The op's shape rule refuses the example with kBadInput and says why.
void check_refused(const Refusal& refusal);

}  // namespace trainscope::test
