// Changes a serialized ModelProto so that it stays one: what random bytes rarely do.
#pragma once

#include <cstddef>
#include <cstdint>

namespace trainscope::test {

struct FuzzBuffer {
  std::uint8_t* data = nullptr;
  std::size_t size = 0;
  std::size_t max_size = 0;
};

// The new size. Falls back to libFuzzer's own byte mutations for bytes that do not parse, for
// models that grow beyond max_size, and for every odd seed.
std::size_t mutate_model(const FuzzBuffer& buffer, unsigned int seed);

}  // namespace trainscope::test
