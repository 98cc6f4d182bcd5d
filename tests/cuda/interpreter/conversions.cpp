// Moves, and conversions between types and between spaces of addresses.
#include <cmath>
#include <cstdint>
#include <limits>

#include "tests/cuda/interpreter/lanewise.h"

namespace trainscope::ptx {
namespace {

void run_move(Warp& warp, const Instruction& instruction, unsigned mask) {
  Lanes& to = warp.operand(instruction, 0);
  const Lanes& from = warp.operand(instruction, 1);
  for_lanes(mask, [&](unsigned i) { to.words[i] = from.words[i]; });
}

// A register from narrower ones, the lowest first, and the other way round.
template <typename Word>
void run_pack(Warp& warp, const Instruction& instruction, unsigned mask) {
  const std::size_t parts = instruction.operands.size() - 1;
  const std::size_t bits = 8 * sizeof(Word) / parts;
  Lanes& to = warp.operand(instruction, 0);
  for_lanes(mask, [&](unsigned i) {
    std::uint64_t word = 0;
    for (std::size_t part = 0; part < parts; ++part) {
      const std::uint64_t low = warp.operand(instruction, part + 1).words[i] << (64 - bits);
      word |= low >> (64 - bits) << part * bits;
    }
    to.words[i] = word;
  });
}
template <typename Word>
void run_unpack(Warp& warp, const Instruction& instruction, unsigned mask) {
  const std::size_t parts = instruction.operands.size() - 1;
  const std::size_t bits = 8 * sizeof(Word) / parts;
  const Lanes from = warp.operand(instruction, parts);
  for (std::size_t part = 0; part < parts; ++part) {
    if (instruction.operands[part] == Instruction::kNone) continue;
    Lanes& to = warp.operand(instruction, part);
    for_lanes(mask, [&](unsigned i) {
      to.words[i] = from.words[i] >> part * bits << (64 - bits) >> (64 - bits);
    });
  }
}

// Adds a window to an address.
template <std::uint64_t kWindow>
void run_shifted_address(Warp& warp, const Instruction& instruction, unsigned mask) {
  Lanes& to = warp.operand(instruction, 0);
  const Lanes& from = warp.operand(instruction, 1);
  for_lanes(mask, [&](unsigned i) { to.words[i] = from.words[i] + kWindow; });
}

struct Nearest {
  template <typename T>
  T operator()(T a) const {
    return std::nearbyint(a);
  }
};
struct Down {
  template <typename T>
  T operator()(T a) const {
    return std::floor(a);
  }
};
struct Up {
  template <typename T>
  T operator()(T a) const {
    return std::ceil(a);
  }
};
struct ToZero {
  template <typename T>
  T operator()(T a) const {
    return std::trunc(a);
  }
};
struct Saturate {  // to [0, 1]; NaN becomes 0
  template <typename T>
  T operator()(T a) const {
    if (!(a > 0)) return 0;
    return a > 1 ? T{1} : a;
  }
};

// To an integer, what is out of range to its nearest end. Of NaN a GPU makes 0, of 64 bits the
// highest bit alone.
template <typename To, typename Rounding>
struct ToInteger {
  template <typename T>
  To operator()(T a) const {
    constexpr auto kLeast = std::numeric_limits<To>::min();
    constexpr auto kLargest = std::numeric_limits<To>::max();
    if (std::isnan(a)) {
      return sizeof(To) == 8 || sizeof(T) == 8
                 ? static_cast<To>(std::uint64_t{1} << 63 >> (64 - 8 * sizeof(To)))
                 : To{0};
    }
    const T rounded = Rounding()(a);
    if (rounded <= static_cast<T>(kLeast)) return kLeast;
    if (rounded >= static_cast<T>(kLargest)) return kLargest;
    return static_cast<To>(rounded);
  }
};
template <typename To>
struct Convert {
  template <typename T>
  To operator()(T a) const {
    return static_cast<To>(a);
  }
};

// A signed integer fills the register, which may be wider than its type, by its sign.
template <typename To, typename From>
void run_resize(Warp& warp, const Instruction& instruction, unsigned mask) {
  Lanes& to = warp.operand(instruction, 0);
  const Lanes& a = warp.operand(instruction, 1);
  for_lanes(mask, [&](unsigned i) {
    const auto resized = static_cast<To>(from_word<From>(a.words[i]));
    to.words[i] = std::is_signed_v<To>
                      ? static_cast<std::uint64_t>(static_cast<std::int64_t>(resized))
                      : static_cast<std::uint64_t>(resized);
  });
}

template <typename From>
void add_integer(OpcodeTable& table, const std::string& from) {
  const auto add = [&]<typename To>(const std::string& to, To) {
    table["cvt." + to + "." + from] = {run_resize<To, From>};
  };
  add("s8", std::int8_t{});
  add("u8", std::uint8_t{});
  add("s16", std::int16_t{});
  add("u16", std::uint16_t{});
  add("s32", std::int32_t{});
  add("u32", std::uint32_t{});
  add("s64", std::int64_t{});
  add("u64", std::uint64_t{});
  table["cvt.rn.f32." + from] = {run_unary<Convert<float>, From>};
  table["cvt.rn.f64." + from] = {run_unary<Convert<double>, From>};
}

template <typename From>
void add_float(OpcodeTable& table, const std::string& from) {
  const auto add = [&]<typename Rounding>(const std::string& rounding, Rounding) {
    const std::string prefix = "cvt." + rounding + ".";
    table[prefix + "s8." + from] = {run_unary<ToInteger<std::int8_t, Rounding>, From>};
    table[prefix + "u8." + from] = {run_unary<ToInteger<std::uint8_t, Rounding>, From>};
    table[prefix + "s16." + from] = {run_unary<ToInteger<std::int16_t, Rounding>, From>};
    table[prefix + "u16." + from] = {run_unary<ToInteger<std::uint16_t, Rounding>, From>};
    table[prefix + "s32." + from] = {run_unary<ToInteger<std::int32_t, Rounding>, From>};
    table[prefix + "u32." + from] = {run_unary<ToInteger<std::uint32_t, Rounding>, From>};
    table[prefix + "s64." + from] = {run_unary<ToInteger<std::int64_t, Rounding>, From>};
    table[prefix + "u64." + from] = {run_unary<ToInteger<std::uint64_t, Rounding>, From>};
    table[prefix + from + "." + from] = {run_unary<Rounding, From>};
  };
  add("rni", Nearest());
  add("rmi", Down());
  add("rpi", Up());
  add("rzi", ToZero());
  table["cvt.sat." + from + "." + from] = {run_unary<Saturate, From>};
}

}  // namespace

void add_conversion_opcodes(OpcodeTable& table) {
  for (const char* type :
       {"b16", "u16", "s16", "b32", "u32", "s32", "f32", "b64", "u64", "s64", "f64", "pred"}) {
    table[std::string("mov.") + type] = {run_move};
  }
  table["pack.b32"] = {run_pack<std::uint32_t>};
  table["pack.b64"] = {run_pack<std::uint64_t>};
  table["unpack.b32"] = {run_unpack<std::uint32_t>};
  table["unpack.b64"] = {run_unpack<std::uint64_t>};
  for (const char* space : {"global", "const", "local", "param"}) {
    table[std::string("cvta.") + space + ".u64"] = {run_move};
    table[std::string("cvta.to.") + space + ".u64"] = {run_move};
  }
  table["cvta.shared.u64"] = {run_shifted_address<kSharedWindow>};
  table["cvta.to.shared.u64"] = {run_shifted_address<0 - kSharedWindow>};
  add_integer<std::int8_t>(table, "s8");
  add_integer<std::uint8_t>(table, "u8");
  add_integer<std::int16_t>(table, "s16");
  add_integer<std::uint16_t>(table, "u16");
  add_integer<std::int32_t>(table, "s32");
  add_integer<std::uint32_t>(table, "u32");
  add_integer<std::int64_t>(table, "s64");
  add_integer<std::uint64_t>(table, "u64");
  add_float<float>(table, "f32");
  add_float<double>(table, "f64");
  table["cvt.f64.f32"] = {run_unary<Convert<double>, float>};
  table["cvt.rn.f32.f64"] = {run_unary<Convert<float>, double>};
}

}  // namespace trainscope::ptx
