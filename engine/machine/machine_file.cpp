// Each key of the file is read with a path that errors name: "levels[1].copy.one".
#include "engine/machine/machine_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <string_view>

#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

constexpr std::string_view kFormat = "trainscope-machine";
constexpr std::size_t kMostBytes = std::size_t{1} << 20;
constexpr std::array kDTypes = {DType::kF32, DType::kF64, DType::kBF16,
                                DType::kF16, DType::kI8,  DType::kU8};

// --- Writing -------------------------------------------------------------------------------------

Json rate_json(const Rate& rate) { return Json::object({{"one", rate.one}, {"all", rate.all}}); }

Json link_json(const HostLink& link) {
  return Json::object({{"bytes_per_second", link.bytes_per_second},
                       {"seconds_per_transfer", link.seconds_per_transfer}});
}

Json level_json(const MemoryLevel& level) {
  Json json = Json::object({{"name", level.name},
                            {"bytes", level.bytes},
                            {"read", rate_json(level.read)},
                            {"write", rate_json(level.write)},
                            {"copy", rate_json(level.copy)}});
  if (level.update) json.set("update", rate_json(*level.update));
  return json;
}

// --- Reading -------------------------------------------------------------------------------------

// A JSON object and where it stands in the file.
class FileObject {
 public:
  FileObject(const Json& json, std::string path) : json_(json), path_(std::move(path)) {
    require(json.is_object(), ErrorCode::kBadInput, "{} is {}, expected an object", shown(),
            name_of(json.type()));
  }

  void has_only(std::span<const std::string_view> keys) const {
    for (const JsonMember& member : json_.as_object()) {
      if (std::ranges::find(keys, member.key) != keys.end()) continue;
      throw Error(ErrorCode::kBadInput,
                  fmt::format("'{}' is no key of a machine file", printable(path_of(member.key))))
          .hint("its keys here are " + join(keys, ", "));
    }
  }
  const Json& at(std::string_view key) const {
    const Json* found = json_.find(key);
    if (found == nullptr) {
      throw Error(ErrorCode::kBadInput, fmt::format("'{}' is missing", path_of(key)))
          .hint("`trainscope doctor --roofs --out FILE` measures a machine and writes such a file");
    }
    return *found;
  }
  FileObject object(std::string_view key) const { return {at(key), path_of(key)}; }
  std::string text(std::string_view key) const {
    const Json& value = at(key);
    require(value.is_string() && !value.as_string().empty(), ErrorCode::kBadInput,
            "'{}' must be a text", path_of(key));
    return value.as_string();
  }
  double above_zero(std::string_view key) const {
    const Json& value = at(key);
    const double number = value.is_number() ? value.as_number() : 0.0;
    require(std::isfinite(number) && number > 0.0, ErrorCode::kBadInput,
            "'{}' must be a number above 0", path_of(key));
    return number;
  }
  std::int64_t count(std::string_view key, std::int64_t most) const {
    const Json& value = at(key);
    const std::int64_t number = value.is_int() ? value.as_int() : 0;
    require(number > 0 && number <= most, ErrorCode::kBadInput,
            "'{}' must be a whole number from 1 to {}", path_of(key), most);
    return number;
  }
  Rate rate(std::string_view key) const {
    static constexpr std::array<std::string_view, 2> kKeys = {"one", "all"};
    const FileObject rate = object(key);
    rate.has_only(kKeys);
    return {.one = rate.above_zero("one"), .all = rate.above_zero("all")};
  }
  std::string path_of(std::string_view key) const {
    return path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
  }
  bool has(std::string_view key) const { return json_.find(key) != nullptr; }

 private:
  std::string shown() const { return path_.empty() ? "the file" : fmt::format("'{}'", path_); }

  const Json& json_;
  std::string path_;  // "" of the whole file
};

// Files of older programs have no "update".
MemoryLevel level_of(const FileObject& object) {
  static constexpr std::array<std::string_view, 6> kKeys = {"name",  "bytes", "read",
                                                            "write", "copy",  "update"};
  object.has_only(kKeys);
  return {.name = object.text("name"),
          .bytes = object.count("bytes", std::numeric_limits<std::int64_t>::max()),
          .read = object.rate("read"),
          .write = object.rate("write"),
          .copy = object.rate("copy"),
          .update = object.has("update") ? std::optional(object.rate("update")) : std::nullopt};
}

