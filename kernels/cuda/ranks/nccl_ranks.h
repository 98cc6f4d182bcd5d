// The channel between GPUs, one a rank: NCCL. Not yet run on a GPU.
#pragma once

#include <nccl.h>

#include <memory>
#include <string>
#include <string_view>

#include "kernels/api/communicator.h"

namespace trainscope::cuda {

// Work is queued on the native stream of the call's context, and can be captured. NCCL chooses the
// order of its sums by the ranks, the size and the machine: the same bits on every run, but not
// those of one process. What fails later than it was queued is told by the next call.
class NcclRanks final : public Communicator {
 public:
  // Of the same ranks as `host`, which carries the first message; the thread's current device is
  // this rank's, and no other rank's. Null, with the reason in `why_not`.
  static std::unique_ptr<NcclRanks> make(Communicator& host, std::string* why_not);
  ~NcclRanks() override;

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  DeviceStatus all_reduce(const CallContext& call, const void* from, void* to,
                          std::int64_t elements, DType dtype) override;
  DeviceStatus reduce_scatter(const CallContext& call, const void* from, void* to,
                              std::int64_t elements, DType dtype) override;
  DeviceStatus all_gather(const CallContext& call, const void* from, void* to,
                          std::int64_t elements, DType dtype) override;
  DeviceStatus broadcast(const CallContext& call, void* data, std::int64_t elements, DType dtype,
                         int root) override;
  DeviceStatus send(const CallContext& call, const void* data, std::int64_t elements, DType dtype,
                    int to) override;
  DeviceStatus receive(const CallContext& call, void* data, std::int64_t elements, DType dtype,
                       int from) override;
  // Of the hosts: what they have queued is not waited for.
  DeviceStatus barrier(const CallContext& call) override { return host_.barrier(call); }
  std::string failure() const override { return failure_; }
  void give_up(std::string_view why) override;

 private:
  NcclRanks(Communicator& host, ncclComm_t communicator)
      : host_(host), rank_(host.rank()), size_(host.size()), communicator_(communicator) {}

  template <class Queue>
  DeviceStatus queued(const char* what, std::int64_t elements, DType dtype, Queue queue);

  Communicator& host_;
  const int rank_;
  const int size_;
  ncclComm_t communicator_;
  std::string failure_;
};

}  // namespace trainscope::cuda
