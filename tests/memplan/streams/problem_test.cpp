// Tests of what is refused of problems of several streams.
#include "memplan/streams/problem.h"

#include <doctest/doctest.h>

#include <limits>

#include "tests/memplan/streams/problems.h"

namespace trainscope::memplan {
namespace {

std::string error_of(const StreamProblem& problem) {
  return find_problem_error(problem).value_or("");
}

TEST_CASE("stream problem: random ones are clean") {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    CHECK(error_of(testing::random_stream_problem(seed, {.streams = 3})).empty());
  }
  CHECK(error_of({}).empty());
}

TEST_CASE("stream problem: operations that wait for what is not there, or for themselves") {
  CHECK(error_of({.operations = {{.id = "a", .after = {7}}}}) ==
        "operation 'a': it waits for operation #7, which does not exist");
  CHECK(error_of({.operations = {{.after = {0}}}}) == "operation #0: it waits for itself");
  CHECK(error_of({.operations = {{.stream = 64}}}) ==
        "operation #0: its stream is number 64, expected 0 to 63");
}

TEST_CASE("stream problem: a circle is named") {
  CHECK(error_of({.operations = {{.id = "a"},
                                 {.id = "b", .after = {2}},
                                 {.id = "c", .stream = 1, .after = {1}}}}) ==
        "operations wait for each other in a circle: operation 'b' after operation 'c' after "
        "operation 'b' (operations of one stream run in the order of the list)");
  // The stream's order closes it: a runs before b, but waits for it.
  CHECK(error_of({.operations = {{.id = "a", .after = {1}}, {.id = "b"}}}).find("'a' after") !=
        std::string::npos);
}

TEST_CASE("stream problem: buffers of which nobody knows when they are alive") {
  const std::vector<Operation> two = {{.id = "a"}, {.id = "b", .stream = 1}};
  CHECK(error_of({.operations = two, .buffers = {{.id = "x", .size_bytes = 1}}}) ==
        "buffer 'x': nothing writes, reads or keeps it: when is it alive?");
  CHECK(error_of({.operations = two,
                  .buffers = {{.id = "x", .size_bytes = 1, .producer = 0, .readers = {1}}}}) ==
        "buffer 'x': operation 'b' reads it but does not wait for its producer, operation 'a': "
        "add a dependency");
  CHECK(error_of({.operations = two, .buffers = {{.size_bytes = -1, .producer = 0}}}) ==
        "buffer #0: size -1 is negative");
  CHECK(error_of({.operations = two, .buffers = {{.size_bytes = 1, .producer = 2}}}) ==
        "buffer #0: its producer is operation #2, which does not exist");
  CHECK(error_of({.operations = two, .buffers = {{.producer = 0, .readers = {-1}}}}) ==
        "buffer #0: it is read by operation #-1, which does not exist");
}

TEST_CASE("stream problem: numbers out of range") {
  CHECK(error_of({.alignment_bytes = 0}) == "alignment is 0 bytes, expected 1 or more");
  CHECK(error_of({.capacity_bytes = -1}) == "capacity is -1 bytes, expected 0 or more");
  const std::int64_t half = std::numeric_limits<std::int64_t>::max() / 2;
  CHECK(error_of({.operations = {{}}, .buffers = {{.size_bytes = half, .producer = 0}}}) ==
        "the buffers' sizes add up to more than a signed 64-bit integer holds");
}

}  // namespace
}  // namespace trainscope::memplan
