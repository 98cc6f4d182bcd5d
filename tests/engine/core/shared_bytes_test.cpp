// Bytes keep what they lie in.
#include "engine/core/shared_bytes.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <string>

#include "tests/engine/core/core_test_tools.h"

namespace trainscope {
namespace {

std::string text_of(const SharedBytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.bytes().data()), bytes.size()};
}

TEST_CASE("shared bytes: a part of a file is there when nobody else has the file") {
  const TemporaryFolder folder;
  put(folder / "file", "0123456789");
  SharedBytes part;
  {
    const SharedBytes all(MappedFile::open(folder / "file"));
    CHECK(text_of(all) == "0123456789");
    part = all.part(3, 4);
  }
  CHECK(text_of(part) == "3456");
  CHECK(part.holder().use_count() == 1);
  CHECK(text_of(part.part(1, 2)) == "45");
}

TEST_CASE("shared bytes: a copy begins at a multiple of eight") {
  for (const char* text : {"", "1", "12345678", "123456789"}) {
    const SharedBytes copy = SharedBytes::copy_of(std::string(text));
    CHECK(text_of(copy) == text);
    CHECK(reinterpret_cast<std::uintptr_t>(copy.bytes().data()) % 8 == 0);
  }
  CHECK(SharedBytes().size() == 0);
}

}  // namespace
}  // namespace trainscope
