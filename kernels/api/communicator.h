// What the processes of one run, its ranks, tell each other: collectives over one device each.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "kernels/api/dtype.h"
#include "kernels/api/kernel.h"

namespace trainscope {

// One rank's end of the channel between size() ranks. Each rank calls the same functions in the
// same order, with the same numbers of elements, dtypes and roots: of ranks that do not, every one
// gets kBadInput with what two of them asked for. When a rank ends, the calls that wait for it fail
// with kFailed. After a failure the channel is of no use any more, and failure() says what it was.
//
// Addresses are of the device that the channel was made for; work is queued on the stream of `call`
// and done in its order. Of a sum every rank gets the same bits, in every run. Between hosts it is
// made in the order of the ranks, ((x0 + x1) + x2) + ...: its bits are those of one process that
// adds up x0, x1, x2 ... one after the other. Between devices its order is the channel's own.
class Communicator {
 public:
  Communicator() = default;
  virtual ~Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  // from [elements] -> to [elements]: the sum over the ranks. `to` may be `from`.
  virtual DeviceStatus all_reduce(const CallContext& call, const void* from, void* to,
                                  std::int64_t elements, DType dtype) = 0;
  // from [size * elements] -> to [elements]: rank r gets part r of the sum. They do not overlap.
  virtual DeviceStatus reduce_scatter(const CallContext& call, const void* from, void* to,
                                      std::int64_t elements, DType dtype) = 0;
  // from [elements] -> to [size * elements]: part r is what rank r gave. They do not overlap.
  virtual DeviceStatus all_gather(const CallContext& call, const void* from, void* to,
                                  std::int64_t elements, DType dtype) = 0;
  // data [elements]: every rank has what rank `root` had.
  virtual DeviceStatus broadcast(const CallContext& call, void* data, std::int64_t elements,
                                 DType dtype, int root) = 0;
  // data [elements] of one rank goes to another, which receives as many. Not to itself.
  virtual DeviceStatus send(const CallContext& call, const void* data, std::int64_t elements,
                            DType dtype, int to) = 0;
  virtual DeviceStatus receive(const CallContext& call, void* data, std::int64_t elements,
                               DType dtype, int from) = 0;
  // Done when every rank has called it.
  virtual DeviceStatus barrier(const CallContext& call) = 0;

  // Why the channel cannot be used any more; empty while it can.
  virtual std::string failure() const = 0;
  // Ends the channel for all ranks, for this reason, where it has not failed before.
  virtual void give_up(std::string_view why) = 0;
};

}  // namespace trainscope
