// Sizes of layers.
#include "tests/cuda/cudnn/workloads.h"

namespace trainscope::test {
namespace {

std::string name_of(cudnnDataType_t type) {
  if (type == CUDNN_DATA_FLOAT) return "f32";
  return type == CUDNN_DATA_BFLOAT16 ? "bf16" : "f16";
}

// Images, in channels, side of the image, out channels, side of the kernel, stride.
struct Layer {
  std::int64_t batch, in, side, out, kernel, stride;
};
constexpr Layer kLayers[] = {
    {32, 3, 224, 64, 7, 2},     {32, 64, 56, 64, 3, 1},      {32, 64, 56, 128, 3, 2},
    {32, 64, 56, 128, 1, 2},    {32, 128, 28, 128, 3, 1},    {32, 128, 28, 256, 3, 2},
    {32, 128, 28, 256, 1, 2},   {32, 256, 14, 256, 3, 1},    {32, 256, 14, 512, 3, 2},
    {32, 256, 14, 512, 1, 2},   {32, 512, 7, 512, 3, 1},     {256, 3, 224, 64, 7, 2},
    {256, 64, 56, 64, 1, 1},    {256, 64, 56, 64, 3, 1},     {256, 64, 56, 256, 1, 1},
    {256, 256, 56, 64, 1, 1},   {256, 256, 56, 128, 1, 1},   {256, 128, 56, 128, 3, 2},
    {256, 128, 28, 512, 1, 1},  {256, 256, 56, 512, 1, 2},   {256, 512, 28, 128, 1, 1},
    {256, 128, 28, 128, 3, 1},  {256, 512, 28, 256, 1, 1},   {256, 256, 28, 256, 3, 2},
    {256, 256, 14, 1024, 1, 1}, {256, 512, 28, 1024, 1, 2},  {256, 1024, 14, 256, 1, 1},
    {256, 256, 14, 256, 3, 1},  {256, 1024, 14, 512, 1, 1},  {256, 512, 14, 512, 3, 2},
    {256, 512, 7, 2048, 1, 1},  {256, 1024, 14, 2048, 1, 2}, {256, 2048, 7, 512, 1, 1},
    {256, 512, 7, 512, 3, 1}};

}  // namespace

std::vector<NamedAttention> attention_workloads() {
  const cuda::AttentionShape gpt2{.batch = 32,
                                  .heads = 12,
                                  .kv_heads = 12,
                                  .tokens = 1024,
                                  .keys = 1024,
                                  .width = 64,
                                  .packed = true,
                                  .causal = true,
                                  .scale = 0.125F};
  cuda::AttentionShape bert = gpt2;
  bert.batch = 128;
  bert.heads = bert.kv_heads = 16;
  bert.tokens = bert.keys = 128;
  bert.causal = false;
  bert.bias = {128, 1, 1, 128};
  cuda::AttentionShape bert_phase_2 = bert;
  bert_phase_2.batch = 32;
  bert_phase_2.tokens = bert_phase_2.keys = 512;
  bert_phase_2.bias = {32, 1, 1, 512};
  cuda::AttentionShape llama = gpt2;
  llama.batch = 4;
  llama.heads = 32;
  llama.kv_heads = 4;
  llama.tokens = llama.keys = 2048;
  llama.packed = false;
  cuda::AttentionShape wide_llama = llama;
  wide_llama.kv_heads = 8;
  wide_llama.width = 128;
  std::vector<NamedAttention> named;
  for (const cudnnDataType_t type : {CUDNN_DATA_BFLOAT16, CUDNN_DATA_HALF}) {
    for (const auto& [name, shape] : {NamedAttention{"gpt2-124m", gpt2},
                                      {"bert-large", bert},
                                      {"bert-large-512", bert_phase_2},
                                      {"llama-1b", llama},
                                      {"llama-8b", wide_llama}}) {
      named.push_back({name + " " + name_of(type), shape});
      named.back().shape.type = type;
    }
  }
  return named;
}

std::vector<NamedConv> conv_workloads() {
  std::vector<NamedConv> named;
  for (const cudnnDataType_t type : {CUDNN_DATA_FLOAT, CUDNN_DATA_BFLOAT16, CUDNN_DATA_HALF}) {
    for (const auto& [batch, in, side, out, kernel, stride] : kLayers) {
      const std::int64_t pad = kernel / 2;
      const std::int64_t made = (side + 2 * pad - kernel) / stride + 1;
      const std::string name = name_of(type) + " " + std::to_string(batch) + " x " +
                               std::to_string(in) + "@" + std::to_string(side) + " to " +
                               std::to_string(out) + " by " + std::to_string(kernel) + ", stride " +
                               std::to_string(stride);
      named.push_back({name,
                       {.type = type,
                        .window = {.rank = 2,
                                   .kernel = {kernel, kernel, 1},
                                   .stride = {stride, stride, 1},
                                   .pad_begin = {pad, pad, 0},
                                   .pad_end = {pad, pad, 0}},
                        .x = {batch, in, side, side},
                        .w = {out, in, kernel, kernel},
                        .y = {batch, out, made, made}}});
    }
  }
  return named;
}

}  // namespace trainscope::test
