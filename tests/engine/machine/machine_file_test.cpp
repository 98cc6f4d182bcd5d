// Machines in files: there and back, and what is refused.
#include "engine/machine/machine_file.h"

#include <doctest/doctest.h>

#include <string>
#include <string_view>

#include "tests/engine/core/core_test_tools.h"

namespace trainscope {
namespace {

Machine measured() {
  Machine machine = default_machine();
  machine.name = "a test";
  machine.cores = 3;
  machine.levels.insert(machine.levels.begin(), {.name = "L1",
                                                 .bytes = 49152,
                                                 .read = {.one = 4e11, .all = 1.2e12},
                                                 .write = {.one = 2e11, .all = 6e11},
                                                 .copy = {.one = 3.1e11, .all = 9.3e11},
                                                 .update = Rate{.one = 3.3e11, .all = 9.8e11}});
  machine.flops_per_second[DType::kF64] = {.one = 6.1e10, .all = 1.1e11};
  machine.flops_per_second[DType::kBF16] = {.one = 2.44e11, .all = 4.7e11};
  return machine;
}

// The file's text with `from` replaced.
std::string changed(std::string_view from, std::string_view to) {
  std::string text = machine_json(measured()).dump();
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

void refused(const std::string& text, std::string_view part) {
  const Error error = error_of([&] { (void)machine_of(Json::parse(text)); });
  CHECK(error.code() == ErrorCode::kBadInput);
  INFO(error.message());
  CHECK(contains(error.message(), part));
}

}  // namespace

TEST_CASE("machine file: reads what was written") {
  const TemporaryFolder folder;
  for (const Machine& machine : {default_machine(), measured()}) {
    write_machine(folder / "m.json", machine);
    CHECK(read_machine(folder / "m.json") == machine);
  }
}

TEST_CASE("machine file: bad input names the key") {
  refused("[]", "the file is an array");
  refused(R"({"format":"else"})", "'format' is not 'trainscope-machine'");
  refused(changed(R"("version":1)", R"("version":2)"), "'version' is 2, this program reads 1");
  refused(changed(R"("version":1)", R"("version":"1")"), "'version' must be a whole number");
  refused(changed(R"("cores":3)", R"("cores":0)"), "'cores' must be a whole number from 1");
  refused(changed(R"("cores":3,)", ""), "'cores' is missing");
  refused(changed(R"("cores":3)", R"("cores":3,"speed":1)"), "'speed' is no key");
  refused(changed(R"("name":"a test")", R"("name":"")"), "'name' must be a text");
  refused(changed(R"("one":400000000000.0)", R"("one":0)"),
          "'levels[0].read.one' must be a number above 0");
  refused(changed(R"("one":400000000000.0)", R"("one":1,"two":2)"),
          "'levels[0].read.two' is no key");
  refused(changed(R"("bytes":49152)", R"("bytes":20000000000)"),
          "'levels[1].bytes' is below that of the level before it");
  refused(changed(R"("name":"memory")", R"("name":"disk")"), "must have the name 'memory'");
  refused(changed(R"("f32":)", R"("f33":)"), "'flops_per_second.f33' is no key");
  refused(changed(R"("seconds_per_fork":)", R"("seconds_per_spoon":)"),
          "'seconds_per_spoon' is no");
}

TEST_CASE("machine file: errors name the file") {
  const TemporaryFolder folder;
  const Error absent = error_of([&] { (void)read_machine(folder / "none.json"); });
  CHECK(absent.code() == ErrorCode::kIo);
  write_machine(folder / "m.json", measured());
  std::filesystem::resize_file(folder / "m.json", 100);
  const Error cut = error_of([&] { (void)read_machine(folder / "m.json"); });
  CHECK(cut.code() == ErrorCode::kBadInput);
  CHECK(contains(cut.context().back(), "m.json"));
}

TEST_CASE("machine: a dtype without a rate has that of f32") {
  const Machine machine = measured();
  CHECK(machine.flops(DType::kBF16).one == 2.44e11);
  CHECK(machine.flops(DType::kF16) == machine.flops(DType::kF32));
  CHECK(machine.memory().name == "memory");
}

// The constants that plans were made with before there were machines.
TEST_CASE("machine: the one that is built in") {
  const Machine& machine = default_machine();
  CHECK(machine.flops(DType::kF32).all == 180e9);
  CHECK(machine.flops(DType::kBF16).all == 180e9);
  CHECK(machine.memory().copy.all == 20e9);
  CHECK(machine.seconds_per_call == 1e-6);
  CHECK(machine.flops(DType::kF32).one == 5e10);
  CHECK(machine.memory().copy.one == 1e10);
  CHECK(128.0 * machine.seconds_per_fork == 3e-4);
  CHECK(machine.host_link.bytes_per_second == 10e9);
  CHECK(machine.host_link.seconds_per_transfer == 10e-6);
  CHECK(machine.without_flops.empty());
}

TEST_CASE("machine file: a level of older files updates in place as it copies") {
  const std::string update = R"(,"update":{"one":330000000000.0,"all":980000000000.0})";
  const Machine older = machine_of(Json::parse(changed(update, "")));
  CHECK(!older.levels[0].update);
  CHECK(older.levels[0].in_place() == older.levels[0].copy);
  CHECK(measured().levels[0].in_place().all == 9.8e11);
  CHECK(default_machine().memory().in_place() == default_machine().memory().copy);
  refused(changed(update, R"(,"update":{"one":330000000000.0})"),
          "'levels[0].update.all' is missing");
  refused(changed(update, R"(,"update":{"one":-1,"all":1})"),
          "'levels[0].update.one' must be a number above 0");
}

TEST_CASE("machine file: what older files do not say is as it was") {
  Machine machine = measured();
  machine.host_link = {.bytes_per_second = 3e9, .seconds_per_transfer = 2e-6};
  machine.without_flops = {{DType::kF16, "computed in f32"}, {DType::kI8, "no kernel"}};
  const std::string text = machine_json(machine).dump();
  CHECK(machine_of(Json::parse(text)) == machine);
  const auto without = [&text](const std::string& key) {
    const std::size_t at = text.find("\"" + key + "\":");
    REQUIRE(at != std::string::npos);
    const std::size_t end = text.find('}', at) + 1;
    const bool last = text[end] == '}';
    return Json::parse(last ? text.substr(0, at - 1) + text.substr(end)
                            : text.substr(0, at) + text.substr(end + 1));
  };
  CHECK(machine_of(without("host_link")).host_link == HostLink{});
  CHECK(machine_of(without("without_flops")).without_flops.empty());
  refused(changed(R"("host_link":{)", R"("host_link":{"rate":1,)"), "'host_link.rate' is no key");
  refused(changed(R"("bytes_per_second":)", R"("bytes_per_second":-)"),
          "'host_link.bytes_per_second' must be a number above 0");
}

}  // namespace trainscope
