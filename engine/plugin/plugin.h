// Plugins: shared libraries with ops, kernels and optimizers (include/trainscope/plugin.h), loaded
// into this process for good.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "engine/core/json.h"

namespace trainscope {

struct LoadedPlugin {
  std::filesystem::path file;  // absolute
  std::string name = {};       // as the plugin says
  std::uint64_t hash = 0;      // of the file's bytes
  std::vector<std::string> ops = {};
  std::vector<std::string> kernels = {};
  std::vector<std::string> optimizers = {};
};

// Loads the file, and adds what it has to the ops, kernels and optimizers that there are; of a file
// that is loaded already, nothing. First a child process tries it, so that a plugin which crashes
// ends that one. Throws kIo for a file that cannot be read, kBadInput for one that is no plugin of
// this version or that has a fault; then nothing is added. Not while anything is compiled or runs.
const LoadedPlugin& load_plugin(const std::filesystem::path& file);

// In the order in which they were loaded.
const std::vector<const LoadedPlugin*>& loaded_plugins();

// What a run's record says of them: file, path, hash and name of each.
Json plugins_json();
// Loads those that a record names. `of` is what messages call the run. Throws kBadInput for a file
// that has changed since, and what load_plugin() throws.
void load_recorded_plugins(const Json& plugins, std::string_view of);
// The paths of those of them that this process has not loaded.
std::vector<std::string> plugins_not_loaded(const Json& plugins);

// An update rule of a plugin.
struct PluginOptimizer {
  std::string name = {};  // "com.example.signum": behind the domain of its op
  std::string doc = {};
  std::string op = {};      // of a step of one parameter
  std::string domain = {};  // of that op
  std::vector<std::string> states = {};
};
// Null: no plugin has one of that name.
const PluginOptimizer* find_plugin_optimizer(std::string_view name);
std::vector<std::string> plugin_optimizer_names();

}  // namespace trainscope
