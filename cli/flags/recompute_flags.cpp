// Flags that trade time for memory, and the engine's options made of them.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>

#include "cli/flags/training_flags.h"
#include "engine/core/byte_count.h"
#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/json.h"
#include "engine/core/text.h"
#include "engine/machine/machine_file.h"
#include "engine/run/planned_step.h"

namespace trainscope {
namespace {

constexpr std::uint64_t kMaxFileBytes = std::uint64_t{1} << 24;

constexpr Flag kFlags[] = {
    {.name = "memory-budget",
     .value = "BYTES",
     .help = "Most bytes of the arena, also as 6GiB or 500MB: what does not fit is recomputed"},
    {.name = "max-overhead",
     .value = "SHARE",
     .help = "Least memory at so much more time a step, for example 10%"},
    {.name = "recompute",
     .value = "none|1|2|auto|REQUESTS|FILE",
     .fallback = "none",
     .help = "1: all cheap ops, 2: also where something smaller must be kept for it, auto: "
             "the planner's choice for a budget or an overhead, or cluster requests "
             "'Add+Gelu+:1:-1,..' or a JSON file with a list of them"},
    {.name = "pins",
     .value = "FILE",
     .help = "Lines 'keep PATTERN' and 'recompute PATTERN' over names of values"},
    {.name = "offload",
     .type = FlagType::kSwitch,
     .help = "Within a budget or an overhead values may also wait in host memory, an arena of its "
             "own"},
    {.name = "link-rate",
     .value = "BYTES",
     .help = "Bytes a second to host memory and back, for --offload. Default: those of the machine "
             "(--machine), 10GB of the built-in one"},
    {.name = "optimizer-in-backward",
     .type = FlagType::kSwitch,
     .help = "Update each parameter as soon as its gradient is there: less memory, the same bits; "
             "not with --clip or --accumulate"},
    {.name = "loss-chunks",
     .type = FlagType::kInteger,
     .value = "N",
     .fallback = "1",
     .help = "Last linear layer and cross entropy over an Nth of the rows at a time, forward and "
             "backward: less memory for a large vocabulary; sums are added in another order",
     .minimum = 1,
     .maximum = 4096},
    {.name = "skip-ignored",
     .type = FlagType::kSwitch,
     .help = "The last linear layer computes only the rows whose labels count: less time where "
             "many labels are ignore_index; in one loss chunk"},
    {.name = "skip-padding",
     .value = "MASK",
     .help = "The input [batch, sequence] that is not 0 for real tokens: linear layers and norms "
             "compute these alone. Every attention must hide padding by this mask; labels of "
             "padding are ignored"},
    {.name = "op-order",
     .type = FlagType::kChoice,
     .value = "given|memory",
     .fallback = "memory",
     .help = "memory: ops of a phase in another order where that lowers the arena; the same bits"},
    {.name = "batch-tiles",
     .type = FlagType::kChoice,
     .value = "auto|none",
     .fallback = "none",
     .help = "auto: in steps of short ops these run in a row on tiles of the batch, a tile a "
             "thread, unless memory is traded; sums over examples are added in another order",
     .formerly = "op-chains"},
    {.name = "costs",
     .value = "TIMES.csv",
     .help = "Measured time of each op, from `plan` or `bench --op-times`; else a model of the "
             "machine"},
    {.name = "machine",
     .value = "FILE",
     .help = "The machine that times are modelled by, from `doctor --roofs --out FILE`; else one "
             "that is built in"},
};

}  // namespace

std::int64_t parse_bytes(std::string_view flag, std::string_view text) {
  const std::optional<std::int64_t> bytes = find_bytes(text);
  if (bytes) return *bytes;
  throw Error(ErrorCode::kUsage, fmt::format("--{} is '{}': expected a number of bytes, 1 or more",
                                             flag, printable(text)))
      .hint("for example 6442450944, 6GiB or 500MB");
}

namespace {

double parse_share(std::string_view text) {
  const bool percent = text.ends_with('%');
  const std::optional<double> value =
      parse_number(percent ? text.substr(0, text.size() - 1) : text);
  if (!value || !std::isfinite(*value) || *value < 0) {
    throw Error(
        ErrorCode::kUsage,
        fmt::format("--max-overhead is '{}': expected a share of 0 or more", printable(text)))
        .hint("for example 10% or 0.1");
  }
  return percent ? *value / 100.0 : *value;
}

std::vector<ClusterRequest> read_requests(const std::string& path) {
  try {
    std::vector<ClusterRequest> requests;
    const Json list = read_json_file(path);
    require(list.is_array(), ErrorCode::kBadInput, "expected a list of strings");
    for (const Json& each : list.as_array()) {
      require(each.is_string(), ErrorCode::kBadInput, "expected a list of strings");
      for (ClusterRequest& request : parse_cluster_requests(each.as_string())) {
        requests.push_back(std::move(request));
      }
    }
    return requests;
  } catch (Error& error) {
    error.at(printable(path));
    throw;
  }
}

void read_pins(const std::string& path, RecomputeOptions& options) {
  std::size_t number = 0;
  const std::string text = read_file(path, kMaxFileBytes);
  for (std::string_view raw : split(text, '\n')) {
    ++number;
    const std::string_view line = trim(raw);
    if (line.empty() || line.starts_with('#')) continue;
    const std::size_t space = line.find(' ');
    const std::string_view word = line.substr(0, space);
    const std::string_view pattern =
        space == std::string_view::npos ? std::string_view() : trim(line.substr(space));
    const bool keep = word == "keep";
    const bool recompute =
        word == "recompute" || word == "again";  // "again": the word of older files
    if ((!keep && !recompute) || pattern.empty()) {
      throw Error(ErrorCode::kBadInput,
                  fmt::format("'{}' is neither 'keep PATTERN' nor 'recompute PATTERN'",
                              printable(line, 100)))
          .at(fmt::format("{}:{}", printable(path), number));
    }
    (keep ? options.keep : options.recompute).emplace_back(pattern);
  }
}

// What is neither a word, nor a request, nor looks like a file's name.
void check_form(const std::string& text) {
  const bool number = parse_int(text).has_value();
  if (!number && !text.ends_with('+')) return;
  throw Error(ErrorCode::kUsage, fmt::format("--recompute is '{}'", printable(text)))
      .hint("none, 1, 2, auto, cluster requests as Add+Gelu+:1:-1, or a JSON file of them");
}

// With `plan --target` these flags are about devices that are not here: their step is compiled
// without recomputation, and world_flags.cpp reads what they say.
bool is_for_a_world(const Settings& settings) {
  const auto target = settings.all().find("target");
  return target != settings.all().end() && !target->second.texts.empty();
}

RecomputeMode mode_of(const std::string& text) {
  if (text == "none") return RecomputeMode::kNone;
  if (text == "1") return RecomputeMode::kLevel1;
  if (text == "2") return RecomputeMode::kLevel2;
  return text == "auto" ? RecomputeMode::kAuto : RecomputeMode::kClusters;
}

}  // namespace

std::span<const Flag> recompute_flags() { return kFlags; }

std::optional<BatchTileOptions> batch_tiles(const Settings& settings) {
  if (settings.text("batch-tiles") == "none") return std::nullopt;
  return BatchTileOptions{};
}

Machine plan_machine(const Settings& settings) {
  if (is_for_a_world(settings) || !settings.has("machine")) return default_machine();
  return read_machine(settings.text("machine"));
}

OpOrder op_order(const Settings& settings) { return op_order_of(settings.text("op-order")); }

HostLink host_link(const Settings& settings) {
  HostLink link = plan_machine(settings).host_link;
  if (settings.has("link-rate")) {
    const std::int64_t rate = parse_bytes("link-rate", settings.text("link-rate"));
    link.bytes_per_second = static_cast<double>(rate);
  }
  return link;
}

Json without_replaced_plan(const Json& options, const Settings& settings) {
  static constexpr std::array<std::string_view, 3> kAsking = {"memory-budget", "max-overhead",
                                                              "recompute"};
  static constexpr std::array<std::string_view, 6> kReplaced = {
      "memory-budget", "max-overhead", "recompute", "pins", "offload", "link-rate"};
  const std::map<std::string, Settings::Setting, std::less<>>& all = settings.all();
  const bool asks = std::ranges::any_of(
      kAsking, [&](std::string_view flag) { return all.contains(flag) && settings.given(flag); });
  if (!asks) return options;
  Json rest = Json::object();
  for (const JsonMember& option : options.as_object()) {
    if (std::ranges::find(kReplaced, option.key) == kReplaced.end()) {
      rest.set(option.key, option.value);
    }
  }
  return rest;
}

RecomputeOptions recompute_options(const Settings& settings) {
  RecomputeOptions options;
  if (is_for_a_world(settings)) return options;
  const std::string& text = settings.text("recompute");
  options.mode = mode_of(text);
  if (settings.has("memory-budget"))
    options.budget_bytes = parse_bytes("memory-budget", settings.text("memory-budget"));
  if (settings.has("max-overhead"))
    options.max_overhead = parse_share(settings.text("max-overhead"));
  require(!options.budget_bytes || !options.max_overhead, ErrorCode::kUsage,
          "--memory-budget and --max-overhead are two ways to ask: give one of them");
  const bool limited = options.budget_bytes || options.max_overhead;
  if (limited && options.mode == RecomputeMode::kNone && !settings.given("recompute")) {
    options.mode = RecomputeMode::kAuto;
  }
  require(!limited || options.mode == RecomputeMode::kAuto, ErrorCode::kUsage,
          "--recompute {} plans for no limit: leave it out, or say auto", printable(text));
  require(limited || options.mode != RecomputeMode::kAuto, ErrorCode::kUsage,
          "--recompute auto needs --memory-budget or --max-overhead");
  if (options.mode == RecomputeMode::kClusters) {
    check_form(text);
    options.clusters =
        text.find(':') == std::string::npos ? read_requests(text) : parse_cluster_requests(text);
  }
  if (settings.on("offload")) {
    require(options.mode == RecomputeMode::kAuto, ErrorCode::kUsage,
            "--offload needs --memory-budget or --max-overhead");
    options.link = host_link(settings);
  }
  require(options.link || !settings.given("link-rate"), ErrorCode::kUsage,
          "--link-rate needs --offload");
  if (settings.has("pins")) read_pins(settings.text("pins"), options);
  const bool none = options.mode == RecomputeMode::kNone;
  if (none && !options.recompute.empty()) options.mode = RecomputeMode::kClusters;
  require(!none || options.keep.empty() || !options.recompute.empty(), ErrorCode::kUsage,
          "--pins keeps values that nothing would recompute: ask for recomputation too");
  return options;
}

std::string recompute_text(const Json& summary) {
  const auto plain = summary.get<std::int64_t>("plain_bytes");
  std::string text =
      fmt::format("recompute    {:>16} ops rematerialized, {:.2f} % more time predicted",
                  summary.get<std::int64_t>("repeats"), 100.0 * summary.get<double>("overhead"));
  if (const Json* bytes = summary.find("bound_bytes")) {  // of older runs: absent
    text += fmt::format("\nbound        {:>16} bytes  {}, in which no step is below {:.2f} %",
                        bytes->as_int(), bytes_text(bytes->as_int()),
                        100.0 * summary.get<double>("bound_overhead"));
  }
  const Json* in_host = summary.find("offloaded_bytes");  // of older runs: absent
  const std::int64_t offloaded = in_host == nullptr ? 0 : in_host->as_int();
  if (offloaded > 0) {
    text += fmt::format("\noffloaded    {:>16} bytes  {}", offloaded, bytes_text(offloaded));
  }
  return text + fmt::format("\nwithout it   {:>16} bytes  {}\n", plain, bytes_text(plain));
}

}  // namespace trainscope
