// The host's part of CUPTI's range profiler: a configuration is made, and never run.
#include "kernels/cuda/trace/metrics.h"

#include <cstdint>

#include "kernels/cuda/trace/cupti.h"

namespace trainscope::cuda {
namespace {

// Parameters of a call of the profiler, with the size that it asks for.
#define PARAMETERS(type, name) \
  type name = {};              \
  name.structSize = type##_STRUCT_SIZE

// A configuration for one chip.
class Configuration {
 public:
  explicit Configuration(const std::string& chip) {
    PARAMETERS(CUpti_Profiler_Host_Initialize_Params, host);
    host.profilerType = CUPTI_PROFILER_TYPE_RANGE_PROFILER;
    host.pChipName = chip.c_str();
    note(cupti().host_initialize(&host), "cuptiProfilerHostInitialize for chip " + chip);
    if (fault.empty()) object_ = host.pHostObject;
  }
  ~Configuration() {
    if (object_ == nullptr) return;
    PARAMETERS(CUpti_Profiler_Host_Deinitialize_Params, host);
    host.pHostObject = object_;
    (void)cupti().host_deinitialize(&host);
  }
  Configuration(const Configuration&) = delete;
  Configuration& operator=(const Configuration&) = delete;

  // All at once: each call begins a pass of its own. False where the chip lacks one.
  bool add(const std::vector<std::string>& metrics) {
    std::vector<const char*> names;
    for (const std::string& metric : metrics) names.push_back(metric.c_str());
    PARAMETERS(CUpti_Profiler_Host_ConfigAddMetrics_Params, added);
    added.pHostObject = object_;
    added.ppMetricNames = names.data();
    added.numMetrics = names.size();
    note(cupti().host_add_metrics(&added), "cuptiProfilerHostConfigAddMetrics");
    return fault.empty();
  }

  std::size_t passes() {
    PARAMETERS(CUpti_Profiler_Host_GetConfigImageSize_Params, size);
    size.pHostObject = object_;
    note(cupti().host_image_size(&size), "cuptiProfilerHostGetConfigImageSize");
    if (!fault.empty()) return 0;
    std::vector<std::uint8_t> bytes(size.configImageSize);
    PARAMETERS(CUpti_Profiler_Host_GetConfigImage_Params, image);
    image.pHostObject = object_;
    image.configImageSize = bytes.size();
    image.pConfigImage = bytes.data();
    note(cupti().host_image(&image), "cuptiProfilerHostGetConfigImage");
    PARAMETERS(CUpti_Profiler_Host_GetNumOfPasses_Params, count);
    count.pConfigImage = bytes.data();
    count.configImageSize = bytes.size();
    if (fault.empty()) note(cupti().host_passes(&count), "cuptiProfilerHostGetNumOfPasses");
    return fault.empty() ? count.numOfPasses : 0;
  }

  std::string fault;  // the first one

 private:
  void note(CUptiResult result, const std::string& what) {
    if (result != CUPTI_SUCCESS && fault.empty()) fault = cupti().error_text(result, what);
  }

  CUpti_Profiler_Host_Object* object_ = nullptr;
};

// The library says that one of several is missing, not which.
std::string missing_of(const std::string& chip, const std::vector<std::string>& metrics,
                       const std::string& fault) {
  for (const std::string& metric : metrics) {
    Configuration alone(chip);
    if (alone.fault.empty() && !alone.add({metric}))
      return chip + " has no metric '" + metric + "' (" + alone.fault + ")";
  }
  return fault;
}

}  // namespace

MetricPasses passes_of(const std::string& chip, const std::vector<std::string>& metrics) {
  Configuration configuration(chip);
  if (!configuration.fault.empty()) return {.why_not = configuration.fault};
  if (!configuration.add(metrics))
    return {.why_not = missing_of(chip, metrics, configuration.fault)};
  const std::size_t passes = configuration.passes();
  return {.passes = passes, .why_not = configuration.fault};
}

}  // namespace trainscope::cuda
