// Reading and mapping of files, folders.
#include "engine/core/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "engine/core/error.h"
#include "engine/core/system/system_error.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

namespace fs = std::filesystem;

// Opens a regular file. Non-blocking, because opening a FIFO would wait for its writer; the kind is
// asked for before opening too, because opening some devices does something.
FileDescriptor open_regular(const fs::path& path) {
  check_path(path);
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) fail_system(errno, "open", path);
  require(S_ISREG(status.st_mode), ErrorCode::kIo, "cannot read {}: it is {}, not a regular file",
          quoted(path), kind_of(status.st_mode));
  FileDescriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd.is_open()) fail_system(errno, "open", path);
  return fd;
}

// The size of what is open, which must be a regular file.
std::uint64_t regular_size(const FileDescriptor& fd, const fs::path& path) {
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) fail_system(errno, "read", path);
  require(S_ISREG(status.st_mode), ErrorCode::kIo, "cannot read {}: it is {}, not a regular file",
          quoted(path), kind_of(status.st_mode));
  return static_cast<std::uint64_t>(status.st_size);
}

// Bytes read from `offset` on: fewer than asked for only at the end of the file.
std::size_t read_some(const FileDescriptor& fd, std::uint64_t offset, std::span<std::byte> into,
                      const fs::path& path) {
  std::size_t done = 0;
  while (done < into.size()) {
    const ssize_t n = ::pread(fd.get(), into.data() + done, into.size() - done,
                              static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_system(errno, "read", path);
    if (n == 0) break;
    done += static_cast<std::size_t>(n);
  }
  return done;
}

std::string read_all(const FileDescriptor& fd, const fs::path& path, std::uint64_t max_bytes) {
  const std::uint64_t size = regular_size(fd, path);
  require(size <= max_bytes, ErrorCode::kBadInput, "{} has {}, more than the allowed {}",
          quoted(path), human_bytes(size), human_bytes(max_bytes));
  std::string text(static_cast<std::size_t>(size), '\0');
  text.resize(read_some(fd, 0, std::as_writable_bytes(std::span(text)), path));
  return text;
}

}  // namespace

std::string read_file(const fs::path& path, std::uint64_t max_bytes) {
  return read_all(open_regular(path), path, max_bytes);
}

std::string read_file(const FolderEntry& entry, std::uint64_t max_bytes) {
  return read_all(entry.folder.open_file(entry.name), entry.path(), max_bytes);
}

MappedFile MappedFile::open(const fs::path& path) { return {open_regular(path), path}; }

MappedFile MappedFile::open(const FolderEntry& entry) {
  return {entry.folder.open_file(entry.name), entry.path()};
}

MappedFile::MappedFile(FileDescriptor fd, fs::path path)
    : fd_(std::move(fd)), path_(std::move(path)) {
  const std::uint64_t size = regular_size(fd_, path_);
  if (size == 0) return;  // mmap refuses a length of 0
  void* memory =
      ::mmap(nullptr, static_cast<std::size_t>(size), PROT_READ, MAP_PRIVATE, fd_.get(), 0);
  if (memory == MAP_FAILED) fail_system(errno, "map", path_);
  data_ = static_cast<const std::byte*>(memory);
  size_bytes_ = static_cast<std::size_t>(size);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : fd_(std::move(other.fd_)),
      path_(std::move(other.path_)),
      data_(std::exchange(other.data_, nullptr)),
      size_bytes_(std::exchange(other.size_bytes_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  if (this == &other) return *this;
  unmap();
  fd_ = std::move(other.fd_);
  path_ = std::move(other.path_);
  data_ = std::exchange(other.data_, nullptr);
  size_bytes_ = std::exchange(other.size_bytes_, 0);
  return *this;
}

MappedFile::~MappedFile() { unmap(); }

void MappedFile::unmap() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_bytes_);
  data_ = nullptr;
}

void MappedFile::read(std::uint64_t offset, std::span<std::byte> into) const {
  const bool inside = offset <= size_bytes_ && into.size() <= size_bytes_ - offset;
  const std::size_t got = inside ? read_some(fd_, offset, into, path_) : 0;
  require(inside && got == into.size(), ErrorCode::kIo,
          "{} ends before byte {}: it has been cut short", quoted(path_), offset + into.size());
}

bool path_exists(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

bool folder_exists(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

void make_directories(const fs::path& path) {
  check_path(path);
  fs::path made;
  for (const fs::path& part : path) {
    made /= part;
    if (folder_exists(made) || ::mkdir(made.c_str(), 0777) == 0) continue;
    // Another process may have been faster; a file of that name is in the way.
    const int error_number = errno == EEXIST ? ENOTDIR : errno;
    if (!folder_exists(made)) fail_system(error_number, "create the folder", path);
  }
}

std::vector<std::string> list_directory(const fs::path& path) {
  check_path(path);
  return Folder::open(path).list();
}

}  // namespace trainscope
