// The rows of a machine's table.
#include "cli/print/machine_table.h"

#include <fmt/format.h>

#include "engine/core/byte_count.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

constexpr double kGiga = 1e9;

std::string giga(double per_second) { return fmt::format("{:.1f}", per_second / kGiga); }

std::string level_rows(const MemoryLevel& level) {
  std::string text;
  std::string name = level.name;
  std::string size = bytes_text(level.bytes);
  const auto add = [&](const char* what, const Rate& rate) {
    text += fmt::format("{:<8} {:>10}  {:<6} {:>12} {:>12}\n", name, size, what, giga(rate.one),
                        giga(rate.all));
    name.clear();
    size.clear();
  };
  add("read", level.read);
  add("write", level.write);
  add("copy", level.copy);
  if (level.update) add("update", *level.update);
  return text;
}

}  // namespace

std::string machine_table(const Machine& machine) {
  const std::string cores =
      machine.cores == 1 ? "1 thread" : fmt::format("{} threads", machine.cores);
  std::string text =
      fmt::format("{:<8} {:>10}  {:<6} {:>12} {:>12}\n", "GB/s", "bytes", "", "1 thread", cores);
  for (const MemoryLevel& level : machine.levels) text += level_rows(level);
  text += fmt::format("{:<8} {:>10}  {:<6} {:>12} {:>12}\n", "GFLOP/s", "", "", "1 thread", cores);
  for (const auto& [dtype, rate] : machine.flops_per_second) {
    text += fmt::format("{:<8} {:>10}  {:<6} {:>12} {:>12}\n", name_of(dtype), "", "",
                        giga(rate.one), giga(rate.all));
  }
  for (const auto& [dtype, why] : machine.without_flops) {
    text += fmt::format("{:<8} {}\n", name_of(dtype), printable(why));
  }
  const HostLink& link = machine.host_link;
  text += fmt::format("to host memory and back {} GB/s and {:.3f} us a transfer\n",
                      giga(link.bytes_per_second), 1e6 * link.seconds_per_transfer);
  text += fmt::format("a call {:.3f} us, a fork and join of all threads {:.3f} us\n",
                      1e6 * machine.seconds_per_call, 1e6 * machine.seconds_per_fork);
  return text;
}

}  // namespace trainscope
