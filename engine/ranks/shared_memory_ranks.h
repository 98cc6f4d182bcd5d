// The channel between CPU ranks of one machine: shared memory, in which everybody copies.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/ranks/rank_memory.h"
#include "kernels/api/communicator.h"

namespace trainscope {

// Does what it is asked for at once, whatever the stream: addresses are of the host. Sums of f32,
// f64, i32 and i64. Who waits spins a little and then sleeps, and looks every 50 ms
// whether the others are still there; of a rank that has not come at all it waits for 60 s.
class SharedMemoryRanks final : public Communicator {
 public:
  // Joins the memory of `descriptor` (rank_memory.h) as this rank. Throws what joining throws.
  SharedMemoryRanks(int descriptor, int rank, int size);

  int rank() const override { return rank_; }
  int size() const override { return memory_.ranks(); }
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
  DeviceStatus barrier(const CallContext& call) override;
  std::string failure() const override;
  void give_up(std::string_view why) override;

 private:
  // Bytes [begin, end) of a call's data that all ranks handle together, each in its slot `turn`.
  struct Piece {
    std::int64_t begin = 0;
    std::int64_t end = 0;
    std::int64_t turn = 0;

    std::int64_t bytes() const { return end - begin; }
  };

  template <class Put, class Take>
  DeviceStatus in_pieces(RankRequest request, std::int64_t bytes, Put put, Take take);
  template <class Move>
  DeviceStatus by_mail(const RankRequest& request, Move move);
  bool meet();
  bool agree(std::int64_t number);
  template <class Holds>
  bool wait_for(int only, Holds holds);
  std::string who_is_missing(int only) const;
  DeviceStatus failed() const;
  DeviceStatus no_sum_of(DType dtype) const;
  std::byte* slot(int rank, const Piece& piece) const { return memory_.slot(rank, piece.turn); }

  RankMemory memory_;
  const int rank_;
  const std::int64_t joined_ns_;
  std::int64_t calls_ = 0;  // of collectives
  std::uint64_t meetings_ = 0;
  std::int64_t turns_ = 0;
};

}  // namespace trainscope
