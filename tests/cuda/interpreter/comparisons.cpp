// Comparisons, and choices by them.
#include <cmath>
#include <cstdint>

#include "tests/cuda/interpreter/lanewise.h"

namespace trainscope::ptx {
namespace {

struct Equal {
  template <typename T>
  bool operator()(T a, T b) const {
    return a == b;
  }
};
struct Less {
  template <typename T>
  bool operator()(T a, T b) const {
    return a < b;
  }
};
struct LessEqual {
  template <typename T>
  bool operator()(T a, T b) const {
    return a <= b;
  }
};
template <typename F>
struct Swapped {
  template <typename T>
  bool operator()(T a, T b) const {
    return F()(b, a);
  }
};
struct Unordered {
  template <typename T>
  bool operator()(T a, T b) const {
    return std::isnan(a) || std::isnan(b);
  }
};
struct Ordered {
  template <typename T>
  bool operator()(T a, T b) const {
    return !Unordered()(a, b);
  }
};
struct NotEqual {  // of floats: and neither is NaN
  template <typename T>
  bool operator()(T a, T b) const {
    return a < b || b < a;
  }
};
template <typename F>
struct OrUnordered {
  template <typename T>
  bool operator()(T a, T b) const {
    return Unordered()(a, b) || F()(a, b);
  }
};

// operand 0 = operand 3 ? operand 1 : operand 2, in as many bits as the type has.
template <typename T>
void run_choice(Warp& warp, const Instruction& instruction, unsigned mask) {
  Lanes& to = warp.operand(instruction, 0);
  const Lanes& a = warp.operand(instruction, 1);
  const Lanes& b = warp.operand(instruction, 2);
  const Lanes& holds = warp.operand(instruction, 3);
  for_lanes(mask, [&](unsigned i) {
    to.words[i] = to_word(from_word<T>(holds.words[i] != 0 ? a.words[i] : b.words[i]));
  });
}

template <typename T>
void add_type(OpcodeTable& table, const std::string& type) {
  table["setp.eq." + type] = {run_binary<Equal, T>};
  table["setp.ne." + type] = {run_binary<NotEqual, T>};
  table["setp.lt." + type] = {run_binary<Less, T>};
  table["setp.le." + type] = {run_binary<LessEqual, T>};
  table["setp.gt." + type] = {run_binary<Swapped<Less>, T>};
  table["setp.ge." + type] = {run_binary<Swapped<LessEqual>, T>};
}

template <typename T>
void add_float_type(OpcodeTable& table, const std::string& type) {
  add_type<T>(table, type);
  table["setp.equ." + type] = {run_binary<OrUnordered<Equal>, T>};
  table["setp.neu." + type] = {run_binary<OrUnordered<NotEqual>, T>};
  table["setp.ltu." + type] = {run_binary<OrUnordered<Less>, T>};
  table["setp.leu." + type] = {run_binary<OrUnordered<LessEqual>, T>};
  table["setp.gtu." + type] = {run_binary<OrUnordered<Swapped<Less>>, T>};
  table["setp.geu." + type] = {run_binary<OrUnordered<Swapped<LessEqual>>, T>};
  table["setp.nan." + type] = {run_binary<Unordered, T>};
  table["setp.num." + type] = {run_binary<Ordered, T>};
}

}  // namespace

void add_comparison_opcodes(OpcodeTable& table) {
  add_type<std::int16_t>(table, "s16");
  add_type<std::uint16_t>(table, "u16");
  add_type<std::int32_t>(table, "s32");
  add_type<std::uint32_t>(table, "u32");
  add_type<std::int64_t>(table, "s64");
  add_type<std::uint64_t>(table, "u64");
  add_type<std::uint16_t>(table, "b16");
  add_type<std::uint32_t>(table, "b32");
  add_type<std::uint64_t>(table, "b64");
  add_float_type<float>(table, "f32");
  add_float_type<double>(table, "f64");
  for (const char* type : {"b16", "u16", "s16"}) {
    table[std::string("selp.") + type] = {run_choice<std::uint16_t>};
  }
  for (const char* type : {"b32", "u32", "s32", "f32"}) {
    table[std::string("selp.") + type] = {run_choice<std::uint32_t>};
  }
  for (const char* type : {"b64", "u64", "s64", "f64"}) {
    table[std::string("selp.") + type] = {run_choice<std::uint64_t>};
  }
}

}  // namespace trainscope::ptx
