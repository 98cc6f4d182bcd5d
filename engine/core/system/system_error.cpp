// Failed system calls on files as errors.
#include "engine/core/system/system_error.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <system_error>

#include "engine/core/error.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

std::string_view hint_of(int error_number) {
  switch (error_number) {
    case ENOENT:
      return "check the path for a misspelling";
    case EACCES:
    case EPERM:
      return "check the permissions of the file and of the folders above it";
    case EROFS:
      return "the file system is read-only: choose another folder";
    case ENOSPC:
    case EDQUOT:
      return "free some space, or choose a folder on another disk";
    case EFBIG:
      return "the file system or a limit (ulimit -f) does not allow files that large";
    case EMFILE:
    case ENFILE:
      return "too many files are open: raise the limit (ulimit -n)";
    case ENAMETOOLONG:
      return "choose a shorter name";
    default:
      return "";
  }
}

}  // namespace

void fail_system(int error_number, std::string_view what, const std::filesystem::path& path) {
  const std::string reason = std::generic_category().message(error_number);
  throw Error(ErrorCode::kIo, fmt::format("cannot {} {}: {}", what, quoted(path), reason))
      .hint(std::string(hint_of(error_number)));
}

void check_path(const std::filesystem::path& path) {
  require(!path.empty(), ErrorCode::kBadInput, "a path is empty");
  require(path.native().find('\0') == std::string::npos, ErrorCode::kBadInput,
          "the path {} holds a NUL character", quoted(path));
}

std::string_view kind_of(mode_t mode) {
  if (S_ISREG(mode)) return "a file";
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISLNK(mode)) return "a symbolic link";
  if (S_ISFIFO(mode)) return "a FIFO";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

std::string quoted(const std::filesystem::path& path) {
  return fmt::format("'{}'", printable(path.native(), 400));
}

}  // namespace trainscope
