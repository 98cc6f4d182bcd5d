// Reading and mapping of files, folders.
#include "engine/core/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "engine/core/error.h"
#include "engine/core/system_error.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

namespace fs = std::filesystem;

std::string_view kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a FIFO";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

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

std::string read_file(const fs::path& path, std::uint64_t max_bytes) {
  const FileDescriptor fd = open_regular(path);
  const std::uint64_t size = regular_size(fd, path);
  require(size <= max_bytes, ErrorCode::kBadInput, "{} has {}, more than the allowed {}",
          quoted(path), human_bytes(size), human_bytes(max_bytes));
  std::string text(static_cast<std::size_t>(size), '\0');
  text.resize(read_some(fd, 0, std::as_writable_bytes(std::span(text)), path));
  return text;
}

MappedFile MappedFile::open(const fs::path& path) { return {open_regular(path), path}; }

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

void make_directories(const fs::path& path, const FileCalls& calls) {
  check_path(path);
  fs::path made;
  for (const fs::path& part : path) {
    made /= part;
    if (folder_exists(made) || calls.make_folder(made.c_str()) == 0) continue;
    // Another process may have been faster; a file of that name is in the way.
    const int error_number = errno == EEXIST ? ENOTDIR : errno;
    if (!folder_exists(made)) fail_system(error_number, "create the folder", path);
  }
}

std::vector<std::string> list_directory(const fs::path& path) {
  check_path(path);
  std::error_code error;
  std::vector<std::string> names;
  for (fs::directory_iterator entry(path, error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    names.push_back(entry->path().filename().string());
  }
  if (error) fail_system(error.value(), "list the folder", path);
  std::sort(names.begin(), names.end());
  return names;
}

void remove_tree(const fs::path& root, const fs::path& path) {
  check_path(path);
  std::error_code error;
  const fs::path inside = fs::weakly_canonical(root, error);
  if (error) fail_system(error.value(), "remove", root);
  // The folder that holds the path, without links; the last component may be a link to remove.
  const fs::path parent =
      fs::weakly_canonical(path.parent_path().empty() ? "." : path.parent_path(), error);
  if (error) fail_system(error.value(), "remove", path);
  const auto [end_of_root, rest] =
      std::mismatch(inside.begin(), inside.end(), parent.begin(), parent.end());
  const fs::path name = path.filename();
  CHECK_INVARIANT(end_of_root == inside.end());
  CHECK_INVARIANT(!name.empty() && name != "." && name != "..");
  fs::remove_all(parent / name, error);
  if (error) fail_system(error.value(), "remove", path);
}

void rename_directory(const fs::path& from, const fs::path& to, const FileCalls& calls) {
  check_path(from);
  check_path(to);
  if (calls.rename(from.c_str(), to.c_str()) != 0) {
    fail_system(errno, "rename " + quoted(from) + " to", to);
  }
  fsync_directory(to.parent_path(), calls);
  if (from.parent_path() != to.parent_path()) fsync_directory(from.parent_path(), calls);
}

void fsync_directory(const fs::path& path, const FileCalls& calls) {
  const fs::path folder = path.empty() ? "." : path;
  check_path(folder);
  const FileDescriptor fd(calls.open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0));
  if (!fd.is_open()) fail_system(errno, "open the folder", folder);
  // Some file systems cannot do it for folders and say EINVAL: then there is nothing to wait for.
  if (calls.sync(fd.get()) != 0 && errno != EINVAL) fail_system(errno, "write the folder", folder);
}

}  // namespace trainscope
