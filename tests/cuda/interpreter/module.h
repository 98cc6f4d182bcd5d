// The PTX text of one source file: its kernels, each parsed when it is first asked for.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tests/cuda/interpreter/instruction.h"

namespace trainscope::ptx {

class Module {
 public:
  // Throws std::runtime_error where the text is not understood; `name` is said then.
  Module(std::string name, std::string text);

  const std::string& name() const { return name_; }
  const std::string& text() const { return text_; }
  // As the text names them.
  std::vector<std::string_view> kernel_names() const;
  // Throws for an unknown kernel, or where its text is not understood, with the line. Its
  // instructions may be changed while it does not run.
  Kernel& kernel(std::string_view name);
  // Whether a constant of the module has these bytes.
  bool holds(std::uint64_t address, std::size_t bytes) const;
  // "norm.cu:12" of an instruction, and the file's path; empty where the text does not say.
  std::string source_place(const Instruction& instruction) const;
  std::string_view source_path(const Instruction& instruction) const;

 private:
  struct Entry {
    std::string_view parameters;  // between the parentheses
    std::string_view body;        // between the braces
    int parameters_line = 0;
    int body_line = 0;
    unsigned most_threads = 0;  // of a block; 0: the text does not say
    std::unique_ptr<Kernel> parsed;
  };

  void find_entries();
  void find_variables();

  std::string name_;
  std::string text_;
  std::map<std::string_view, Entry> entries_;
  std::map<std::string_view, std::vector<std::uint8_t>> variables_;  // constant ones
  std::map<std::string_view, std::string_view> shared_;              // declarations
  std::set<std::string_view> launch_memory_;  // names of shared memory that a launch asks for
  std::map<int, std::string> source_files_;
};

}  // namespace trainscope::ptx
