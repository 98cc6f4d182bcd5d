// Open folders: what is in one is reached relative to its descriptor, a name at a time, and never
// through a link. So nobody who can write into a folder can lead a reader or writer out of it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/core/system/file_calls.h"

namespace trainscope {

// Owner of a file descriptor.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept;
  FileDescriptor& operator=(FileDescriptor&& other) noexcept;
  ~FileDescriptor();

  int get() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  void close();

 private:
  int fd_ = -1;
};

struct FolderEntry;

// Whether a file may have other names, which share its bytes. Replacing a file leaves those alone;
// adding to it does not.
enum class HardLinks : std::uint8_t { kAllowed, kRefused };

// Names are those of entries: not empty, "." or "..", without '/' and NUL. Anything else, and what
// is something else than asked for (a link, a FIFO, a device), is refused with kBadInput; what
// cannot be read or written is kIo. Copies share the descriptor.
class Folder {
 public:
  // Links in `path` are followed: it is the user's word.
  static Folder open(const std::filesystem::path& path);

  // As it was named: for messages.
  const std::filesystem::path& path() const { return path_; }
  FolderEntry operator/(std::string_view name) const;

  // Whether there is anything of that name, be it a link that leads nowhere.
  bool has(std::string_view name) const;
  // Whether it is there; what is there and is no regular file, or no folder, is refused.
  bool has_file(std::string_view name, HardLinks hard_links = HardLinks::kAllowed) const;
  bool has_folder(std::string_view name) const;
  // Names of the entries, sorted, without "." and "..".
  std::vector<std::string> list() const;

  Folder enter(std::string_view name) const;
  // Creates the folder where there is none, and enters it.
  Folder make(std::string_view name, const FileCalls& calls = system_calls()) const;
  FileDescriptor open_file(std::string_view name) const;  // a regular file, to read
  // A regular file without other names, to read and to add to; made where there is none.
  FileDescriptor open_to_append(std::string_view name) const;
  // The folder itself, to lock it or to wait for the disk.
  FileDescriptor open_self(const FileCalls& calls = system_calls()) const;
  // For calls relative to it; no more can be done with this descriptor.
  int descriptor() const { return fd_->get(); }

  // Removes a file, a link itself, or a folder with all it holds. No error when it is not there.
  void remove(std::string_view name) const;
  // Renames a file or folder and makes it durable; fails when `to` is a folder that holds
  // something.
  void rename(std::string_view from, std::string_view to,
              const FileCalls& calls = system_calls()) const;
  // Two entries trade places in one step. False where the file system cannot do that.
  bool exchange(std::string_view a, std::string_view b,
                const FileCalls& calls = system_calls()) const;
  // Makes creations, renamings and removals in it durable.
  void sync(const FileCalls& calls = system_calls()) const;

 private:
  Folder(FileDescriptor fd, std::filesystem::path path);
  // The kind of file, with permissions (st_mode); 0 when there is none of that name.
  std::uint32_t mode_of(const std::string& name) const;
  FileDescriptor open_regular(const std::string& name, int flags, HardLinks hard_links) const;
  void remove_within(const std::string& name, int depth) const;

  std::shared_ptr<const FileDescriptor> fd_;
  std::filesystem::path path_;
};

// An entry of an open folder, there or not: where a file is read or written.
struct FolderEntry {
  Folder folder;
  std::string name;

  std::filesystem::path path() const { return folder.path() / name; }  // for messages
};

// The entry that `path` names, for a file to be written: a link to a file is followed, because the
// path is the user's word. kIo when its folder is not there, or it is there and is no regular file.
FolderEntry entry_of(const std::filesystem::path& path);

}  // namespace trainscope
