// The file of choices: a first line that says what it is, then a line for each matmul, its text and
// the 8 words of its algorithm in hexadecimal, which cuBLASLt lets be stored for the same version.
#include "kernels/cuda/gemm/lt_choices.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "kernels/api/environment.h"

namespace trainscope::cuda {
namespace {

constexpr std::string_view kFirstLine = "Trainscope's choices of cuBLASLt's algorithms, 1";
constexpr char kBetween = '\t';
constexpr std::size_t kWords = std::size(cublasLtMatmulAlgo_t{}.data);

[[noreturn]] void fail(const std::string& file, const std::string& why) {
  throw std::runtime_error("the choices of matmuls in '" + file + "' " + why);
}

[[noreturn]] void fail_by_system(const std::string& file, const std::string& what) {
  fail(file, what + ": " + std::strerror(errno));
}

// One process at a time changes the file; the lock is a file of its own, which stays.
class FileLock {
 public:
  explicit FileLock(const std::string& file)
      : descriptor_(open((file + ".lock").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0666)) {
    if (descriptor_ < 0 || flock(descriptor_, LOCK_EX) != 0) {
      if (descriptor_ >= 0) close(descriptor_);
      fail_by_system(file, "cannot be locked");
    }
  }
  ~FileLock() { close(descriptor_); }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  int descriptor_;
};

std::string line_of(const std::string& matmul, const cublasLtMatmulAlgo_t& algorithm) {
  std::string line = matmul + kBetween;
  for (const std::uint64_t word : algorithm.data) {
    char text[17];
    std::snprintf(text, sizeof text, "%016" PRIx64, word);
    line += text;
  }
  return line + "\n";
}

// Of 16 digits a word; none where the text is not that.
std::optional<cublasLtMatmulAlgo_t> algorithm_of(std::string_view digits) {
  const bool is_whole = digits.size() == 16 * kWords &&
                        digits.find_first_not_of("0123456789abcdef") == std::string_view::npos;
  if (!is_whole) return std::nullopt;
  cublasLtMatmulAlgo_t algorithm = {};
  for (std::size_t i = 0; i < kWords; ++i) {
    const std::string word(digits.substr(16 * i, 16));
    algorithm.data[i] = std::strtoull(word.c_str(), nullptr, 16);
  }
  return algorithm;
}

// All bytes are on the disk when it returns.
void write_and_sync(const std::string& file, const std::string& text) {
  const int descriptor = open(file.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0666);
  if (descriptor < 0) fail_by_system(file, "cannot be written");
  std::string_view rest = text;
  bool done = true;
  while (done && !rest.empty()) {
    const ssize_t written = ::write(descriptor, rest.data(), rest.size());
    done = written > 0;
    if (done) rest.remove_prefix(static_cast<std::size_t>(written));
  }
  done = done && fsync(descriptor) == 0;
  done = close(descriptor) == 0 && done;
  if (!done) fail_by_system(file, "cannot be written");
}

}  // namespace

LtChoices::LtChoices(std::string file) : file_(std::move(file)) { read(); }

// Lines of the file come over those that are known: whoever wrote it was first.
void LtChoices::read() {
  std::ifstream in(file_, std::ios::binary);
  if (!in) {
    if (access(file_.c_str(), F_OK) == 0) fail_by_system(file_, "cannot be read");
    return;
  }
  std::string line;
  if (!std::getline(in, line) || in.eof() || line != kFirstLine) fail(file_, "are no such file");
  for (int number = 2; std::getline(in, line); ++number) {
    const std::size_t at = line.rfind(kBetween);
    const std::optional<cublasLtMatmulAlgo_t> algorithm =
        at == std::string::npos || in.eof() ? std::nullopt
                                            : algorithm_of(std::string_view(line).substr(at + 1));
    if (!algorithm) fail(file_, "are damaged: line " + std::to_string(number));
    algorithms_[line.substr(0, at)] = *algorithm;
  }
}

void LtChoices::write() const {
  std::string text = std::string(kFirstLine) + "\n";
  for (const auto& [matmul, algorithm] : algorithms_) text += line_of(matmul, algorithm);
  const std::string fresh = file_ + ".new";
  write_and_sync(fresh, text);
  if (std::rename(fresh.c_str(), file_.c_str()) != 0) fail_by_system(file_, "cannot be written");
}

std::optional<cublasLtMatmulAlgo_t> LtChoices::find(const std::string& matmul) const {
  const auto found = algorithms_.find(matmul);
  return found == algorithms_.end() ? std::nullopt : std::optional(found->second);
}

cublasLtMatmulAlgo_t LtChoices::keep(const std::string& matmul,
                                     const cublasLtMatmulAlgo_t& algorithm) {
  const FileLock lock(file_);
  read();
  const auto [entry, is_new] = algorithms_.emplace(matmul, algorithm);
  if (is_new) write();
  return entry->second;
}

void LtChoices::replace(const std::string& matmul, const cublasLtMatmulAlgo_t& algorithm) {
  const FileLock lock(file_);
  read();
  algorithms_[matmul] = algorithm;
  write();
}

LtChoices* lt_choices() {
  static const std::unique_ptr<LtChoices> choices = [] {
    const char* file = std::getenv(kMatmulChoicesVariable);
    const bool is_named = file != nullptr && *file != '\0';
    return is_named ? std::make_unique<LtChoices>(file) : nullptr;
  }();
  return choices.get();
}

}  // namespace trainscope::cuda
