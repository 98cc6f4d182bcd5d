// Loads plugins one after the other, each as a whole or not at all.
#include "engine/plugin/plugin.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <deque>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/hash.h"
#include "engine/core/text.h"
#include "engine/exec/backends.h"
#include "engine/ops/standard_ops.h"
#include "engine/plugin/calls.h"
#include "engine/plugin/kernels.h"
#include "engine/plugin/probe.h"
#include "engine/plugin/rows.h"

namespace trainscope {
namespace {

namespace fs = std::filesystem;

constexpr std::int32_t kMostParts = 4096;  // ops, kernels or optimizers of a plugin

// Everything that plugins brought. Libraries stay loaded, so that this is the process's, as the op
// table and the processor's kernels are.
struct Loaded {
  std::deque<LoadedPlugin> plugins;
  std::vector<const LoadedPlugin*> list;
  std::deque<PluginOptimizer> optimizers;
};

Loaded& loaded() {
  static Loaded all;
  return all;
}

void check_counts(std::string_view what, std::int32_t count, const void* list) {
  require(count >= 0 && count <= kMostParts && (count == 0 || list != nullptr),
          ErrorCode::kBadInput, "it has {} {}", count, what);
}

plugin::Plugin checked_plugin(const plugin::Plugin* given) {
  require(given->size >= offsetof(plugin::Plugin, op_count), ErrorCode::kBadInput,
          "its description has no size");
  require(given->version == plugin::kVersion, ErrorCode::kBadInput,
          "it was built for version {} of the plugin interface, this program has {}",
          given->version, plugin::kVersion);
  const std::optional<plugin::Plugin> own = taken(given);
  check_counts("ops", own->op_count, own->ops);
  check_counts("kernels", own->kernel_count, own->kernels);
  check_counts("optimizers", own->optimizer_count, own->optimizers);
  require(own->name != nullptr, ErrorCode::kBadInput, "it has no name");
  return *own;
}

PluginOptimizer checked_optimizer(const plugin::Optimizer& row, const std::vector<OpDef>& own) {
  const std::string_view name = row.name == nullptr ? std::string_view() : row.name;
  require(!name.empty() && printable(name) == name, ErrorCode::kBadInput,
          "an optimizer is called '{}', which is no name", printable(name));
  const std::string_view step = row.step == nullptr ? std::string_view() : row.step;
  const auto op = std::ranges::find(own, step, &OpDef::name);
  require(op != own.end(), ErrorCode::kBadInput, "optimizer {}: '{}' is no op of this plugin", name,
          printable(step));
  PluginOptimizer optimizer{.name = fmt::format("{}.{}", op->domain, name),
                            .doc = row.doc == nullptr ? "" : row.doc,
                            .op = std::string(op->name),
                            .domain = std::string(op->domain)};
  require(find_plugin_optimizer(optimizer.name) == nullptr, ErrorCode::kBadInput,
          "there is an optimizer '{}' already", optimizer.name);
  require(row.state_count >= 0 && row.state_count <= op->max_outputs - 1, ErrorCode::kBadInput,
          "optimizer {}: {} states, its step {} makes {} results", name, row.state_count, step,
          op->max_outputs);
  require(op->max_inputs >= row.state_count + 5, ErrorCode::kBadInput,
          "optimizer {}: its step {} has up to {} inputs, {} are wanted: parameter, gradient, "
          "states, learning rate, scale and step",
          name, step, op->max_inputs, row.state_count + 5);
  for (std::int32_t i = 0; i < row.state_count; ++i) {
    const std::string state = row.states[i] == nullptr ? "" : row.states[i];
    require(!state.empty() && printable(state) == state, ErrorCode::kBadInput,
            "optimizer {}: state {} has no name", name, i);
    optimizer.states.push_back(state);
  }
  return optimizer;
}

std::vector<PluginOptimizer> checked_optimizers(const plugin::Plugin& plugin,
                                                const std::vector<OpDef>& own) {
  std::vector<PluginOptimizer> optimizers;
  std::set<std::string> names;
  for (std::int32_t i = 0; i < plugin.optimizer_count; ++i) {
    const std::optional<plugin::Optimizer> row = taken(plugin.optimizers[i]);
    require(row.has_value(), ErrorCode::kBadInput,
            "optimizer number {} is not there, or has no size", i);
    optimizers.push_back(checked_optimizer(*row, own));
    require(names.insert(optimizers.back().name).second, ErrorCode::kBadInput,
            "it has two optimizers '{}'", optimizers.back().name);
  }
  return optimizers;
}

// All that a plugin brings, none of it with a fault.
struct Parts {
  std::string name = {};
  std::vector<OpDef> rows = {};
  std::vector<PluginKernel> kernels = {};
  std::vector<PluginOptimizer> optimizers = {};
};

Parts parts_of(const plugin::Plugin& given) {
  const plugin::Plugin plugin = checked_plugin(&given);
  Parts parts{.name = printable(plugin.name)};
  parts.rows = plugin_rows(plugin, shared_ops());
  parts.kernels = plugin_kernels(plugin, parts.rows, shared_ops());
  parts.optimizers = checked_optimizers(plugin, parts.rows);
  return parts;
}

const LoadedPlugin& add(LoadedPlugin facts, Parts parts) {
  auto& [name, rows, kernels, optimizers] = parts;
  facts.name = name;
  for (const OpDef& row : rows) facts.ops.push_back(fmt::format("{}.{}", row.domain, row.name));
  for (const PluginKernel& each : kernels) facts.kernels.emplace_back(each.kernel.name);
  for (const PluginOptimizer& each : optimizers) facts.optimizers.push_back(each.name);
  add_ops(std::move(rows));
  for (const PluginKernel& each : kernels) add_cpu_kernel(each.op, each.dtype, each.kernel);
  Loaded& all = loaded();
  std::ranges::move(optimizers, std::back_inserter(all.optimizers));
  all.list.push_back(&all.plugins.emplace_back(std::move(facts)));
  return all.plugins.back();
}

const LoadedPlugin* find_loaded(const fs::path& file, std::uint64_t hash) {
  for (const LoadedPlugin& plugin : loaded().plugins) {
    if (plugin.hash == hash) return &plugin;
    require(plugin.file != file, ErrorCode::kBadInput,
            "the plugin '{}' has changed since this program loaded it", printable(file.string()));
  }
  return nullptr;
}

std::uint64_t hash_of_file(const fs::path& file) {
  return hash_bytes(MappedFile::open(file).bytes());
}

}  // namespace

const LoadedPlugin& load_plugin(const fs::path& path) {
  const fs::path file = fs::absolute(path).lexically_normal();
  const std::uint64_t hash = hash_of_file(file);
  if (const LoadedPlugin* known = find_loaded(file, hash)) return *known;
  try {
    std::optional<std::string> fault = find_elf_fault(file);
    if (!fault) fault = find_load_fault(file, parts_of);
    require(!fault, ErrorCode::kBadInput, "{}", fault.value_or(""));
    const OpenedPlugin opened = open_plugin(file);
    require(opened.plugin != nullptr, ErrorCode::kBadInput, "{}", opened.fault);
    return add({.file = file, .hash = hash}, parts_of(*opened.plugin));
  } catch (const Error& error) {
    Error told(error.code(), fmt::format("the plugin '{}' is refused: {}", printable(path.string()),
                                         error.message()));
    for (const std::string& where : error.context()) told.at(where);
    throw told.hint(error.hint());
  }
}

const std::vector<const LoadedPlugin*>& loaded_plugins() { return loaded().list; }

Json plugins_json() {
  Json list = Json::array();
  for (const LoadedPlugin* plugin : loaded_plugins()) {
    list.push_back(Json::object({{"file", plugin->file.filename().string()},
                                 {"path", plugin->file.string()},
                                 {"xxh3", hash_hex(plugin->hash)},
                                 {"name", plugin->name}}));
  }
  return list;
}

void load_recorded_plugins(const Json& plugins, std::string_view of) {
  for (const Json& plugin : plugins.as_array()) {
    const fs::path file = plugin.get<std::string>("path");
    require(hash_hex(hash_of_file(file)) == plugin.get<std::string>("xxh3"), ErrorCode::kBadInput,
            "the plugin '{}' has changed since the run '{}'", printable(file.string()),
            printable(of));
    load_plugin(file);
  }
}

std::vector<std::string> plugins_not_loaded(const Json& plugins) {
  std::vector<std::string> missing;
  for (const Json& plugin : plugins.as_array()) {
    const auto hash = plugin.get<std::string>("xxh3");
    const bool is_loaded = std::ranges::any_of(
        loaded_plugins(), [&](const LoadedPlugin* each) { return hash_hex(each->hash) == hash; });
    if (!is_loaded) missing.push_back(plugin.get<std::string>("path"));
  }
  return missing;
}

const PluginOptimizer* find_plugin_optimizer(std::string_view name) {
  const auto found = std::ranges::find(loaded().optimizers, name, &PluginOptimizer::name);
  return found == loaded().optimizers.end() ? nullptr : &*found;
}

std::vector<std::string> plugin_optimizer_names() {
  std::vector<std::string> names;
  for (const PluginOptimizer& optimizer : loaded().optimizers) names.push_back(optimizer.name);
  return names;
}

}  // namespace trainscope
