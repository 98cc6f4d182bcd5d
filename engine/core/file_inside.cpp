// Opens files that other files name, without leaving a folder.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/system/system_error.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(std::string_view relative, std::string_view why) {
  throw Error(ErrorCode::kBadInput,
              fmt::format("refused to open '{}': {}", printable(relative), why))
      .hint("a file may only name regular files in its own folder or below");
}

// The components without ".", all of them plain names.
std::vector<std::string> components_of(std::string_view relative) {
  if (relative.empty()) refuse(relative, "the path is empty");
  if (relative.find('\0') != std::string_view::npos) refuse(relative, "it holds a NUL character");
  if (relative.front() == '/') refuse(relative, "it is an absolute path");
  if (relative.back() == '/') refuse(relative, "it names a folder");
  std::vector<std::string> components;
  for (std::string_view part : split(relative, '/')) {
    if (part == "..") refuse(relative, "it leaves the folder by '..'");
    if (!part.empty() && part != ".") components.emplace_back(part);
  }
  if (components.empty()) refuse(relative, "it names a folder");
  return components;
}

// One component below the open folder `parent`. What the name is, is asked before opening (opening
// a device can do something) and holds after it: links are not followed, the kind is checked again.
class Walk {
 public:
  Walk(const fs::path& root, std::string_view relative) : root_(root), relative_(relative) {
    folder_ = FileDescriptor(::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!folder_.is_open()) fail_system(errno, "open the folder", root);
  }

  void enter(const std::string& name) {
    if (!S_ISDIR(mode_of(name))) refuse(relative_, fmt::format("{} is not a folder", show(name)));
    const int flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    folder_ = FileDescriptor(open_at(name, flags));
  }

  FileDescriptor open_file(const std::string& name) {
    if (!S_ISREG(mode_of(name))) refuse(relative_, "it is not a regular file");
    FileDescriptor fd(open_at(name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    struct stat status {};
    if (::fstat(fd.get(), &status) != 0) fail_system(errno, "open", root_ / relative_);
    if (!S_ISREG(status.st_mode)) refuse(relative_, "it is not a regular file");
    if (status.st_nlink != 1) {
      refuse(relative_, fmt::format("it has {} hard links", status.st_nlink));
    }
    return fd;
  }

 private:
  static std::string show(std::string_view name) { return fmt::format("'{}'", printable(name)); }

  mode_t mode_of(const std::string& name) const {
    struct stat status {};
    if (::fstatat(folder_.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
      fail_system(errno, "open", root_ / relative_);
    }
    if (S_ISLNK(status.st_mode)) {
      refuse(relative_, fmt::format("{} is a symbolic link", show(name)));
    }
    return status.st_mode;
  }

  int open_at(const std::string& name, int flags) const {
    const int fd = ::openat(folder_.get(), name.c_str(), flags);
    if (fd < 0 && (errno == ELOOP || errno == ENOTDIR)) {
      refuse(relative_, fmt::format("{} changed while it was opened", show(name)));
    }
    if (fd < 0) fail_system(errno, "open", root_ / relative_);
    return fd;
  }

  fs::path root_;
  std::string relative_;
  FileDescriptor folder_;
};

}  // namespace

MappedFile open_inside(const fs::path& root, std::string_view relative) {
  const std::vector<std::string> components = components_of(relative);
  const fs::path folder = root.empty() ? "." : root;
  check_path(folder);
  Walk walk(folder, relative);
  for (std::size_t i = 0; i + 1 < components.size(); ++i) walk.enter(components[i]);
  return {walk.open_file(components.back()), folder / relative};
}

}  // namespace trainscope
