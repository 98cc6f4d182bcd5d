// Which algorithm of cuBLASLt was the fastest for a matmul, kept in a file from process to process.
#pragma once

#include <cublasLt.h>

#include <map>
#include <optional>
#include <string>

namespace trainscope::cuda {

// A matmul's text, with all that the choice depends on, and its algorithm. What was once chosen
// stays, so that a run that goes on finds the algorithms, and so the bits, that it began with.
// Several processes may use one file. For one thread at a time. Functions throw std::runtime_error
// where the file cannot be read or written, or is none of choices.
class LtChoices {
 public:
  explicit LtChoices(std::string file);

  const std::string& file() const { return file_; }
  std::optional<cublasLtMatmulAlgo_t> find(const std::string& matmul) const;
  // The one that is kept from now on: another process's where it was quicker to choose. The file is
  // written whole or not at all.
  cublasLtMatmulAlgo_t keep(const std::string& matmul, const cublasLtMatmulAlgo_t& algorithm);
  // The same in place of what was kept, which the library offers no more.
  void replace(const std::string& matmul, const cublasLtMatmulAlgo_t& algorithm);

 private:
  void read();
  void write() const;

  const std::string file_;
  std::map<std::string, cublasLtMatmulAlgo_t> algorithms_;
};

// The file that TRAINSCOPE_MATMUL_CHOICES names, read when it is first asked for; null where it
// names none: then nothing is timed.
LtChoices* lt_choices();

}  // namespace trainscope::cuda
