// Atomic replacement of files, appending of lines.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <string>
#include <system_error>
#include <utility>

#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/system_error.h"

namespace trainscope {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kBufferBytes = std::size_t{1} << 20;

// What is written where, and by which calls.
struct Output {
  const FileDescriptor& fd;
  const fs::path& path;  // for messages
  const FileCalls& calls;
};

void write_all(const Output& output, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = output.calls.write(output.fd.get(), bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_system(errno, "write", output.path);
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
}

// The path to replace: behind a symbolic link the file it points to. Something there that is not a
// regular file is refused, so that "--out /dev/null" does not replace the device.
fs::path target_of(const fs::path& path) {
  check_path(path);
  std::error_code error;
  if (!fs::is_symlink(path, error)) {
    const fs::file_status status = fs::status(path, error);
    require(!fs::exists(status) || fs::is_regular_file(status), ErrorCode::kIo,
            "cannot write {}: it is there and is not a regular file", quoted(path));
    return path;
  }
  fs::path target = fs::canonical(path, error);
  if (error) fail_system(error.value(), "write", path);
  require(fs::is_regular_file(target, error), ErrorCode::kIo,
          "cannot write {}: it is a link to something that is not a regular file", quoted(path));
  return target;
}

struct Temporary {
  FileDescriptor fd;
  fs::path path;
};

// A new file in the folder of `target`. The process id keeps the names of two processes apart, the
// counter those of one; O_EXCL decides.
Temporary create_temporary(const fs::path& target, const FileCalls& calls) {
  for (int attempt = 0;; ++attempt) {
    fs::path path = target.parent_path() / (".trainscope-" + std::to_string(::getpid()) + "-" +
                                            std::to_string(attempt) + ".tmp");
    FileDescriptor fd(calls.open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (fd.is_open()) return {std::move(fd), std::move(path)};
    if (errno != EEXIST) fail_system(errno, "write", target);
  }
}

// The size up to and including the last line end: what follows is a line that was cut short.
off_t whole_lines(const FileDescriptor& fd, off_t size, const fs::path& path) {
  std::vector<char> block(1 << 16);
  while (size > 0) {
    const auto length = std::min<off_t>(size, static_cast<off_t>(block.size()));
    const ssize_t n =
        ::pread(fd.get(), block.data(), static_cast<std::size_t>(length), size - length);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_system(errno, "read", path);
    if (n != length) return size;  // somebody else cuts it: leave it alone
    for (off_t i = length; i > 0; --i) {
      if (block[static_cast<std::size_t>(i - 1)] == '\n') return size - length + i;
    }
    size -= length;
  }
  return 0;
}

}  // namespace

AtomicFile::AtomicFile(const fs::path& path, const FileCalls& calls)
    : calls_(calls), path_(target_of(path)) {
  Temporary temporary = create_temporary(path_, calls_);
  temporary_ = std::move(temporary.path);
  fd_ = std::move(temporary.fd);
}

AtomicFile::~AtomicFile() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  written_bytes_ += bytes.size();
  if (buffer_.size() + bytes.size() > kBufferBytes) flush();
  if (bytes.size() > kBufferBytes) {
    write_all({fd_, path_, calls_}, bytes);
  } else {
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  }
}

void AtomicFile::flush() {
  write_all({fd_, path_, calls_}, buffer_);
  buffer_.clear();
}

void AtomicFile::commit() {
  CHECK_INVARIANT(!temporary_.empty());
  flush();
  if (calls_.sync(fd_.get()) != 0) fail_system(errno, "write", path_);
  if (calls_.rename(temporary_.c_str(), path_.c_str()) != 0) fail_system(errno, "write", path_);
  temporary_.clear();
  fd_.close();
  fsync_directory(path_.parent_path(), calls_);
}

void write_file_atomic(const fs::path& path, std::span<const std::byte> bytes,
                       const FileCalls& calls) {
  AtomicFile file(path, calls);
  file.write(bytes);
  file.commit();
}

void write_file_atomic(const fs::path& path, std::string_view text, const FileCalls& calls) {
  write_file_atomic(path, std::as_bytes(std::span(text)), calls);
}

AppendFile::AppendFile(const fs::path& path) : path_(path) {
  check_path(path);
  fd_ = FileDescriptor(::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  if (!fd_.is_open()) fail_system(errno, "write", path);
  struct stat status {};
  if (::fstat(fd_.get(), &status) != 0) fail_system(errno, "write", path);
  if (!S_ISREG(status.st_mode)) return;
  const off_t size = whole_lines(fd_, status.st_size, path);
  if (size != status.st_size && ::ftruncate(fd_.get(), size) != 0) {
    fail_system(errno, "write", path);
  }
}

void AppendFile::write_line(std::string_view line) {
  CHECK_INVARIANT(line.find('\n') == std::string_view::npos);
  std::string text(line);
  text += '\n';
  write(text);
}

void AppendFile::write(std::string_view bytes) {
  write_all({fd_, path_, system_calls()}, std::as_bytes(std::span(bytes)));
}

void AppendFile::sync() {
  // A device or pipe has nothing to wait for.
  if (::fdatasync(fd_.get()) != 0 && errno != EINVAL) fail_system(errno, "write", path_);
}

}  // namespace trainscope
