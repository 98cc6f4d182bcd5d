// Brings a file of the catalog into a folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "datasets/catalog.h"

namespace trainscope {

struct FetchOptions {
  // Addresses below which the files are, tried in order in place of the catalog's.
  std::vector<std::string> base_urls = {};
  std::filesystem::path from_folder = {};  // copy from there; the network is not used
  std::int64_t stall_seconds = 30;
  std::function<void(const std::string&)> report = {};  // a line of what happens
};

enum class FetchOutcome : std::uint8_t { kPresent, kCopied, kFetched };
// "present", "copied", "fetched".
std::string_view name_of(FetchOutcome outcome);

// The file is put into `folder` in one step, once its size and sha256 are those of the catalog. A
// transfer that breaks off leaves NAME.part, from which the next one goes on. Throws kIo when no
// address gives the file, kBadInput when one gives another file (or `from_folder` does).
FetchOutcome fetch_file(const CatalogFile& file, const std::filesystem::path& folder,
                        const FetchOptions& options);

}  // namespace trainscope
