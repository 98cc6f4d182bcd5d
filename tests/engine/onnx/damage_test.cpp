// A small model damaged at every place: reading it ends in an Error or in a graph, never elsewhere.
#include <doctest/doctest.h>

#include <exception>

#include "engine/core/text.h"
#include "tests/engine/onnx/onnx_test_tools.h"

namespace trainscope::test {
namespace {

// Empty when the bytes are read or refused as they should be, else what happened instead.
std::string outcome(std::string_view bytes) {
  try {
    Graph graph = to_graph(read_bytes(bytes), all_ops());
    return join(verify(graph), "; ");
  } catch (const Error& error) {
    bool documented = error.code() == ErrorCode::kBadInput || error.code() == ErrorCode::kUsage;
    return documented && !error.message().empty() ? "" : "code or message: " + error.message();
  } catch (const std::exception& error) {
    return std::string("another exception: ") + error.what();
  }
}

}  // namespace

TEST_CASE("damaged model: cut short at every byte") {
  const std::string whole = bytes_of(small_model());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    INFO("the first ", size, " bytes");
    CHECK(outcome(std::string_view(whole).substr(0, size)) == "");
  }
}

TEST_CASE("damaged model: every bit flipped") {
  const std::string whole = bytes_of(small_model());
  for (std::size_t i = 0; i < whole.size() * 8; ++i) {
    INFO("bit ", i);
    std::string damaged = whole;
    damaged[i / 8] = static_cast<char>(damaged[i / 8] ^ (1 << (i % 8)));
    CHECK(outcome(damaged) == "");
  }
}

TEST_CASE("damaged model: pieces removed, doubled and overwritten") {
  const std::string whole = bytes_of(small_model());
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (std::size_t count : {1U, 2U, 7U}) {
      INFO(count, " bytes at ", at);
      std::string removed = whole;
      removed.erase(at, count);
      CHECK(outcome(removed) == "");
      std::string doubled = whole;
      doubled.insert(at, whole.substr(at, count));
      CHECK(outcome(doubled) == "");
      std::string overwritten = whole;
      for (std::size_t i = at; i < std::min(at + count, whole.size()); ++i) overwritten[i] = '\xff';
      CHECK(outcome(overwritten) == "");
    }
  }
}

}  // namespace trainscope::test
