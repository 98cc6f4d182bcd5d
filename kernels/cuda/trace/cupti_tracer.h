// A trace of the GPU by CUPTI: activity buffers, nodes of graphs as they are captured and cloned,
// correlations of what is launched by itself.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "kernels/api/device_tracer.h"
#include "kernels/cuda/trace/cupti.h"

namespace trainscope::cuda {

// One a process, since CUPTI has one subscriber and one pair of functions for buffers.
class CuptiTracer final : public DeviceTracer {
 public:
  // Loads CUPTI and subscribes to it, once; null, with the reason, where that cannot be. What is
  // captured from then on is noted, so no list that is to be traced may have been before. It stays
  // there for as long as the process lives, since CUPTI calls it back.
  static CuptiTracer* get(std::string* why_not);

  void at_call(std::uint32_t call) override;
  DeviceStatus start(const TraceWishes& wishes) override;
  DeviceStatus stop() override;
  DeviceStatus take(TraceReader& reader) override;

 private:
  struct Captured {
    std::uint64_t node = 0;
    std::uint64_t original = 0;  // of a clone; 0: it was captured
    std::uint32_t call = kOutsideTracedCalls;
  };

  DeviceStatus subscribe();
  DeviceStatus register_all();
  DeviceStatus enable(CUpti_ActivityKind kind);
  DeviceStatus enable_launches(bool all);
  DeviceStatus enable_all(const TraceWishes& wishes);
  DeviceStatus push(std::uint32_t call);
  DeviceStatus pop();
  static void note_node(void* self, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                        const void* data);

  // Null: CUPTI does not know of this tracer.
  CUpti_SubscriberHandle subscriber_ = nullptr;
  std::vector<CUpti_ActivityKind> kinds_;  // that are enabled
  bool has_launches_ = false;              // single calls are enabled
  bool pushes_ = false;                    // calls as external correlations
  bool is_pushed_ = false;
  DeviceStatus unheard_;  // of at_call(), which has no status
  std::atomic<std::uint32_t> call_ = kOutsideTracedCalls;
  std::mutex mutex_;
  std::vector<Captured> captured_;  // in the order in which CUPTI told of them
};

}  // namespace trainscope::cuda
