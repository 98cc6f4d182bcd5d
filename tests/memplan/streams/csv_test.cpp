// Tests of the two files of several streams.
#include "memplan/streams/csv.h"

#include <doctest/doctest.h>

#include "memplan/place_csv.h"

namespace trainscope::memplan {
namespace {

constexpr const char* kOperations =
    "id,stream,after\nload,copy,\nfirst,compute,load\nnext,compute,\nstore,copy,first next\n";
constexpr const char* kBuffers =
    "id,size,producer,readers\nweights,100,,first next\nin,10,load,first\nmid,20,first,next store\n"
    "out,30,next,*\n";

std::string error_of(const StreamTexts& texts) { return parse_streams_csv(texts).message; }

TEST_CASE("streams csv: names become numbers, and rows are written with their offsets") {
  const ParsedStreams parsed = parse_streams_csv({kOperations, kBuffers});
  REQUIRE(parsed.message.empty());
  CHECK(parsed.problem.operations[3].stream == parsed.problem.operations[0].stream);
  CHECK(parsed.problem.operations[3].after == std::vector<std::int32_t>{1, 2});
  CHECK(parsed.problem.buffers[0].producer == kNoOperation);
  CHECK(parsed.problem.buffers[2].readers == std::vector<std::int32_t>{2, 3});
  CHECK(parsed.problem.buffers[3].kept);
  const std::vector<std::int64_t> offsets = {0, 100, 110, 130};
  CHECK(write_solution_csv(parsed.problem, offsets) ==
        "id,size,producer,readers,offset\nweights,100,,first next,0\nin,10,load,first,100\n"
        "mid,20,first,next store,110\nout,30,next,*,130\n");
}

TEST_CASE("streams csv: place_streams_csv lays them out") {
  const PlaceOutcome outcome = place_streams_csv({kOperations, kBuffers}, {});
  CHECK(outcome.status == Status::kPlaced);
  CHECK(outcome.solution.height_bytes == 150);
  CHECK(outcome.solution.proven);
  CHECK(outcome.csv.starts_with("id,size,producer,readers,offset\n"));
  const PlaceOutcome over = place_streams_csv({kOperations, kBuffers}, {.capacity_bytes = 149});
  CHECK(over.status == Status::kOverCapacity);
  CHECK(over.csv.empty());
}

TEST_CASE("streams csv: operations that cannot be read are refused with their line") {
  CHECK(error_of({"id,stream\n", kBuffers}) ==
        "operations, line 1: the header is 'id,stream', expected 'id,stream,after'");
  CHECK(error_of({"id,stream,after\na,s\n", kBuffers}) ==
        "operations, line 2: expected 3 columns id,stream,after, found 2 in 'a,s' (separate names "
        "in one column by spaces)");
  CHECK(error_of({"id,stream,after\na,s,\na,s,\n", kBuffers}) ==
        "operations, line 3: the id 'a' was used in line 2 already");
  CHECK(error_of({"id,stream,after\na,s,b\n", kBuffers}) ==
        "operations, line 2: after names 'b', which is no operation");
  CHECK(error_of({"id,stream,after\na b,s,\n", kBuffers}) ==
        "operations, line 2: the id 'a b' has a space or is '*'");
  CHECK(error_of({"id,stream,after\n,s,\n", kBuffers}) == "operations, line 2: the id is empty");
  CHECK(error_of({"id,stream,after\na,,\n", kBuffers}) ==
        "operations, line 2: stream: the id is empty");
  CHECK(error_of({"id,stream,after\na,s,b\nb,s,\n", "id,size,producer,readers\n"})
            .starts_with("operations wait for each other in a circle: operation 'a' after "));
  std::string many = "id,stream,after\n";
  for (int i = 0; i < 65; ++i) many += "o" + std::to_string(i) + ",s" + std::to_string(i) + ",\n";
  CHECK(error_of({many, kBuffers}) == "operations, line 66: more than 64 streams");
}

TEST_CASE("streams csv: buffers that cannot be read are refused with their line") {
  const std::string head = "id,size,producer,readers\n";
  const auto refused = [&](const std::string& row) {
    const std::string text = head + row + "\n";
    return error_of({kOperations, text});
  };
  CHECK(error_of({kOperations, "id,size\n"}).starts_with("buffers, line 1: the header is"));
  CHECK(refused("x,-5,load,") == "buffers, line 2: size '-5' is negative");
  CHECK(refused("x,5,lod,") == "buffers, line 2: producer names 'lod', which is no operation");
  CHECK(refused("x,5,load,first nxt") ==
        "buffers, line 2: readers names 'nxt', which is no operation");
  CHECK(refused("x,5,load") ==
        "buffers, line 2: expected 4 columns id,size,producer,readers, found 3 in 'x,5,load' "
        "(separate names in one column by spaces)");
  CHECK(refused("x,5,,") == "buffer 'x': nothing writes, reads or keeps it: when is it alive?");
  CHECK(refused("x,5,next,first") ==
        "buffer 'x': operation 'first' reads it but does not wait for its producer, operation "
        "'next': add a dependency");
}

}  // namespace
}  // namespace trainscope::memplan
