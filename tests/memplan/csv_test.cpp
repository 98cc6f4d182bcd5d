// Tests of the CSV reader and writer.
#include "memplan/csv.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tests/memplan/problems.h"

namespace trainscope::memplan {
namespace {

using std::string;

TEST_CASE("csv: reads rows in order, with LF or CRLF, with or without a last line end") {
  for (const char* text :
       {"id,lower,upper,size\nb1,0,3,4\n7,3,9,0\n", "id,lower,upper,size\r\nb1,0,3,4\r\n7,3,9,0",
        "id,lower,upper,size\nb1,0,3,4\n7,3,9,0"}) {
    const ParsedProblem parsed = parse_problem_csv(text);
    CHECK(parsed.message.empty());
    REQUIRE(parsed.problem.buffers.size() == 2);
    CHECK(parsed.problem.alignment_bytes == 1);
    CHECK(parsed.problem.buffers[0].id == "b1");
    CHECK(parsed.problem.buffers[0].lower == 0);
    CHECK(parsed.problem.buffers[0].upper == 3);
    CHECK(parsed.problem.buffers[0].size_bytes == 4);
    CHECK(parsed.problem.buffers[1].id == "7");
    CHECK(parsed.problem.buffers[1].size_bytes == 0);
  }
  CHECK(parse_problem_csv("id,lower,upper,size").problem.buffers.empty());
  CHECK(parse_problem_csv("id,lower,upper,size\n").message.empty());
}

TEST_CASE("csv: malformed input is refused with its line and reason") {
  struct Case {
    string rows;  // after a good header and one good row
    string message;
  };
  const std::vector<Case> cases = {
      {"b\n", "line 3: expected 4 columns id,lower,upper,size, found 1 in 'b'"},
      {"b,1,2\n", "line 3: expected 4 columns id,lower,upper,size, found 3 in 'b,1,2'"},
      {"b,1,2,3,4\n", "line 3: expected 4 columns id,lower,upper,size, found 5 in 'b,1,2,3,4'"},
      {"b,1,2,3\n\n", "line 4: expected 4 columns id,lower,upper,size, found 1 in ''"},
      {",1,2,3\n", "line 3: the id is empty"},
      {"b,,2,3\n", "line 3: lower '' is not a whole number"},
      {"b,1,2,\n", "line 3: size '' is not a whole number"},
      {"b,x,2,3\n", "line 3: lower 'x' is not a whole number"},
      {"b,1,2.5,3\n", "line 3: upper '2.5' is not a whole number"},
      {"b,1,1e3,3\n", "line 3: upper '1e3' is not a whole number"},
      {"b, 1,2,3\n", "line 3: lower ' 1' is not a whole number"},
      {"b,+1,2,3\n", "line 3: lower '+1' is not a whole number"},
      {"b,0x1,2,3\n", "line 3: lower '0x1' is not a whole number"},
      {"b,-1,2,3\n", "line 3: lower '-1' is negative"},
      {"b,1,2,-3\n", "line 3: size '-3' is negative"},
      {"b,1,2,9223372036854775808\n",
       "line 3: size '9223372036854775808' does not fit a signed 64-bit integer"},
      {"b,1,-99999999999999999999,3\n",
       "line 3: upper '-99999999999999999999' does not fit a signed 64-bit integer"},
      {"b,2,2,3\n", "line 3: upper 2 is not after lower 2 (upper is exclusive)"},
      {"b,3,2,3\n", "line 3: upper 2 is not after lower 3 (upper is exclusive)"},
      {"a,1,2,3\n", "line 3: the id 'a' was used in line 2 already"},
      {"\"b\",1,2,3\n",
       "line 3: the id '\"b\"' has a quote or control character (quoting is not supported)"},
      {"b\t,1,2,3\n",
       "line 3: the id 'b?' has a quote or control character (quoting is not supported)"},
      {string("b\0c,1,2,3\n", 10),
       "line 3: the id 'b?c' has a quote or control character (quoting is not supported)"},
      {string(300, 'z') + ",1,2,3\n",
       "line 3: the id '" + string(40, 'z') + "...' is longer than 256 bytes"},
      {"b,1,2," + string(100000, '9') + "\n",
       "line 3: size '" + string(40, '9') + "...' does not fit a signed 64-bit integer"},
      {"b,1,2,9000000000000000000\nc,5,6,9000000000000000000\n",
       "the buffers' sizes add up to more than a signed 64-bit integer holds"},
  };
  for (const Case& c : cases) {
    const ParsedProblem parsed = parse_problem_csv("id,lower,upper,size\na,0,1,1\n" + c.rows);
    CHECK(parsed.message == c.message);
    CHECK(parsed.problem.buffers.empty());
  }
}

TEST_CASE("csv: a wrong header is refused") {
  for (const char* text :
       {"", "\n", "a,0,1,1\n", "id,lower,upper\n", "id,lower,upper,size,offset\n",
        "id,upper,lower,size\n", "ID,lower,upper,size\n", "\xef\xbb\xbfid,lower,upper,size\n",
        "id;lower;upper;size\n", " id,lower,upper,size\n"}) {
    const ParsedProblem parsed = parse_problem_csv(text);
    CHECK(parsed.message.starts_with("line 1: the header is '"));
    CHECK(parsed.message.ends_with("', expected 'id,lower,upper,size'"));
  }
}

TEST_CASE("csv: writes ids and rows in their order with the offset last") {
  const ParsedProblem parsed = parse_problem_csv("id,lower,upper,size\nb,0,3,4\na,3,9,5\n");
  const std::vector<std::int64_t> offsets = {8, 0};
  CHECK(write_solution_csv(parsed.problem, offsets) ==
        "id,lower,upper,size,offset\nb,0,3,4,8\na,3,9,5,0\n");
}

TEST_CASE("csv: what was written without the offsets reads back equal") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Problem problem = testing::random_problem(seed, {.buffers = 50});
    const std::vector<std::int64_t> offsets(problem.buffers.size(), 3);
    string text = write_solution_csv(problem, offsets);
    for (std::size_t at = text.find(",3\n"); at != string::npos; at = text.find(",3\n", at)) {
      text.erase(at, 2);
      ++at;
    }
    text.erase(text.find(",offset"), 7);
    const ParsedProblem parsed = parse_problem_csv(text);
    REQUIRE(parsed.message == "");
    REQUIRE(parsed.problem.buffers.size() == problem.buffers.size());
    for (std::size_t i = 0; i < offsets.size(); ++i) {
      CHECK(parsed.problem.buffers[i].id == problem.buffers[i].id);
      CHECK(parsed.problem.buffers[i].lower == problem.buffers[i].lower);
      CHECK(parsed.problem.buffers[i].upper == problem.buffers[i].upper);
      CHECK(parsed.problem.buffers[i].size_bytes == problem.buffers[i].size_bytes);
    }
  }
}

TEST_CASE("csv: no truncation or flipped byte makes the reader misbehave") {
  const string good = "id,lower,upper,size\nb1,0,30,400\nb2,3,9,4\n";
  for (std::size_t at = 0; at < good.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ (1 << bit));
      const ParsedProblem parsed = parse_problem_csv(bad);
      CHECK(parsed.message.empty() == (find_problem_error(parsed.problem) == std::nullopt &&
                                       !parsed.problem.buffers.empty()));
    }
    const ParsedProblem cut = parse_problem_csv(good.substr(0, at));
    CHECK((cut.message.empty() || cut.problem.buffers.empty()));
  }
}

}  // namespace
}  // namespace trainscope::memplan
