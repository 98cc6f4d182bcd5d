// Hardware counters of single kernels by CUPTI's range profiler, where the machine permits them.
#include <cuda.h>
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>
#include <cupti_target.h>

#include "bench/gpu/cupti_session.cuh"

namespace {

using trainscope::bench::check;
using trainscope::bench::check_launch;
using trainscope::bench::DeviceArray;
using trainscope::bench::Line;

constexpr const char* kMetrics[] = {
    "gpu__time_duration.sum",
    "dram__bytes_read.sum",
    "dram__bytes_write.sum",
    "lts__t_bytes.sum",
    "sm__cycles_elapsed.max",
    "smsp__inst_executed.sum",
    "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
};
constexpr std::size_t kMetricCount = std::size(kMetrics);

// Parameters of a call of the profiler, with the size that it asks for.
#define PARAMETERS(type, name) \
  type name = {};              \
  name.structSize = type##_STRUCT_SIZE

__global__ void copy(float4* out, const float4* in, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) out[i] = in[i];
}

__global__ void multiply_add(float* out, int rounds) {
  float x = static_cast<float>(threadIdx.x);
  for (int i = 0; i < rounds; ++i) x = fmaf(x, 0.999f, 0.001f);
  out[blockIdx.x * blockDim.x + threadIdx.x] = x;
}

CUcontext current_context() {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found = {};
  check(cudaGetDriverEntryPointByVersion("cuCtxGetCurrent", &function, 12000, cudaEnableDefault,
                                         &found),
        "cuCtxGetCurrent");
  CUcontext context = nullptr;
  reinterpret_cast<CUresult (*)(CUcontext*)>(function)(&context);
  return context;
}

// The chip's names of metrics, the image that configures the counters and the one they go to.
struct Profiler {
  CUpti_Profiler_Host_Object* host = nullptr;
  CUpti_RangeProfiler_Object* ranges = nullptr;
  std::vector<std::uint8_t> config;
  std::vector<std::uint8_t> data;
  std::size_t passes = 0;
};

void make_host_object(Profiler& profiler, std::vector<const char*>& metrics) {
  PARAMETERS(CUpti_Device_GetChipName_Params, chip);
  check(cuptiDeviceGetChipName(&chip), "cuptiDeviceGetChipName");
  Line("chip").text("name", chip.pChipName).print();
  PARAMETERS(CUpti_Profiler_Host_Initialize_Params, host);
  host.profilerType = CUPTI_PROFILER_TYPE_RANGE_PROFILER;
  host.pChipName = chip.pChipName;
  check(cuptiProfilerHostInitialize(&host), "cuptiProfilerHostInitialize");
  profiler.host = host.pHostObject;
  PARAMETERS(CUpti_Profiler_Host_ConfigAddMetrics_Params, added);
  added.pHostObject = profiler.host;
  added.ppMetricNames = metrics.data();
  added.numMetrics = metrics.size();
  check(cuptiProfilerHostConfigAddMetrics(&added), "cuptiProfilerHostConfigAddMetrics");
  PARAMETERS(CUpti_Profiler_Host_GetConfigImageSize_Params, size);
  size.pHostObject = profiler.host;
  check(cuptiProfilerHostGetConfigImageSize(&size), "size of the configuration");
  profiler.config.resize(size.configImageSize);
  PARAMETERS(CUpti_Profiler_Host_GetConfigImage_Params, image);
  image.pHostObject = profiler.host;
  image.configImageSize = profiler.config.size();
  image.pConfigImage = profiler.config.data();
  check(cuptiProfilerHostGetConfigImage(&image), "the configuration");
  PARAMETERS(CUpti_Profiler_Host_GetNumOfPasses_Params, passes);
  passes.pConfigImage = profiler.config.data();
  passes.configImageSize = profiler.config.size();
  check(cuptiProfilerHostGetNumOfPasses(&passes), "number of passes");
  profiler.passes = passes.numOfPasses;
}

