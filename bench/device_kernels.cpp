// What a device's kernels reach on shapes of real models: every kernel that takes a case, the
// least of a few runs. One line of a table for each: microseconds, bytes and FLOPs of the op's
// definition per second.
// Usage: device_kernels_bench [DEVICE [OP]], "cuda" and all ops if left out.
#include <fmt/format.h>

#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/exec/backends.h"
#include "engine/ir/op_def.h"
#include "engine/ops/standard_ops.h"
#include "kernels/api/device.h"
#include "tests/support/op_case.h"

namespace trainscope {
namespace {

struct Workload {
  std::string_view op;
  std::string_view text;  // as the examples of op rows
  DType dtype = DType::kF32;
};

constexpr Workload kWorkloads[] = {
    // GPT-2: 8 x 1024 tokens of 768, 12 heads, 50257 words; ResNet-50: batches of 32.
    {"LayerNormalization", "[8192,768], [768], [768]; outputs=3"},
    {"LayerNormalizationGrad", "[8192,768], [8192,768], [768]; outputs=3"},
    {"LayerNormalization", "[8192,4096], [4096], [4096]; outputs=3"},
    {"LayerNormalizationGrad", "[8192,4096], [8192,4096], [4096]; outputs=3"},
    {"Softmax", "[8192,1024]"},
    {"SoftmaxGrad", "[8192,1024], [8192,1024]"},
    {"CrossEntropy", "[1024,50257], i64[1024]<50257; outputs=3"},
    {"CrossEntropyGrad", "[], [1024,50257], i64[1024]<50257, [1024], []>0"},
    {"Attention", "[2,1024,36,64]; q_heads=12 causal=1 outputs=2"},
    {"AttentionGrad",
     "[2,1024,12,64], [2,1024,12,64], [2,12,1024,2], [2,1024,36,64]; q_heads=12 causal=1"},
    {"Attention", "[2,1024,36,64], -, -, -, i64[]={3}; q_heads=12 causal=1 ratio=0.1 outputs=2"},
    {"Attention", "[1,1024,24,128]; q_heads=8 causal=1 outputs=2"},
    {"AttentionGrad",
     "[1,1024,8,128], [1,1024,8,128], [1,8,1024,2], [1,1024,24,128]; q_heads=8 causal=1"},
    {"RandomDropout", "[8192,3072], i64[]={3}; ratio=0.1"},
    {"RotaryEmbedding", "[2,1024,16,128], [1024,1,64], [1024,1,64]"},
    {"SgdStep",
     "[16000000], [16000000], [16000000], []>0, []>0, i64[]={2}; momentum=0.9 outputs=2"},
    {"AdamWStep",
     "[16000000], [16000000], [16000000], [16000000]>0, []>0, []>0, i64[]={2}; "
     "outputs=3"},
    {"LambStep",
     "[16000000], [16000000], [16000000], [16000000]>0, []>0, []>0, i64[]={2}; "
     "outputs=3"},
    {"GlobalNorm", "[16000000], [16000000]"},
    {"Accumulate", "[16000000], [16000000], i64[]={1}"},
    {"SampleBatchNormRelu", "[32,64,112,112], [64], [64], [64], [64]>0; outputs=3"},
    {"BatchNormReluGrad", "[32,64,112,112], [32,64,112,112], [32,64,112,112], [64]; outputs=3"},
    {"SampleBatchNormRelu", "[32,512,7,7], [512], [512], [512], [512]>0; outputs=3"},
    {"MaxPool", "[32,64,112,112]; kernel_shape={3,3} strides={2,2} pads={1,1,1,1}"},
    {"MaxPoolGrad",
     "[32,64,56,56], [32,64,112,112]; kernel_shape={3,3} strides={2,2} "
     "pads={1,1,1,1}"},
    {"Conv", "[32,3,224,224], [64,3,7,7]; strides={2,2} pads={3,3,3,3}"},
    {"Conv", "[32,64,56,56], [64,64,3,3]; pads={1,1,1,1}"},
    {"ConvGradInput", "[32,64,56,56], [64,64,3,3]; input_shape={32,64,56,56} pads={1,1,1,1}"},
    {"ConvGradWeight", "[32,64,56,56], [32,64,56,56]; kernel_shape={3,3} pads={1,1,1,1}"},
    {"Conv", "[32,1024,14,14], [256,1024,1,1]"},
    {"ConvGradInput", "[32,256,14,14], [256,1024,1,1]; input_shape={32,1024,14,14}"},
    {"ConvGradWeight", "[32,1024,14,14], [32,256,14,14]; kernel_shape={1,1}"},
    {"Conv", "[32,512,7,7], [512,512,3,3]; pads={1,1,1,1}"},
    {"ConvGradWeight", "[32,512,7,7], [32,512,7,7]; kernel_shape={3,3} pads={1,1,1,1}"},
    {"Add", "[8192,768], [8192,768]"},
    {"Add", "[8192,3072], [3072]"},
    {"Gelu", "[8192,3072]"},
    {"GeluGrad", "[8192,3072], [8192,3072]; approximate='tanh'"},
    {"GeluGrad", "[8192,3072], [8192,3072]", DType::kBF16},
    {"Cast", "[8192,3072]; to=16"},
    {"ReduceSum", "[8192,768], i64[1]={0}"},
    {"ReduceSum", "[8192,3072], i64[1]={0}"},
    {"ReduceSum", "[8192,3072], i64[1]={1}"},
    {"ReduceSum", "[16000000]"},
    {"Gather", "[50257,768], i64[8,1024]<50257"},
    {"GatherGrad", "[8,1024,768], i64[8,1024]<50257; shape={50257,768}"},
    {"GatherGrad", "[8,1024,768], i64[8,1024]<2; shape={50257,768}"},
    {"Transpose", "[8,1024,12,64]; perm={0,2,1,3}"},
    {"Transpose", "[8192,768]; perm={1,0}"},
    {"Transpose", "[32,64,56,56]; perm={0,2,3,1}"},
    {"Slice", "[8192,2304], i64[1]={768}, i64[1]={1536}, i64[1]={1}"},
    {"Concat", "[8192,768], [8192,768]; axis=1"},
};

void require_done(const DeviceStatus& status) {
  require(status.done(), ErrorCode::kBadInput, "{}", status.message);
}

// Memory of the device for one case.
class DeviceMemory {
 public:
  explicit DeviceMemory(Device& device) : device_(device) {}
  DeviceMemory(const DeviceMemory&) = delete;
  ~DeviceMemory() {
    for (const Block& block : blocks_) device_.release(Space::kDevice, block.memory, block.bytes);
  }

