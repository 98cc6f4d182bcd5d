// Bytes as people write them.
#include "engine/core/byte_count.h"

#include <doctest/doctest.h>

#include <string_view>

namespace trainscope::test {

TEST_CASE("byte count: units of ten and of two, blanks before them") {
  struct Case {
    std::string_view text;
    std::int64_t bytes;
  };
  for (const Case& each :
       {Case{"1", 1}, Case{"6GiB", std::int64_t{6} << 30}, Case{"500MB", 500'000'000},
        Case{"1.5 KiB", 1536}, Case{"7 B", 7}, Case{"2TB", 2'000'000'000'000}}) {
    CAPTURE(each.text);
    CHECK(find_bytes(each.text) == each.bytes);
  }
  for (const std::string_view text :
       {"", "B", "MiB", "0", "-5", "0.5", "nan", "inf", "1e30", "much", "5 megabytes", "5mb"}) {
    CAPTURE(text);
    CHECK_FALSE(find_bytes(text).has_value());
  }
}

TEST_CASE("byte count: numbers of bytes as people read them, also below 0") {
  CHECK(bytes_text(0) == "0 B");
  CHECK(bytes_text(1536) == "1.5 KiB");
  CHECK(bytes_text(-512) == "-512 B");
}

}  // namespace trainscope::test
