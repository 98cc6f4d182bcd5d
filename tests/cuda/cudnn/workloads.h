// Graphs of the models that this project is measured with.
#pragma once

#include <string>
#include <vector>

#include "kernels/cuda/cudnn/attention_graphs.h"
#include "kernels/cuda/cudnn/conv_graphs.h"

namespace trainscope::test {

struct NamedAttention {
  std::string name;
  cuda::AttentionShape shape;
};
// GPT-2 124M, BERT-large in both phases, LLaMA-style models; by type of two bytes.
std::vector<NamedAttention> attention_workloads();

struct NamedConv {
  std::string name;
  cuda::ConvShape shape;
};
// The convolutions of ResNet-18 for 32 images of 224 x 224, and those that ResNet-50 has besides
// for 256; by type.
std::vector<NamedConv> conv_workloads();

}  // namespace trainscope::test