  std::byte* allocate(std::size_t bytes) {
    Block block{.memory = nullptr, .bytes = bytes == 0 ? 1 : bytes};
    require_done(device_.allocate(Space::kDevice, block.bytes, &block.memory));
    blocks_.push_back(block);
    return block.memory;
  }
  TensorView view(const TensorType& type) { return {.type = type, .data = allocate(type.bytes())}; }
  TensorView copy(const Tensor& tensor) {
    TensorView copied = view(tensor.type());
    require_done(device_.copy(kComputeStream, static_cast<std::byte*>(copied.data), tensor.data(),
                              tensor.bytes()));
    return copied;
  }

 private:
  struct Block {
    std::byte* memory;
    std::size_t bytes;
  };
  Device& device_;
  std::vector<Block> blocks_;
};

void measure(Device& device, const OpDef& row, const Workload& workload) {
  const test::OpCase op_case(row, workload.text, workload.dtype);
  const Cost cost = cost_of(row, op_case.args());
  DeviceMemory memory(device);
  std::vector<TensorView> inputs;
  for (std::size_t i = 0; i < op_case.inputs().size(); ++i) {
    inputs.push_back(op_case.has(i) ? memory.copy(op_case.inputs()[i])
                                    : TensorView{.type = {}, .data = nullptr, .present = false});
  }
  std::vector<TensorView> outputs;
  for (const TensorType& type : op_case.outputs()) outputs.push_back(memory.view(type));
  for (const Kernel* kernel : test::kernels_for(op_case, device.kernels())) {
    const PrepareArgs prepare{
        .params = op_case.params(), .inputs = inputs, .outputs = outputs, .threads = 1};
    const Prepared prepared = kernel->prepare == nullptr ? Prepared{} : kernel->prepare(prepare);
    double seconds = 0.0;
    require_done(device.time(*kernel,
                             {.params = op_case.params(),
                              .inputs = inputs,
                              .outputs = outputs,
                              .workspace = memory.allocate(prepared.workspace_bytes),
                              .state = prepared.state.get()},
                             &seconds));
    const auto bytes = static_cast<double>(cost.bytes_read + cost.bytes_written);
    fmt::print("| {} | {} | {} | {} | {:.1f} | {:.0f} | {:.2f} |\n", workload.op, workload.text,
               name_of(workload.dtype), kernel->name, seconds * 1e6, bytes / seconds * 1e-9,
               static_cast<double>(cost.flops) / seconds * 1e-12);
  }
}

int run(std::string_view device_name, std::string_view wanted) {
  const DeviceHandle device = device_of(device_name);
  const OpTable ops = standard_ops();
  int failed = 0;
  fmt::print("| op | case | dtype | kernel | us | GB/s | TFLOP/s |\n");
  fmt::print("|---|---|---|---|---:|---:|---:|\n");
  for (const Workload& workload : kWorkloads) {
    if (!wanted.empty() && workload.op != wanted) continue;
    const OpDef* row = ops.find(workload.op);
    if (row == nullptr) row = ops.find(workload.op, kTrainscopeDomain);
    try {
      require(row != nullptr, ErrorCode::kBadInput, "there is no such op");
      measure(*device, *row, workload);
    } catch (const std::exception& error) {
      ++failed;
      fmt::print("| {} | {} | | {} | | | |\n", workload.op, workload.text, error.what());
    }
    std::fflush(stdout);
  }
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace trainscope

int main(int argc, char** argv) {
  try {
    return trainscope::run(argc > 1 ? argv[1] : "cuda", argc > 2 ? argv[2] : "");
  } catch (const std::exception& error) {
    fmt::print(stderr, "device_kernels_bench: {}\n", error.what());
    return 1;
  }
}
