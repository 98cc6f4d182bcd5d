// Sizes by what the loads of a tile do with them: a thread loads several rows of it, and each of
// these loads must have lanes outside, of which one lies behind the tensor's last byte.
#include <fmt/format.h>

#include "tests/cuda/mutants/wide_examples.h"

namespace trainscope::test {
namespace {

// Of heads of up to 64 elements a load is of 16 rows, of wider ones of 8; widths whose rows are
// copied by 16 bytes, and others.
struct Heads {
  int width;
  int rows;  // of a load
};
constexpr Heads kHeads[] = {{8, 16}, {5, 16}, {72, 8}, {65, 8}};
constexpr int kLoads = 8;  // of the largest tile
constexpr int kTile = 64;  // keys

void add_attention(std::vector<WideExample>& examples) {
  for (const Heads& heads : kHeads) {
    for (int load = 0; load < kLoads; ++load) {
      const int tokens = load * heads.rows + 3;
      for (const int keys : {tokens % kTile, tokens % kTile + kTile}) {
        const std::string q = fmt::format("[1,{},1,{}]", tokens, heads.width);
        const std::string k = fmt::format("[1,{},1,{}]", keys, heads.width);
        const std::string statistics = fmt::format("f32[1,1,{},2]", tokens);
        const std::string drop = ", -, i64[]={3}; ratio=0.3 seed=5";
        for (const std::string& rest : {std::string(";"), drop}) {
          examples.push_back({"Attention", fmt::format("{0}, {1}, {1}{2} outputs=2", q, k, rest)});
          examples.push_back(
              {"AttentionGrad",
               fmt::format("{0}, {0}, {1}, {0}, {2}, {2}{3} outputs=3", q, statistics, k, rest)});
        }
      }
    }
  }
}

// Matmuls whose tiles are loaded 16 rows, or 4 depths, at a time.
void add_matmuls(std::vector<WideExample>& examples) {
  for (const int rows : {3, 19, 35, 51}) {
    for (const int depth : {2, 18}) {
      const std::string long_side = fmt::format("[{},{}]", rows, depth);
      const std::string turned = fmt::format("[{},{}]", depth, rows);
      const std::string all = fmt::format("i64[]={{{}}}", rows);
      for (const std::string to : {"", " upcast=1"}) {
        examples.push_back(
            {"CompactMatMul", fmt::format("{}, {}, {};{}", long_side, turned, all, to)});
        examples.push_back({"CompactMatMul", fmt::format("{0}, {0}, {1}, [{2}]; transpose_b=1{3}",
                                                         long_side, all, rows, to)});
        examples.push_back(
            {"CompactMatMul",
             fmt::format("{0}, {0}, i64[]={{{1}}}; transpose_a=1{2}", turned, depth, to)});
      }
    }
    examples.push_back({"Rnn", fmt::format("[1,{0},2], [1,{0},2], [1,{0},{0}]; outputs=2", rows)});
    examples.push_back({"Rnn", fmt::format("[3,1,2], [1,{0},2], [1,{0},{0}]; outputs=2", rows)});
    for (const int width : {1, 2, rows}) {
      examples.push_back(
          {"RnnGrad", fmt::format("[1,1,{0},{0}], -, [1,1,{0},{0}], [1,{0},{1}], [1,{0},{1}], "
                                  "[1,{0},{0}]; outputs=4",
                                  rows, width)});
      examples.push_back(
          {"RnnGrad", fmt::format("[3,1,1,{0}], -, [3,1,1,{0}], [3,1,{1}], [1,{0},{1}], "
                                  "[1,{0},{0}]; outputs=4",
                                  rows, width)});
      examples.push_back(
          {"RnnGrad", fmt::format("[1,1,{0},1], -, [1,1,{0},1], [1,{0},{1}], [1,1,{1}], "
                                  "[1,1,1]; outputs=4",
                                  rows, width)});
    }
  }
}

// Planes of three axes: padding and strides along each, in tiles of 64 rows and of 128, of which
// the last has two.
void add_convolutions(std::vector<WideExample>& examples) {
  for (const int channels : {3, 66, 130}) {
    examples.push_back(
        {"Conv", fmt::format("[1,2,3,4,5], [{0},2,2,3,2], [{0}]; pads={{1,1,1,1,1,1}} "
                             "strides={{2,1,1}}",
                             channels)});
    examples.push_back(
        {"Conv", fmt::format("[1,2,2,2,2], [{},2,3,3,3]; pads={{2,2,2,2,2,2}}", channels)});
    examples.push_back({"ConvGradInput", fmt::format("[1,2,2,2,2], [2,{0},3,3,3]; "
                                                     "input_shape={{1,{0},5,5,5}} "
                                                     "strides={{2,2,2}}",
                                                     channels)});
    examples.push_back({"ConvGradInput", fmt::format("[1,2,2,2,2], [2,{0},2,2,2]; "
                                                     "input_shape={{1,{0},3,3,3}}",
                                                     channels)});
    examples.push_back({"ConvGradWeight", fmt::format("[1,2,3,4,5], [1,{},3,4,5]; "
                                                      "kernel_shape={{3,3,3}} "
                                                      "pads={{1,1,1,1,1,1}}",
                                                      channels)});
    examples.push_back({"ConvGradWeight", fmt::format("[1,2,2,2,2], [1,{},4,4,4]; "
                                                      "kernel_shape={{3,3,3}} "
                                                      "pads={{2,2,2,2,2,2}}",
                                                      channels)});
  }
}

}  // namespace

void add_ragged_examples(std::vector<WideExample>& examples) {
  add_attention(examples);
  add_matmuls(examples);
  add_convolutions(examples);
}

}  // namespace trainscope::test
