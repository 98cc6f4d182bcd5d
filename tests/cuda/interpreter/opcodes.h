// What the interpreter knows of PTX: opcodes with all their suffixes, as texts spell them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "tests/cuda/interpreter/instruction.h"

namespace trainscope::ptx {

struct Opcode {
  Run run = nullptr;
  Flow flow = Flow::kNext;
  bool orders_memory = false;
};

using OpcodeTable = std::unordered_map<std::string, Opcode>;

void add_integer_opcodes(OpcodeTable& table);     // integers.cpp
void add_float_opcodes(OpcodeTable& table);       // floats.cpp
void add_comparison_opcodes(OpcodeTable& table);  // comparisons.cpp
void add_conversion_opcodes(OpcodeTable& table);  // conversions.cpp
void add_lane_opcodes(OpcodeTable& table);        // lane_exchange.cpp
void add_shared_functions(OpcodeTable& table);    // shared_functions.cpp
void add_tensor_opcodes(OpcodeTable& table);      // tensor_core.cpp
void add_async_opcodes(OpcodeTable& table);       // async_copies.cpp

// Null for an unknown one.
const Opcode* find_opcode(const std::string& name);

// Loads, stores and atomics; null for another opcode.
struct MemoryOpcode {
  Run run = nullptr;
  Space space = Space::kGeneric;
  bool is_signed = false;
  unsigned bytes = 0;
  unsigned count = 1;
};
std::optional<MemoryOpcode> find_memory_opcode(std::string_view name);

}  // namespace trainscope::ptx
