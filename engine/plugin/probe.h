// What a file would do to the process that loads it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "include/trainscope/plugin.h"

namespace trainscope {

inline constexpr const char* kPluginEntry = "trainscope_plugin_entry";
using PluginEntry = const plugin::Plugin* (*)(std::int32_t);

// Why the file is no library that this program could load, from its first bytes.
std::optional<std::string> find_elf_fault(const std::filesystem::path& file);

// What happened when a child process loaded the file, called its entry and looked at all that this
// gave, if that failed: it crashed, did not come to an end in time, cannot be loaded, or has no
// entry. What `look` throws is no matter: it is asked again.
std::optional<std::string> find_load_fault(const std::filesystem::path& file,
                                           const std::function<void(const plugin::Plugin&)>& look);

// The library in this process, and what its entry gives. Only of a file without these faults.
struct OpenedPlugin {
  const plugin::Plugin* plugin = nullptr;  // null: `fault` says why
  std::string fault;
};
OpenedPlugin open_plugin(const std::filesystem::path& file);

}  // namespace trainscope