void make_ranges(Profiler& profiler, std::vector<const char*>& metrics) {
  PARAMETERS(CUpti_RangeProfiler_Enable_Params, enabled);
  enabled.ctx = current_context();
  check(cuptiRangeProfilerEnable(&enabled), "cuptiRangeProfilerEnable");
  profiler.ranges = enabled.pRangeProfilerObject;
  PARAMETERS(CUpti_RangeProfiler_GetCounterDataSize_Params, size);
  size.pRangeProfilerObject = profiler.ranges;
  size.pMetricNames = metrics.data();
  size.numMetrics = metrics.size();
  size.maxNumOfRanges = 8;
  size.maxNumRangeTreeNodes = 8;
  check(cuptiRangeProfilerGetCounterDataSize(&size), "size of the counters");
  profiler.data.resize(size.counterDataSize);
  PARAMETERS(CUpti_RangeProfiler_CounterDataImage_Initialize_Params, image);
  image.pRangeProfilerObject = profiler.ranges;
  image.counterDataSize = profiler.data.size();
  image.pCounterData = profiler.data.data();
  check(cuptiRangeProfilerCounterDataImageInitialize(&image), "image of the counters");
  PARAMETERS(CUpti_RangeProfiler_SetConfig_Params, config);
  config.pRangeProfilerObject = profiler.ranges;
  config.configSize = profiler.config.size();
  config.pConfig = profiler.config.data();
  config.counterDataImageSize = profiler.data.size();
  config.pCounterDataImage = profiler.data.data();
  config.range = CUPTI_AutoRange;
  config.replayMode = CUPTI_KernelReplay;
  config.maxRangesPerPass = 8;
  config.numNestingLevels = 1;
  config.minNestingLevel = 1;
  config.passIndex = 0;
  config.targetNestingLevel = 1;
  check(cuptiRangeProfilerSetConfig(&config), "cuptiRangeProfilerSetConfig");
}

void run_kernels(const DeviceArray<float>& a, const DeviceArray<float>& b) {
  const int vectors = static_cast<int>(a.count() / 4);
  copy<<<static_cast<unsigned>((vectors + 255) / 256), 256>>>(
      reinterpret_cast<float4*>(b.get()), reinterpret_cast<const float4*>(a.get()), vectors);
  multiply_add<<<1320, 256>>>(b.get(), 4096);
  check_launch("profiled kernels");
  check(cudaDeviceSynchronize(), "profiled kernels");
}

void print_ranges(Profiler& profiler, std::vector<const char*>& metrics) {
  PARAMETERS(CUpti_RangeProfiler_GetCounterDataInfo_Params, info);
  info.pCounterDataImage = profiler.data.data();
  info.counterDataImageSize = profiler.data.size();
  check(cuptiRangeProfilerGetCounterDataInfo(&info), "ranges of the counters");
  for (std::size_t range = 0; range < info.numTotalRanges; ++range) {
    std::vector<double> values(metrics.size());
    PARAMETERS(CUpti_Profiler_Host_EvaluateToGpuValues_Params, evaluated);
    evaluated.pHostObject = profiler.host;
    evaluated.pCounterDataImage = profiler.data.data();
    evaluated.counterDataImageSize = profiler.data.size();
    evaluated.rangeIndex = range;
    evaluated.ppMetricNames = metrics.data();
    evaluated.numMetrics = metrics.size();
    evaluated.pMetricValues = values.data();
    check(cuptiProfilerHostEvaluateToGpuValues(&evaluated), "values of the counters");
    Line line("counters");
    line.text("kernel", range == 0 ? "copy" : "multiply_add");
    for (std::size_t i = 0; i < metrics.size(); ++i) line.number(metrics[i], values[i]);
    line.print();
  }
}

}  // namespace

int main() {
  const DeviceArray<float> a(std::size_t{64} << 20);  // 256 MiB: beyond the L2 cache
  const DeviceArray<float> b(std::size_t{64} << 20);
  run_kernels(a, b);
  std::vector<const char*> metrics(kMetrics, kMetrics + kMetricCount);
  PARAMETERS(CUpti_Profiler_Initialize_Params, initialized);
  check(cuptiProfilerInitialize(&initialized), "cuptiProfilerInitialize");
  Profiler profiler;
  make_host_object(profiler, metrics);
  make_ranges(profiler, metrics);
  PARAMETERS(CUpti_RangeProfiler_Start_Params, started);
  started.pRangeProfilerObject = profiler.ranges;
  check(cuptiRangeProfilerStart(&started), "cuptiRangeProfilerStart");
  run_kernels(a, b);
  PARAMETERS(CUpti_RangeProfiler_Stop_Params, stopped);
  stopped.pRangeProfilerObject = profiler.ranges;
  check(cuptiRangeProfilerStop(&stopped), "cuptiRangeProfilerStop");
  PARAMETERS(CUpti_RangeProfiler_DecodeData_Params, decoded);
  decoded.pRangeProfilerObject = profiler.ranges;
  check(cuptiRangeProfilerDecodeData(&decoded), "cuptiRangeProfilerDecodeData");
  Line("counter_passes")
      .count("metrics", static_cast<long long>(metrics.size()))
      .count("passes", static_cast<long long>(profiler.passes))
      .count("all_passes_in_one_stop", stopped.isAllPassSubmitted)
      .print();
  print_ranges(profiler, metrics);
  PARAMETERS(CUpti_RangeProfiler_Disable_Params, disabled);
  disabled.pRangeProfilerObject = profiler.ranges;
  check(cuptiRangeProfilerDisable(&disabled), "cuptiRangeProfilerDisable");
  return 0;
}
