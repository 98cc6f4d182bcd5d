// Sizes of caches, from a folder as Linux has it.
#include "kernels/cpu/roofs/cache_sizes.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>
#include <string>

namespace trainscope::cpu {
namespace {

// A new folder that goes away with its owner.
struct Folder {
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "trainscope-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path = name;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  Folder(const Folder&) = delete;

  std::filesystem::path path;
};

struct Told {
  std::string level, type, size;
};

void tell(const std::filesystem::path& folder, const Told& told) {
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "level") << told.level << '\n';
  std::ofstream(folder / "type") << told.type << '\n';
  std::ofstream(folder / "size") << told.size << '\n';
}

}  // namespace

TEST_CASE("cache sizes: those of data, by level") {
  const Folder folder;
  tell(folder.path / "index0", {"1", "Data", "48K"});
  tell(folder.path / "index1", {"1", "Instruction", "32K"});
  tell(folder.path / "index2", {"2", "Unified", "1024K"});
  tell(folder.path / "index3", {"3", "Unified", "32M"});
  const std::vector<CacheLevel> levels = cache_sizes(folder.path);
  REQUIRE(levels.size() == 3);
  CHECK(levels[0].bytes == 48 << 10);
  CHECK(levels[1].bytes == 1 << 20);
  CHECK(levels[2].bytes == 32 << 20);
  CHECK(levels[2].level == 3);
}

TEST_CASE("cache sizes: usual ones where the system tells nothing, or nonsense") {
  const Folder folder;
  const auto is_usual = [&] {
    const std::vector<CacheLevel> levels = cache_sizes(folder.path);
    return levels.size() == 2 && levels[0].bytes == 32 << 10 && levels[1].bytes == 1 << 20;
  };
  CHECK(is_usual());
  tell(folder.path / "index0", {"1", "Data", "many"});
  CHECK(is_usual());
  tell(folder.path / "index0", {"1", "Data", "48K"});
  tell(folder.path / "index1", {"2", "Unified", "1K"});
  CHECK(is_usual());
  CHECK(!cache_sizes().empty());
}

}  // namespace trainscope::cpu
