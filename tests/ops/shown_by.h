// Runs a check on the examples of some rows, and demands of each row one that shows something.
#pragma once

#include <doctest/doctest.h>

#include <string_view>

#include "engine/core/error.h"
#include "engine/ir/op_def.h"
#include "tests/support/op_examples.h"

namespace trainscope::test {

// Calls f(row, text, example) on the examples of the rows that `chosen` takes. A row must have one
// of which f says that it showed something.
template <typename Chosen, typename F>
void for_each_shown(const OpTable& ops, Chosen chosen, F f) {
  int rows = 0;
  for (const OpDef* row : ops.rows()) {
    if (!chosen(*row)) continue;
    ++rows;
    bool shown = false;
    for (std::string_view text : row->examples) {
      INFO(row->name, " \"", text, "\"");
      try {
        shown = f(*row, text, parse_example(text)) || shown;
      } catch (const Error& error) {
        FAIL_CHECK(error.message());
      }
    }
    CHECK_MESSAGE(shown, row->name, ": no example shows it");
  }
  CHECK(rows > 0);
}

}  // namespace trainscope::test
