// Hardware counters by the names that NVIDIA gives them, held against what a chip has. Asks the
// library alone: neither a GPU nor a driver is needed.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace trainscope::cuda {

// What the range profiler counts of a kernel: bytes from and to memory, how busy tensor cores are,
// nanoseconds, and multiply-adds of bf16 into f32 on tensor cores.
inline constexpr const char* kKernelMetrics[] = {
    "dram__bytes_read.sum",
    "dram__bytes_write.sum",
    "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed",
    "gpu__time_duration.sum",
    "sm__ops_path_tensor_src_bf16_dst_fp32.sum",
};

struct MetricPasses {
  std::size_t passes = 0;    // how often a kernel runs until all are counted
  std::string why_not = {};  // names the first metric that the chip has not; empty: it has all
};

// `chip`: as CUPTI names it, "GH100" of an H100 or H200. CUPTI is loaded (load_cupti()).
MetricPasses passes_of(const std::string& chip, const std::vector<std::string>& metrics);

}  // namespace trainscope::cuda
