// Choices of cuBLASLt's algorithms: by time, and kept in a file that processes share.
#include <doctest/doctest.h>
#include <stdlib.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <stdexcept>
#include <string>

#include "kernels/cuda/gemm/lt_choices.h"
#include "kernels/cuda/gemm/lt_timing.h"
#include "tests/cuda/simulated/kernel_runner.h"

// This program launches no kernels.
extern "C" const trainscope::simulated::RunnableKernel* trainscope_simulated_kernel(const char*) {
  return nullptr;
}

namespace trainscope::cuda {
namespace {

namespace fs = std::filesystem;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

class Folder {
 public:
  Folder() {
    std::string name = (fs::temp_directory_path() / "choices-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~Folder() { fs::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string file() const { return (path_ / "choices").string(); }
  std::string text() const {
    std::ifstream in(file(), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void write(const std::string& text) const { std::ofstream(file(), std::ios::binary) << text; }

 private:
  fs::path path_;
};

cublasLtMatmulAlgo_t algorithm(std::uint64_t number) {
  cublasLtMatmulAlgo_t made = {};
  made.data[0] = number;
  made.data[7] = ~number;
  return made;
}

std::uint64_t number_of(const std::optional<cublasLtMatmulAlgo_t>& found) {
  REQUIRE(found.has_value());
  REQUIRE(found->data[7] == ~found->data[0]);
  return found->data[0];
}

std::string why_not_read(const Folder& folder, const std::string& text) {
  folder.write(text);
  try {
    const LtChoices choices(folder.file());
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return {};
}

}  // namespace

TEST_CASE("choices of matmuls: what is kept is found by the next process") {
  const Folder folder;
  LtChoices first(folder.file());
  CHECK_FALSE(first.find("a").has_value());
  CHECK(number_of(first.keep("a", algorithm(5))) == 5);
  CHECK(number_of(first.keep("b", algorithm(0xFEDCBA9876543210))) == 0xFEDCBA9876543210);
  const LtChoices next(folder.file());
  CHECK(number_of(next.find("a")) == 5);
  CHECK(number_of(next.find("b")) == 0xFEDCBA9876543210);
  CHECK_FALSE(next.find("c").has_value());
}

TEST_CASE("choices of matmuls: of two processes the first one's stays, and both have all") {
  const Folder folder;
  LtChoices first(folder.file());
  LtChoices second(folder.file());
  CHECK(number_of(first.keep("a", algorithm(1))) == 1);
  CHECK(number_of(second.keep("a", algorithm(2))) == 1);
  CHECK(number_of(second.keep("b", algorithm(3))) == 3);
  CHECK(number_of(first.keep("c", algorithm(4))) == 4);
  CHECK(number_of(first.find("b")) == 3);
  first.replace("a", algorithm(6));
  const LtChoices next(folder.file());
  CHECK(number_of(next.find("a")) == 6);
  CHECK(number_of(next.find("b")) == 3);
  CHECK(number_of(next.find("c")) == 4);
}

TEST_CASE("choices of matmuls: a file that is cut, changed or another one is refused and stays") {
  const Folder folder;
  LtChoices choices(folder.file());
  (void)choices.keep("a", algorithm(1));
  (void)choices.keep("b", algorithm(2));
  const std::string whole = folder.text();
  const std::size_t first_line = whole.find('\n') + 1;
  for (std::size_t bytes = 1; bytes < whole.size(); ++bytes) {
    const std::string cut = whole.substr(0, bytes);
    const bool at_a_line = bytes >= first_line && cut.back() == '\n';
    const std::string why = why_not_read(folder, cut);
    INFO(bytes, " of ", whole.size(), ": ", why);
    CHECK(why.empty() == at_a_line);
    CHECK(folder.text() == cut);
  }
  std::string changed = whole;
  changed[changed.size() - 2] = 'g';
  CHECK(why_not_read(folder, changed).find("are damaged: line 3") != std::string::npos);
  CHECK(why_not_read(folder, "step,loss\n").find("are no such file") != std::string::npos);
  CHECK(why_not_read(folder, "").find(folder.file()) != std::string::npos);
}

TEST_CASE("choices of matmuls: a file that cannot be written is told") {
  LtChoices choices("/proc/no such folder/choices");
  CHECK_THROWS_AS((void)choices.keep("a", algorithm(1)), std::runtime_error);
}

TEST_CASE("the fastest algorithm is the first unless another one is clearly faster") {
  const auto fastest = [](std::array<double, 3> seconds) { return fastest_of(seconds); };
  CHECK(fastest({1.0, 2.0, 3.0}) == 0);
  CHECK(fastest({1.0, 0.99, 3.0}) == 0);
  CHECK(fastest({1.0, 0.97, 0.5}) == 2);
  CHECK(fastest({kInfinity, kInfinity, 3.0}) == 2);
  CHECK(fastest({kInfinity, kInfinity, kInfinity}) == 0);
}

}  // namespace trainscope::cuda
