// libFuzzer target: the bytes of a safetensors file, all its tensors read. Accepted or refused with
// kBadInput, never anything else.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "engine/core/safetensors.h"
#include "tests/fuzz/verdict.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace trainscope::test {
namespace {

// A file in memory: reading goes through the same mapping as that of a file on a disk.
class MemoryFile {
 public:
  MemoryFile(const std::uint8_t* data, std::size_t size)
      : descriptor_(::memfd_create("fuzz", MFD_CLOEXEC)) {
    if (descriptor_ < 0 || ::write(descriptor_, data, size) != static_cast<ssize_t>(size)) {
      report("no file in memory");
    }
  }
  ~MemoryFile() { ::close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  int descriptor_;
};

void read_all(const std::string& path) {
  try {
    SafetensorsFile file = SafetensorsFile::open(path);
    for (const SafetensorsEntry& entry : file.entries()) {
      if (!entry.dtype) continue;
      Tensor tensor = file.tensor(entry.name);
      if (tensor.type().shape != entry.shape) report("a tensor of another shape than its entry");
    }
  } catch (const Error& error) {
    check_refusal(error, error.code() == ErrorCode::kBadInput);
  }
}

// Mutates the header alone and writes its new length before it: else nearly every mutation ends at
// a length that does not fit.
std::size_t mutate_header(std::uint8_t* data, std::size_t size, std::size_t max_size) {
  std::uint64_t header_size = 0;
  if (size < sizeof(header_size) || max_size <= size) return LLVMFuzzerMutate(data, size, max_size);
  std::memcpy(&header_size, data, sizeof(header_size));
  header_size = std::min<std::uint64_t>(header_size, size - sizeof(header_size));
  std::uint8_t* header = data + sizeof(header_size);
  std::string tensors(data + sizeof(header_size) + header_size, data + size);
  std::size_t most = max_size - sizeof(header_size) - tensors.size();
  header_size = LLVMFuzzerMutate(header, header_size, most);
  std::memcpy(data, &header_size, sizeof(header_size));
  std::copy(tensors.begin(), tensors.end(), header + header_size);
  return sizeof(header_size) + header_size + tensors.size();
}

}  // namespace
}  // namespace trainscope::test

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  trainscope::test::MemoryFile file(data, size);
  trainscope::test::read_all(file.path());
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t max_size, unsigned int seed) {
  if (seed % 2 == 0) return trainscope::test::mutate_header(data, size, max_size);
  return LLVMFuzzerMutate(data, size, max_size);
}
