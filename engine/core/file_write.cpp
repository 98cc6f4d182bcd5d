// Atomic replacement of files, appending of lines.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/system/system_error.h"

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

constexpr std::string_view kTemporaryPrefix = ".trainscope-";
constexpr std::string_view kTemporaryEnding = ".tmp";

struct Temporary {
  FileDescriptor fd;
  std::string name;
};

// A new file in the folder of `entry`. The process id keeps the names of two processes apart, the
// counter those of one; O_EXCL decides.
Temporary create_temporary(const FolderEntry& entry, const FileCalls& calls) {
  for (int attempt = 0;; ++attempt) {
    std::string name =
        fmt::format("{}{}-{}{}", kTemporaryPrefix, ::getpid(), attempt, kTemporaryEnding);
    FileDescriptor fd(calls.open(entry.folder.descriptor(), name.c_str(),
                                 O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (fd.is_open()) return {std::move(fd), std::move(name)};
    if (errno != EEXIST) fail_system(errno, "write", entry.path());
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

AtomicFile::AtomicFile(FolderEntry entry, const FileCalls& calls)
    : calls_(calls), entry_(std::move(entry)) {
  entry_.folder.has_file(entry_.name);  // something else there is refused
  Temporary temporary = create_temporary(entry_, calls_);
  temporary_ = std::move(temporary.name);
  fd_ = std::move(temporary.fd);
}

AtomicFile::~AtomicFile() {
  if (!temporary_.empty()) ::unlinkat(entry_.folder.descriptor(), temporary_.c_str(), 0);
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  written_bytes_ += bytes.size();
  if (buffer_.size() + bytes.size() > kBufferBytes) flush();
  if (bytes.size() > kBufferBytes) {
    write_all({fd_, entry_.path(), calls_}, bytes);
  } else {
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  }
}

void AtomicFile::flush() {
  write_all({fd_, entry_.path(), calls_}, buffer_);
  buffer_.clear();
}

void AtomicFile::commit() {
  CHECK_INVARIANT(!temporary_.empty());
  flush();
  const int folder = entry_.folder.descriptor();
  if (calls_.sync(fd_.get()) != 0 ||
      calls_.rename(folder, temporary_.c_str(), entry_.name.c_str()) != 0) {
    fail_system(errno, "write", entry_.path());
  }
  temporary_.clear();
  fd_.close();
  entry_.folder.sync(calls_);
}

void write_file_atomic(const fs::path& path, std::span<const std::byte> bytes) {
  AtomicFile file(path);
  file.write(bytes);
  file.commit();
}

void write_file_atomic(const fs::path& path, std::string_view text) {
  write_file_atomic(path, std::as_bytes(std::span(text)));
}

void write_file_atomic(const FolderEntry& entry, std::string_view text, const FileCalls& calls) {
  AtomicFile file(entry, calls);
  file.write(text);
  file.commit();
}

bool is_temporary_name(std::string_view name) {
  return name.starts_with(kTemporaryPrefix) && name.ends_with(kTemporaryEnding);
}

void remove_temporary_files(const Folder& folder) {
  for (const std::string& name : folder.list()) {
    if (is_temporary_name(name)) folder.remove(name);
  }
}

AppendFile::AppendFile(const FolderEntry& entry)
    : path_(entry.path()), fd_(entry.folder.open_to_append(entry.name)) {
  struct stat status {};
  if (::fstat(fd_.get(), &status) != 0) fail_system(errno, "write", path_);
  const off_t size = whole_lines(fd_, status.st_size, path_);
  if (size != status.st_size && ::ftruncate(fd_.get(), size) != 0) {
    fail_system(errno, "write", path_);
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
  if (::fdatasync(fd_.get()) != 0) fail_system(errno, "write", path_);
}

}  // namespace trainscope
