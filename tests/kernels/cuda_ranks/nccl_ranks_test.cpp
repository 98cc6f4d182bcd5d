// The channel by NCCL, over a simulated library of NVIDIA's: values, the order and sizes of calls,
// what differs; and a run of two ranks through it.
#include "kernels/cuda/ranks/nccl_ranks.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "engine/core/safetensors.h"
#include "engine/ranks/ranked_device.h"
#include "engine/run/training_run.h"
#include "engine/session.h"
#include "kernels/cuda/ranks/nccl.h"
#include "tests/engine/run/run_tools.h"
#include "tests/support/forked_ranks.h"

namespace trainscope::test {
namespace {

using Code = DeviceStatus::Code;

const std::string kLibrary = TRAINSCOPE_NCCL_STUB;

// In a rank's process; null where NCCL does not begin.
std::unique_ptr<cuda::NcclRanks> nccl_over(Communicator& host) {
  std::string why_not = cuda::load_nccl(kLibrary.c_str());
  return why_not.empty() ? cuda::NcclRanks::make(host, &why_not) : nullptr;
}

std::string text_of_file(const std::filesystem::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

TEST_CASE("nccl: each function gives what it says, and is called with these sizes in this order") {
  const ScratchFolder folder;
  ::setenv("TRAINSCOPE_NCCL_LOG", (folder.path / "calls-").c_str(), 1);
  const RanksResult result = run_ranks(2, [](Communicator& host) {
    const auto ranks = nccl_over(host);
    if (ranks == nullptr || ranks->size() != 2 || ranks->rank() != host.rank()) return false;
    const float mine = host.rank() == 0 ? 1.0F : 10.0F;
    std::vector<float> x(6, mine);
    bool ok = ranks->all_reduce({}, x.data(), x.data(), 6, DType::kF32).done() && x[5] == 11.0F;
    std::vector<double> part(3, -1.0);
    const std::vector<double> whole(6, static_cast<double>(mine));
    ok = ranks->reduce_scatter({}, whole.data(), part.data(), 3, DType::kF64).done() && ok;
    ok = ok && part[2] == 11.0;
    std::vector<float> all(4, -1.0F);
    ok = ranks->all_gather({}, &mine, all.data(), 1, DType::kF32).done() && ok;
    ok = ok && all[0] == 1.0F && all[1] == 10.0F && all[2] == -1.0F;
    std::int64_t number = host.rank();
    ok = ranks->broadcast({}, &number, 1, DType::kI64, 1).done() && number == 1 && ok;
    float got = -1.0F;
    ok = ok && (host.rank() == 0 ? ranks->send({}, &mine, 1, DType::kF32, 1).done()
                                 : ranks->receive({}, &got, 1, DType::kF32, 0).done());
    return ok && (host.rank() == 0 || got == 1.0F) && ranks->barrier({}).done();
  });
  ::unsetenv("TRAINSCOPE_NCCL_LOG");
  CHECK(result.all_true());
  const std::string calls = fmt::format(
      "all_reduce 6 {0}\nreduce_scatter 3 {1}\nall_gather 1 {0}\nbroadcast 1 {2}\nsend 1 {0}\n",
      static_cast<int>(ncclFloat32), static_cast<int>(ncclFloat64), static_cast<int>(ncclInt64));
  CHECK(text_of_file(folder.path / "calls-0") == calls);
  CHECK(text_of_file(folder.path / "calls-1") == calls);
}

TEST_CASE("nccl: ranks that differ in size or type, and types that there are none of") {
  const RanksResult result = run_ranks(2, [](Communicator& host) {
    const auto ranks = nccl_over(host);
    if (ranks == nullptr) return false;
    double x[4] = {};
    const bool no_bool = ranks->all_reduce({}, x, x, 4, DType::kBool).code == Code::kBadInput;
    if (!no_bool || !ranks->failure().empty()) return false;
    const std::int64_t count = host.rank() == 0 ? 4 : 3;
    const DeviceStatus status = ranks->all_reduce({}, x, x, count, DType::kF64);
    return status.code == Code::kBadInput && status.message == ranks->failure() &&
           status.message ==
               fmt::format("ncclAllReduce of {} f64: status 5 (invalid usage)", count) &&
           ranks->all_reduce({}, x, x, 4, DType::kF64).code == Code::kFailed;
  });
  CHECK(result.all_true());
}

TEST_CASE("nccl: one that gives up ends the channel between the hosts too") {
  const RanksResult result = run_ranks(2, [](Communicator& host) {
    const auto ranks = nccl_over(host);
    if (ranks == nullptr) return false;
    if (host.rank() == 0) return !ranks->barrier({}).done() && host.failure() == "it rains";
    ranks->give_up("it rains");
    float x = 0.0F;
    return ranks->failure() == "it rains" &&
           ranks->all_reduce({}, &x, &x, 1, DType::kF32).message == "it rains";
  });
  CHECK(result.all_true());
}

TEST_CASE("nccl: a library that is missing, or does not begin, is a reason on every rank") {
  const RanksResult result = run_ranks(2, [](Communicator& host) {
    std::string why_not = cuda::load_nccl("/missing/libnccl.so.2");
    if (!why_not.starts_with("NCCL cannot be loaded: /missing/libnccl.so.2")) return false;
    if (!cuda::load_nccl(kLibrary.c_str()).empty()) return false;
    if (host.rank() == 0) ::setenv("TRAINSCOPE_NCCL_REFUSES", "1", 1);
    const bool none = cuda::NcclRanks::make(host, &why_not) == nullptr;
    return none && why_not == (host.rank() == 0 ? "ncclGetUniqueId: status 2 (another error)"
                                                : "NCCL does not begin on another rank");
  });
  CHECK(result.all_true());
}

// Of two ranks the simulated library adds up in the order of shared memory.
TEST_CASE("nccl: a run of two ranks has the calls of its plan, and the bits of shared memory") {
  const ScratchFolder folder;
  const auto train_over = [&](const char* name, bool by_nccl) {
    const RanksResult result = run_ranks(2, [&](Communicator& host) {
      std::shared_ptr<Communicator> channel(std::shared_ptr<void>(), &host);
      TrainRequest request = points_request(folder.path / name, 5);
      request.compile.lower.threads = 1;
      request.compile.device = cpu_device();
      request.ranks = channel;
      request.connect = [by_nccl](const DeviceHandle&,
                                  std::shared_ptr<Communicator> between_hosts) {
        return by_nccl ? std::shared_ptr<Communicator>(nccl_over(*between_hosts)) : between_hosts;
      };
      RunEvents nobody;
      return train(std::move(request), nobody).step == 5;
    });
    CHECK(result.all_true());
  };
  train_over("shared", false);
  ::setenv("TRAINSCOPE_NCCL_LOG", (folder.path / "calls-").c_str(), 1);
  train_over("nccl", true);
  ::unsetenv("TRAINSCOPE_NCCL_LOG");
  std::string calls;  // w [3,2], once a step
  for (int step = 0; step < 5; ++step) {
    calls += fmt::format("all_reduce 6 {}\n", static_cast<int>(ncclFloat32));
  }
  CHECK(text_of_file(folder.path / "calls-0") == calls);
  CHECK(text_of_file(folder.path / "calls-1") == calls);
  for (const char* file : {"model.onnx", "checkpoints/step-00000005/optimizer.safetensors"}) {
    const std::string expected = text_of_file(folder.path / "shared" / file);
    CHECK(!expected.empty());
    CHECK(text_of_file(folder.path / "nccl" / file) == expected);
  }
}

}  // namespace trainscope::test
