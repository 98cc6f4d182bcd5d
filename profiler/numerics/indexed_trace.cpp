// Rows in a table by their places, names that lead to rows of other names, files of elements by
// step.
#include "profiler/numerics/indexed_trace.h"

#include <fmt/format.h>

#include <utility>

namespace trainscope::profiler {
namespace {

// A step, micro-batch and key.
std::string place_of(std::int64_t step, std::int64_t micro_batch, std::string_view key) {
  return fmt::format("{}/{}/{}", step, micro_batch, key);
}

}  // namespace

IndexedTrace::IndexedTrace(Trace trace) : trace_(std::move(trace)) {
  for (std::size_t i = 0; i < trace_.rows().size(); ++i) {
    const TraceRow& row = trace_.rows()[i];
    rows_.emplace(place_of(row.step, row.micro_batch, row.key()), i);
  }
  for (const TraceName& name : trace_.names()) {
    named_.insert(name.value);
    if (!name.row.empty() && name.row != name.value) renamed_.emplace(name.value, name.row);
  }
}

std::optional<std::size_t> IndexedTrace::find(std::int64_t step, std::int64_t micro_batch,
                                              const std::string& key) const {
  auto found = rows_.find(place_of(step, micro_batch, key));
  if (found == rows_.end()) {
    const auto other = renamed_.find(key);
    if (other == renamed_.end()) return std::nullopt;
    found = rows_.find(place_of(step, micro_batch, other->second));
  }
  if (found == rows_.end()) return std::nullopt;
  return found->second;
}

bool IndexedTrace::accounts_for(const std::string& key) const {
  std::string value = key.substr(key.find(':') + 1);
  if (key.starts_with("state:")) value = value.substr(value.find('/') + 1);
  return named_.contains(key) || named_.contains("act:" + value);
}

std::optional<Tensor> IndexedTrace::full(const TraceRow& row) const {
  auto file = files_.find(row.step);
  if (file == files_.end()) file = files_.emplace(row.step, open_full(row.step)).first;
  const std::string micro = row.micro_batch > 0 ? fmt::format("@{}", row.micro_batch) : "";
  const std::string name = row.key() + micro;
  if (!file->second || !file->second->contains(name)) return std::nullopt;
  return file->second->tensor(name);
}

std::optional<SafetensorsFile> IndexedTrace::open_full(std::int64_t step) const {
  const Folder& folder = trace_.folder();
  if (!folder.has_folder(kTraceFullFolder)) return std::nullopt;
  const Folder full = folder.enter(kTraceFullFolder);
  const std::string name = fmt::format("{}.safetensors", step);
  if (!full.has_file(name)) return std::nullopt;
  return SafetensorsFile::open(MappedFile::open(full / name));
}

}  // namespace trainscope::profiler
