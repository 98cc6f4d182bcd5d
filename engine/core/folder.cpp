// Everything relative to a folder's descriptor.
#include "engine/core/folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "engine/core/error.h"
#include "engine/core/system/system_error.h"

namespace trainscope {
namespace {

namespace fs = std::filesystem;

// Folders in folders that are removed. Ours are two deep; each level takes a descriptor.
constexpr int kMaxDepth = 64;

[[noreturn]] void refuse(const fs::path& path, std::string_view why) {
  throw Error(ErrorCode::kBadInput, fmt::format("refused to use {}: {}", quoted(path), why))
      .hint(
          "files and folders of a run must be in it themselves: use a copy of what the links mean "
          "(cp -RL), without what is no file");
}

[[noreturn]] void refuse_kind(const fs::path& path, mode_t mode, std::string_view wanted) {
  refuse(path, fmt::format("it is {}, not {}", kind_of(mode), wanted));
}

std::string checked(const fs::path& folder, std::string_view name) {
  const bool plain = !name.empty() && name != "." && name != ".." &&
                     name.find('/') == std::string_view::npos &&
                     name.find('\0') == std::string_view::npos;
  if (!plain) refuse(folder / name, "it is no name of an entry");
  return std::string(name);
}

void check_hard_links(const struct stat& status, HardLinks allowed, const fs::path& path) {
  if (allowed == HardLinks::kAllowed || status.st_nlink <= 1) return;
  refuse(path, fmt::format("it has {} hard links, and what is written to it changes them all",
                           status.st_nlink));
}

struct CloseEntries {
  void operator()(DIR* entries) const { ::closedir(entries); }
};

struct stat status_of(const FileDescriptor& fd, const fs::path& path) {
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) fail_system(errno, "open", path);
  return status;
}

}  // namespace

FileDescriptor::FileDescriptor(FileDescriptor&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)) {}

FileDescriptor& FileDescriptor::operator=(FileDescriptor&& other) noexcept {
  if (this != &other) {
    close();
    fd_ = std::exchange(other.fd_, -1);
  }
  return *this;
}

FileDescriptor::~FileDescriptor() { close(); }

void FileDescriptor::close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

Folder::Folder(FileDescriptor fd, fs::path path)
    : fd_(std::make_shared<const FileDescriptor>(std::move(fd))), path_(std::move(path)) {}

Folder Folder::open(const fs::path& path) {
  const fs::path folder = path.empty() ? "." : path;
  check_path(folder);
  FileDescriptor fd(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!fd.is_open()) fail_system(errno, "open the folder", folder);
  return {std::move(fd), path};
}

FolderEntry Folder::operator/(std::string_view name) const {
  return {.folder = *this, .name = checked(path_, name)};
}

