// Public data sets that `data get` fetches and `--data catalog:NAME` uses.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>
#include <vector>

#include "datasets/spec.h"

namespace trainscope {

struct CatalogFile {
  std::string_view part;  // "train", "test"
  std::string_view name;
  std::uint64_t size_bytes = 0;
  std::string_view sha256;
  std::vector<std::string_view> urls;  // in the order of trial
};

struct CatalogSet {
  std::string_view name;
  std::string_view format;  // of its files
  std::string_view licence;
  std::string_view about;
  std::vector<CatalogFile> files;
};

// The rows of catalog.def.
const std::vector<CatalogSet>& catalog();
// Throws kUsage with the nearest name.
const CatalogSet& find_set(std::string_view name);

// Where the files of a set are below the folder of all sets.
std::filesystem::path set_folder(const std::filesystem::path& folder, const CatalogSet& set);

// The source that a source catalog:NAME stands for. Throws kUsage for an unknown name or part, kIo
// when the set has not been fetched, kBadInput when a file is not what the catalog says.
DataSpec resolve_catalog(const DataSpec& spec, const std::filesystem::path& folder);

}  // namespace trainscope
