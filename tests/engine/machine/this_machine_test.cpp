// This machine: numbers that hold on any.
#include "engine/machine/this_machine.h"

#include <doctest/doctest.h>
#include <sched.h>

namespace trainscope {
namespace {

TEST_CASE("this machine: there is a core to use, and memory") {
  CHECK(usable_cores() >= 1);
  CHECK(usable_cores() <= online_cores());
  const MachineMemory memory = machine_memory();
  CHECK(memory.total_bytes > 0);
  CHECK(memory.available_bytes <= memory.total_bytes);
  CHECK(processor_name().find('\n') == std::string::npos);
}

TEST_CASE("this machine: a process that is held to one core uses one") {
  cpu_set_t before;
  REQUIRE(sched_getaffinity(0, sizeof(before), &before) == 0);
  int core = 0;
  while (!CPU_ISSET(core, &before)) ++core;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(core, &one);
  REQUIRE(sched_setaffinity(0, sizeof(one), &one) == 0);
  const int cores = usable_cores();
  REQUIRE(sched_setaffinity(0, sizeof(before), &before) == 0);
  CHECK(cores == 1);
}

}  // namespace
}  // namespace trainscope
