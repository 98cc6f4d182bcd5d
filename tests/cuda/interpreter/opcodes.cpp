// The table of all opcodes but loads, stores and atomics.
#include "tests/cuda/interpreter/opcodes.h"

namespace trainscope::ptx {
namespace {

OpcodeTable make_table() {
  OpcodeTable table;
  add_integer_opcodes(table);
  add_float_opcodes(table);
  add_comparison_opcodes(table);
  add_conversion_opcodes(table);
  add_lane_opcodes(table);
  add_shared_functions(table);
  add_tensor_opcodes(table);
  add_async_opcodes(table);
  for (const char* name : {"bra", "bra.uni"}) table[name] = {.flow = Flow::kBranch};
  for (const char* name : {"ret", "exit"}) table[name] = {.flow = Flow::kExit};
  return table;
}

}  // namespace

const Opcode* find_opcode(const std::string& name) {
  static const OpcodeTable table = make_table();
  const auto found = table.find(name);
  return found == table.end() ? nullptr : &found->second;
}

}  // namespace trainscope::ptx