std::vector<MemoryLevel> levels_of(const Json& json) {
  require(json.is_array() && json.size() > 0, ErrorCode::kBadInput,
          "'levels' must be a list of caches and memory");
  std::vector<MemoryLevel> levels;
  for (const Json& each : json.as_array()) {
    levels.push_back(level_of(FileObject(each, fmt::format("levels[{}]", levels.size()))));
    const std::size_t last = levels.size() - 1;
    require(last == 0 || levels[last].bytes >= levels[last - 1].bytes, ErrorCode::kBadInput,
            "'levels[{}].bytes' is below that of the level before it", last);
  }
  require(levels.back().name == "memory", ErrorCode::kBadInput,
          "the last of 'levels' must have the name 'memory', it is '{}'",
          printable(levels.back().name));
  return levels;
}

std::vector<std::string_view> dtype_names() {
  std::vector<std::string_view> names;
  for (DType dtype : kDTypes) names.push_back(name_of(dtype));
  return names;
}

std::map<DType, Rate> flops_of(const FileObject& object) {
  object.has_only(dtype_names());
  std::map<DType, Rate> rates;
  for (DType dtype : kDTypes) {
    const bool needed = dtype == DType::kF32;
    if (needed || object.has(name_of(dtype))) rates[dtype] = object.rate(name_of(dtype));
  }
  return rates;
}

// Files of older programs do not say.
std::map<DType, std::string> without_flops_of(const FileObject& file) {
  std::map<DType, std::string> reasons;
  if (!file.has("without_flops")) return reasons;
  const FileObject object = file.object("without_flops");
  object.has_only(dtype_names());
  for (DType dtype : kDTypes) {
    if (object.has(name_of(dtype))) reasons[dtype] = object.text(name_of(dtype));
  }
  return reasons;
}

HostLink host_link_of(const FileObject& file) {
  static constexpr std::array<std::string_view, 2> kKeys = {"bytes_per_second",
                                                            "seconds_per_transfer"};
  if (!file.has("host_link")) return {};
  const FileObject link = file.object("host_link");
  link.has_only(kKeys);
  return {.bytes_per_second = link.above_zero("bytes_per_second"),
          .seconds_per_transfer = link.above_zero("seconds_per_transfer")};
}

}  // namespace

Json machine_json(const Machine& machine) {
  Json levels = Json::array();
  for (const MemoryLevel& level : machine.levels) levels.push_back(level_json(level));
  Json flops = Json::object();
  for (const auto& [dtype, rate] : machine.flops_per_second) {
    flops.set(std::string(name_of(dtype)), rate_json(rate));
  }
  Json without = Json::object();
  for (const auto& [dtype, why] : machine.without_flops)
    without.set(std::string(name_of(dtype)), why);
  return Json::object({{"format", kFormat},
                       {"version", kMachineVersion},
                       {"name", machine.name},
                       {"cores", machine.cores},
                       {"levels", std::move(levels)},
                       {"flops_per_second", std::move(flops)},
                       {"without_flops", std::move(without)},
                       {"seconds_per_call", machine.seconds_per_call},
                       {"seconds_per_fork", machine.seconds_per_fork},
                       {"host_link", link_json(machine.host_link)}});
}

Machine machine_of(const Json& json) {
  static constexpr std::array<std::string_view, 10> kKeys = {
      "format",           "version",          "name",          "cores",
      "levels",           "flops_per_second", "without_flops", "seconds_per_call",
      "seconds_per_fork", "host_link"};
  constexpr std::int64_t kMostCores = 1 << 16;
  const FileObject file(json, "");
  require(file.text("format") == kFormat, ErrorCode::kBadInput,
          "'format' is not '{}': this is no machine file", kFormat);
  const std::int64_t version = file.count("version", std::numeric_limits<std::int32_t>::max());
  require_supported(version == kMachineVersion, "'version' is {}, this program reads {}", version,
                    kMachineVersion);
  file.has_only(kKeys);
  return {.name = file.text("name"),
          .cores = static_cast<int>(file.count("cores", kMostCores)),
          .levels = levels_of(file.at("levels")),
          .flops_per_second = flops_of(file.object("flops_per_second")),
          .without_flops = without_flops_of(file),
          .seconds_per_call = file.above_zero("seconds_per_call"),
          .seconds_per_fork = file.above_zero("seconds_per_fork"),
          .host_link = host_link_of(file)};
}

Machine read_machine(const std::filesystem::path& path) {
  const Json json = read_json_file(path, {.max_bytes = kMostBytes});
  try {
    return machine_of(json);
  } catch (Error& error) {
    error.at(printable(path.string()));
    throw;
  }
}

void write_machine(const std::filesystem::path& path, const Machine& machine) {
  write_file_atomic(path, machine_json(machine).dump(2) + "\n");
}

}  // namespace trainscope
