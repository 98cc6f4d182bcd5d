// Tries the addresses of a file until one gives what the catalog says.
#include "datasets/fetch.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "datasets/download.h"
#include "datasets/sha256.h"
#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/system/system_error.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

namespace fs = std::filesystem;

bool is_right(const CatalogFile& file, const fs::path& path) {
  return MappedFile::open(path).size_bytes() == file.size_bytes &&
         sha256_of_file(path) == file.sha256;
}

void copy_file(const CatalogFile& file, const fs::path& from, const fs::path& to) {
  const MappedFile source = MappedFile::open(from);
  require(source.size_bytes() == file.size_bytes, ErrorCode::kBadInput,
          "{} has {} bytes: expected {}", quoted(from), source.size_bytes(), file.size_bytes);
  AtomicFile copy(to);
  Sha256 hash;
  std::vector<std::byte> bytes(source.size_bytes());
  source.read(0, bytes);
  hash.bytes(bytes);
  const std::string digest = hash.digest();
  require(digest == file.sha256, ErrorCode::kBadInput, "{} has the sha256 {}: expected {}",
          quoted(from), digest, file.sha256);
  copy.write(bytes);
  copy.commit();
}

// The file NAME.part, locked against other processes.
class PartialFile {
 public:
  explicit PartialFile(fs::path path)
      : path_(std::move(path)),
        fd_(open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644)) {
    if (!fd_.is_open()) fail_system(errno, "create", path_);
    require(flock(fd_.get(), LOCK_EX | LOCK_NB) == 0, ErrorCode::kIo,
            "another process is fetching {}", quoted(path_));
  }

  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;
  // Nothing to go on from: nothing to keep.
  ~PartialFile() {
    struct stat status {};
    if (!moved_ && fstat(fd_.get(), &status) == 0 && status.st_size == 0) unlink(path_.c_str());
  }

  const FileDescriptor& descriptor() const { return fd_; }
  const fs::path& path() const { return path_; }

  std::uint64_t size_bytes() const {
    struct stat status {};
    if (fstat(fd_.get(), &status) != 0) fail_system(errno, "read", path_);
    return static_cast<std::uint64_t>(status.st_size);
  }
  void clear() {
    if (ftruncate(fd_.get(), 0) != 0) fail_system(errno, "write", path_);
  }
  void move_to(const fs::path& to) {
    if (fsync(fd_.get()) != 0) fail_system(errno, "write", path_);
    std::error_code error;
    fs::rename(path_, to, error);
    if (error) fail_system(error.value(), "rename", path_);
    moved_ = true;
    Folder::open(to.parent_path()).sync();
  }

 private:
  fs::path path_;
  FileDescriptor fd_;
  bool moved_ = false;
};

// What became of the attempts so far.
struct Problems {
  std::vector<std::string> lines;
  bool wrong_content = false;
};

// Whether the address gave the right file.
bool try_url(const std::string& url, const CatalogFile& file, PartialFile& partial,
             std::int64_t stall_seconds, Problems& problems) {
  while (true) {
    if (partial.size_bytes() > file.size_bytes) partial.clear();
    const std::uint64_t had = partial.size_bytes();
    if (had < file.size_bytes) {
      const DownloadResult result = download({.url = url,
                                              .first_byte = had,
                                              .max_bytes = file.size_bytes,
                                              .stall_seconds = stall_seconds},
                                             partial.descriptor());
      if (!result.complete) {
        problems.lines.push_back(fmt::format("{}: {}", printable(url, 400), result.problem));
        return false;
      }
    }
    const std::uint64_t has = partial.size_bytes();
    if (has == file.size_bytes && sha256_of_file(partial.path()) == file.sha256) return true;
    partial.clear();
    if (had > 0) continue;  // perhaps only what was there before is wrong
    problems.wrong_content = true;
    problems.lines.push_back(
        fmt::format("{}: its {} bytes are not the file of the catalog", printable(url, 400), has));
    return false;
  }
}

std::vector<std::string> addresses(const CatalogFile& file, const FetchOptions& options) {
  std::vector<std::string> urls;
  for (const std::string& base : options.base_urls) {
    urls.push_back(fmt::format("{}{}{}", base, base.ends_with('/') ? "" : "/", file.name));
  }
  if (urls.empty()) urls.assign(file.urls.begin(), file.urls.end());
  return urls;
}

void fetch_by_url(const CatalogFile& file, const fs::path& target, const FetchOptions& options) {
  PartialFile partial(target.string() + ".part");
  Problems problems;
  for (const std::string& url : addresses(file, options)) {
    if (options.report) {
      options.report(fmt::format("{}: {} from {}", file.name, human_bytes(file.size_bytes),
                                 printable(url, 400)));
    }
    if (!try_url(url, file, partial, options.stall_seconds, problems)) continue;
    partial.move_to(target);
    return;
  }
  Error error(problems.wrong_content ? ErrorCode::kBadInput : ErrorCode::kIo,
              fmt::format("'{}' could not be fetched", file.name));
  for (std::string& line : problems.lines) error.at(std::move(line));
  throw error.hint("get the file by another way and give its folder: --from-dir DIR");
}

}  // namespace

std::string_view name_of(FetchOutcome outcome) {
  switch (outcome) {
    case FetchOutcome::kPresent:
      return "present";
    case FetchOutcome::kCopied:
      return "copied";
    case FetchOutcome::kFetched:
      return "fetched";
  }
  return "?";
}

FetchOutcome fetch_file(const CatalogFile& file, const fs::path& folder,
                        const FetchOptions& options) {
  make_directories(folder);
  const fs::path target = folder / file.name;
  if (path_exists(target) && is_right(file, target)) return FetchOutcome::kPresent;
  if (!options.from_folder.empty()) {
    copy_file(file, options.from_folder / file.name, target);
    return FetchOutcome::kCopied;
  }
  fetch_by_url(file, target, options);
  return FetchOutcome::kFetched;
}

}  // namespace trainscope
