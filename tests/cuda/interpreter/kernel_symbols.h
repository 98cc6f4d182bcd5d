// Which kernel of a PTX text a function of this program is: both compilers name it alike.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace trainscope::ptx {

// Without what the two compilers write differently: unnamed namespaces, which nvcc names by the
// file, and the types of a template's parameters, which follow from its arguments.
std::string common_name(std::string_view symbol);

// The functions of this program by address, from its own file.
class ProgramSymbols {
 public:
  ProgramSymbols();
  // Empty for an unknown one.
  std::string_view name_of(const void* function) const;

  struct Function {
    std::string name;
    const void* address = nullptr;
  };
  // That of a common name; null for an unknown one.
  const Function* named(std::string_view common) const;

 private:
  std::map<std::uintptr_t, std::string> names_;
  std::map<std::string, Function, std::less<>> functions_;  // by their common names
};

}  // namespace trainscope::ptx
