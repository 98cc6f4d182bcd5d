// The list of public data sets, and their files on the disk.
#include "datasets/catalog.h"

#include <algorithm>
#include <string>
#include <utility>

#include "datasets/format.h"
#include "datasets/sha256.h"
#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

struct FileRow {
  std::string_view set;
  CatalogFile file;
};

std::vector<CatalogSet> make_catalog() {
  std::vector<CatalogSet> sets = {
#define DATA_SET(name, format, licence, about) {#name, #format, licence, about, {}},
#define DATA_FILE(set, part, file, bytes, sha256, urls)
#include "datasets/catalog.def"
#undef DATA_SET
#undef DATA_FILE
  };
  const FileRow rows[] = {
#define DATA_SET(name, format, licence, about)
#define DATA_FILE(set, part, file, bytes, sha256, urls) \
  {#set, {#part, file, bytes, sha256, split(urls, ' ')}},
#include "datasets/catalog.def"
#undef DATA_SET
#undef DATA_FILE
  };
  for (const FileRow& row : rows) {
    const auto set = std::ranges::find(sets, row.set, &CatalogSet::name);
    CHECK_INVARIANT(set != sets.end());
    set->files.push_back(row.file);
  }
  return sets;
}

void check_fetched(const CatalogSet& set, const CatalogFile& file,
                   const std::filesystem::path& path) {
  const std::string hint = fmt::format("trainscope data get {}", set.name);
  if (!path_exists(path)) {
    throw Error(ErrorCode::kIo, fmt::format("the data set '{}' has not been fetched: there is no "
                                            "file '{}'",
                                            set.name, printable(path.string(), 400)))
        .hint(hint);
  }
  if (sha256_of_file(path) == file.sha256) return;
  throw Error(ErrorCode::kBadInput,
              fmt::format("'{}' is damaged: its sha256 is not that of the data set '{}'",
                          printable(path.string(), 400), set.name))
      .hint(hint);
}

}  // namespace

const std::vector<CatalogSet>& catalog() {
  static const std::vector<CatalogSet> kSets = make_catalog();
  return kSets;
}

const CatalogSet& find_set(std::string_view name) {
  std::vector<std::string_view> names;
  for (const CatalogSet& set : catalog()) {
    if (set.name == name) return set;
    names.push_back(set.name);
  }
  throw Error(ErrorCode::kUsage, fmt::format("there is no data set '{}'", printable(name)))
      .hint(nearest_hint(name, names))
      .hint(fmt::format("the data sets are {}", join(names, ", ")));
}

std::filesystem::path set_folder(const std::filesystem::path& folder, const CatalogSet& set) {
  return folder / set.name;
}

DataSpec resolve_catalog(const DataSpec& spec, const std::filesystem::path& folder) {
  const CatalogSet& set = find_set(spec.file());
  const std::string part = spec.option("part", "train");
  DataSpec resolved{.format = set.format, .text = spec.text, .files = {}, .options = spec.options};
  resolved.options.erase("part");
  for (const CatalogFile& file : set.files) {
    if (file.part != part) continue;
    const std::filesystem::path path = set_folder(folder, set) / file.name;
    check_fetched(set, file, path);
    resolved.files.push_back(path.string());
  }
  require(!resolved.files.empty(), ErrorCode::kUsage, "data '{}': the set '{}' has no part '{}'",
          printable(spec.text), set.name, printable(part));
  return resolved;
}

DataFormat catalog_format() {
  return {.name = "catalog",
          .form = "catalog:NAME[,part=train|test,validation=FRACTION]",
          .options = {"part", "validation"}};
}

}  // namespace trainscope