std::uint32_t Folder::mode_of(const std::string& name) const {
  struct stat status {};
  if (::fstatat(descriptor(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0) {
    return status.st_mode;
  }
  if (errno != ENOENT) fail_system(errno, "open", path_ / name);
  return 0;
}

bool Folder::has(std::string_view name) const { return mode_of(checked(path_, name)) != 0; }

bool Folder::has_file(std::string_view name, HardLinks hard_links) const {
  const std::string entry = checked(path_, name);
  struct stat status {};
  if (::fstatat(descriptor(), entry.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
    if (errno != ENOENT) fail_system(errno, "open", path_ / entry);
    return false;
  }
  if (!S_ISREG(status.st_mode)) refuse_kind(path_ / entry, status.st_mode, "a regular file");
  check_hard_links(status, hard_links, path_ / entry);
  return true;
}

bool Folder::has_folder(std::string_view name) const {
  const std::string entry = checked(path_, name);
  const mode_t mode = mode_of(entry);
  if (mode != 0 && !S_ISDIR(mode)) refuse_kind(path_ / entry, mode, "a folder");
  return mode != 0;
}

std::vector<std::string> Folder::list() const {
  const int fd = ::openat(descriptor(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* entries = fd < 0 ? nullptr : ::fdopendir(fd);
  if (entries == nullptr) {
    const FileDescriptor closed(fd);
    fail_system(errno, "list the folder", path_);
  }
  const std::unique_ptr<DIR, CloseEntries> owner(entries);
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* entry = ::readdir(entries)) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
    errno = 0;
  }
  if (errno != 0) fail_system(errno, "list the folder", path_);
  std::sort(names.begin(), names.end());
  return names;
}

Folder Folder::enter(std::string_view name) const {
  const std::string entry = checked(path_, name);
  // The kind is asked for first only to say it; O_NOFOLLOW and O_DIRECTORY decide.
  has_folder(entry);
  FileDescriptor fd(
      ::openat(descriptor(), entry.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd.is_open() && (errno == ELOOP || errno == ENOTDIR)) {
    refuse(path_ / entry, "it changed while it was opened");
  }
  if (!fd.is_open()) fail_system(errno, "open the folder", path_ / entry);
  return {std::move(fd), path_ / entry};
}

Folder Folder::make(std::string_view name, const FileCalls& calls) const {
  const std::string entry = checked(path_, name);
  if (!has_folder(entry) && calls.make_folder(descriptor(), entry.c_str()) != 0 &&
      errno != EEXIST) {
    fail_system(errno, "create the folder", path_ / entry);
  }
  return enter(entry);
}

// What the name is, is asked before opening, because opening a FIFO would wait for its writer and
// opening some devices does something; and of the opened file once more.
FileDescriptor Folder::open_regular(const std::string& name, int flags,
                                    HardLinks hard_links) const {
  const fs::path path = path_ / name;
  has_file(name, hard_links);
  FileDescriptor fd(::openat(descriptor(), name.c_str(),
                             flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0666));
  if (!fd.is_open() && errno == ELOOP) refuse(path, "it changed while it was opened");
  if (!fd.is_open()) fail_system(errno, "open", path);
  const struct stat status = status_of(fd, path);
  if (!S_ISREG(status.st_mode)) refuse_kind(path, status.st_mode, "a regular file");
  check_hard_links(status, hard_links, path);
  return fd;
}

FileDescriptor Folder::open_file(std::string_view name) const {
  return open_regular(checked(path_, name), O_RDONLY, HardLinks::kAllowed);
}

FileDescriptor Folder::open_to_append(std::string_view name) const {
  return open_regular(checked(path_, name), O_RDWR | O_CREAT | O_APPEND, HardLinks::kRefused);
}

FileDescriptor Folder::open_self(const FileCalls& calls) const {
  FileDescriptor fd(calls.open(descriptor(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0));
  if (!fd.is_open()) fail_system(errno, "open the folder", path_);
  return fd;
}

void Folder::remove(std::string_view name) const { remove_within(checked(path_, name), 0); }

void Folder::remove_within(const std::string& name, int depth) const {
  const bool is_folder = S_ISDIR(mode_of(name));
  if (is_folder) {
    if (depth == kMaxDepth) refuse(path_ / name, fmt::format("it is {} folders deep", depth));
    const Folder inner = enter(name);
    for (const std::string& entry : inner.list()) inner.remove_within(entry, depth + 1);
  }
  const int flags = is_folder ? AT_REMOVEDIR : 0;
  if (::unlinkat(descriptor(), name.c_str(), flags) != 0 && errno != ENOENT) {
    fail_system(errno, "remove", path_ / name);
  }
}

void Folder::rename(std::string_view from, std::string_view to, const FileCalls& calls) const {
  const FolderEntry a = *this / from;
  const FolderEntry b = *this / to;
  if (calls.rename(descriptor(), a.name.c_str(), b.name.c_str()) != 0) {
    fail_system(errno, "rename " + quoted(a.path()) + " to", b.path());
  }
  sync(calls);
}

bool Folder::exchange(std::string_view a, std::string_view b, const FileCalls& calls) const {
  const FolderEntry first = *this / a;
  const FolderEntry second = *this / b;
  if (calls.exchange(descriptor(), first.name.c_str(), second.name.c_str()) == 0) return true;
  if (errno == EINVAL || errno == ENOSYS) return false;
  fail_system(errno, "replace", second.path());
}

void Folder::sync(const FileCalls& calls) const {
  const FileDescriptor fd = open_self(calls);
  // Some file systems cannot do it for folders and say EINVAL: then there is nothing to wait for.
  if (calls.sync(fd.get()) != 0 && errno != EINVAL) fail_system(errno, "write the folder", path_);
}

FolderEntry entry_of(const fs::path& path) {
  check_path(path);
  std::error_code error;
  const bool is_link = fs::is_symlink(path, error);
  const fs::path target = is_link ? fs::canonical(path, error) : path;
  if (is_link && error) fail_system(error.value(), "write", path);
  const fs::file_status status = fs::status(target, error);
  // So that "--out /dev/null" does not replace the device.
  require(!fs::exists(status) || fs::is_regular_file(status), ErrorCode::kIo,
          "cannot write {}: it is {} not a regular file", quoted(path),
          is_link ? "a link to something that is" : "there and is");
  require(target.has_filename(), ErrorCode::kIo, "cannot write {}: it names a folder",
          quoted(path));
  return Folder::open(target.parent_path()) / target.filename().native();
}

}  // namespace trainscope
