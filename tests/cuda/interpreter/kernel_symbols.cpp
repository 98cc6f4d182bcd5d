// Reads the symbols of this program, and makes its names and those of nvcc the same.
#include "tests/cuda/interpreter/kernel_symbols.h"

#include <elf.h>
#include <sys/auxv.h>

#include <charconv>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <vector>

namespace trainscope::ptx {
namespace {

constexpr std::string_view kUnnamed = "_GLOBAL__N_";  // g++ has "12_GLOBAL__N_1"

bool is_digit(char c) { return c >= '0' && c <= '9'; }

template <typename T>
T read_at(const std::vector<char>& file, std::size_t offset) {
  T value;
  if (offset + sizeof value > file.size()) throw std::runtime_error("the program's file is cut");
  std::memcpy(&value, file.data() + offset, sizeof value);
  return value;
}

}  // namespace

std::string common_name(std::string_view symbol) {
  // What is private to a source, nvcc calls __nv_static_..._<the name>.
  if (symbol.starts_with("__nv_static_")) symbol.remove_prefix(symbol.find("__Z") + 1);
  std::string name;
  for (std::size_t at = symbol.find(kUnnamed); at != std::string_view::npos;
       at = symbol.find(kUnnamed)) {
    std::size_t digits = at;
    while (digits > 0 && is_digit(symbol[digits - 1])) --digits;
    std::size_t length = 0;
    std::from_chars(symbol.data() + digits, symbol.data() + at, length);
    name += symbol.substr(0, digits);
    name += "12_GLOBAL__N_1";
    symbol.remove_prefix(at + length);
  }
  name += symbol;
  // "..I<arguments>EEv<types of parameters>": a template that returns nothing.
  const std::size_t end = name.find("EEv");
  return end == std::string::npos ? name : name.substr(0, end);
}

ProgramSymbols::ProgramSymbols() {
  std::ifstream stream("/proc/self/exe", std::ios::binary);
  const std::vector<char> file{std::istreambuf_iterator<char>(stream), {}};
  const auto header = read_at<Elf64_Ehdr>(file, 0);
  // Where the program lies, against what its file says of its own headers.
  std::uintptr_t moved = 0;
  for (std::size_t i = 0; i < header.e_phnum; ++i) {
    const auto segment = read_at<Elf64_Phdr>(file, header.e_phoff + i * header.e_phentsize);
    if (segment.p_type == PT_PHDR) moved = getauxval(AT_PHDR) - segment.p_vaddr;
  }
  const auto section_at = [&](std::size_t i) {
    return read_at<Elf64_Shdr>(file, header.e_shoff + i * header.e_shentsize);
  };
  for (std::size_t i = 0; i < header.e_shnum; ++i) {
    const Elf64_Shdr section = section_at(i);
    if (section.sh_type != SHT_SYMTAB) continue;
    const Elf64_Shdr names = section_at(section.sh_link);
    for (std::size_t at = 0; at < section.sh_size; at += sizeof(Elf64_Sym)) {
      const auto symbol = read_at<Elf64_Sym>(file, section.sh_offset + at);
      if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC) continue;
      const std::uintptr_t address = symbol.st_value + moved;
      const std::string name = file.data() + names.sh_offset + symbol.st_name;
      functions_[common_name(name)] = {.name = name,
                                       .address = reinterpret_cast<const void*>(address)};
      names_[address] = name;
    }
  }
}

std::string_view ProgramSymbols::name_of(const void* function) const {
  const auto found = names_.find(reinterpret_cast<std::uintptr_t>(function));
  return found == names_.end() ? std::string_view() : found->second;
}

const ProgramSymbols::Function* ProgramSymbols::named(std::string_view common) const {
  const auto found = functions_.find(common);
  return found == functions_.end() ? nullptr : &found->second;
}

}  // namespace trainscope::ptx
