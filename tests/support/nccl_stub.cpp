// In place of libnccl.so.2: ranks are processes of one machine, addresses the host's. Each call is
// done after all ranks have shown that they ask for the same: in its place of the stream of a
// simulated CUDA runtime (TRAINSCOPE_SIMULATED_CUDA), else at once, whatever the stream. It is
// noted, a line each, in the file that TRAINSCOPE_NCCL_LOG names, with the rank's number behind it.
// With TRAINSCOPE_NCCL_REFUSES there are no ids.
#include <fcntl.h>
#include <nccl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#ifdef TRAINSCOPE_SIMULATED_CUDA
#include "tests/cuda/simulated/runtime.h"
#endif

namespace {

constexpr int kMostRanks = 8;
constexpr std::size_t kMostBytes = std::size_t{1} << 22;  // of one rank in one call

struct Request {
  char function[24] = {};
  std::size_t count = 0;
  int type = 0;
  int root = 0;
};

struct Shared {
  pthread_barrier_t barrier;
  Request requests[kMostRanks];
  std::byte bytes[kMostRanks][kMostBytes];
};

std::size_t size_of(ncclDataType_t type) {
  switch (type) {
    case ncclFloat64:
    case ncclInt64:
      return 8;
    case ncclFloat32:
    case ncclInt32:
      return 4;
    case ncclUint8:
      return 1;
    default:
      return 2;
  }
}

template <typename T>
void add(T* to, const T* more, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) to[i] += more[i];
}

void add(ncclDataType_t type, void* to, const void* more, std::size_t count) {
  if (type == ncclFloat32) {
    add(static_cast<float*>(to), static_cast<const float*>(more), count);
  } else if (type == ncclFloat64) {
    add(static_cast<double*>(to), static_cast<const double*>(more), count);
  } else {
    std::abort();  // no test sums another type
  }
}

void copy_bytes(void* to, const void* from, std::size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}

}  // namespace

struct ncclComm {
  Shared* shared = nullptr;
  int rank = 0;
  int ranks = 0;
  std::FILE* log = nullptr;
  ncclResult_t failed = ncclSuccess;

  void meet() const { pthread_barrier_wait(&shared->barrier); }

  // Shows `bytes` of this rank, and looks at what the others ask for.
  ncclResult_t ask(const char* function, const void* from, std::size_t count, ncclDataType_t type,
                   std::size_t bytes, int root = 0) {
    if (bytes > kMostBytes) return ncclInternalError;
    if (log != nullptr) {
      std::fprintf(log, "%s %zu %d\n", function, count, static_cast<int>(type));
      std::fflush(log);
    }
    Request& mine = shared->requests[rank];
    mine = {.count = count, .type = static_cast<int>(type), .root = root};
    std::strncpy(mine.function, function, sizeof mine.function - 1);
    copy_bytes(shared->bytes[rank], from, bytes);
    meet();
    for (int r = 0; r < ranks; ++r) {
      if (std::memcmp(&shared->requests[r], &mine, sizeof mine) != 0) failed = ncclInvalidUsage;
    }
    return failed;
  }
  // All have read what was shown.
  ncclResult_t done() {
    meet();
    return failed;
  }
};

namespace {

// A failure of what runs later is the communicator's.
template <typename Call>
ncclResult_t on_stream([[maybe_unused]] cudaStream_t stream, [[maybe_unused]] const ncclComm& c,
                       Call call) {
#ifdef TRAINSCOPE_SIMULATED_CUDA
  trainscope::simulated::runtime().add(stream, [call] { (void)call(); });
  return c.failed;
#else
  return call();
#endif
}

}  // namespace

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t result) {
  return result == ncclInvalidUsage ? "invalid usage" : "another error";
}

// The id is the name of a file below /dev/shm; how many ranks there are, who joins first says.
ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  if (std::getenv("TRAINSCOPE_NCCL_REFUSES") != nullptr) return ncclSystemError;
  static int made = 0;
  std::snprintf(id->internal, sizeof id->internal, "/trainscope-nccl-%d-%d", getpid(), ++made);
  return ncclSuccess;
}

ncclResult_t ncclCommInitRank(ncclComm_t* communicator, int ranks, ncclUniqueId id, int rank) {
  if (ranks > kMostRanks) return ncclInvalidArgument;
  const bool is_first = rank == 0;
  int file = -1;
  while (file < 0) {
    file = shm_open(id.internal, is_first ? O_RDWR | O_CREAT : O_RDWR, 0600);
    if (file < 0) usleep(1000);
  }
  if (is_first && ftruncate(file, sizeof(Shared)) != 0) return ncclSystemError;
  while (lseek(file, 0, SEEK_END) < off_t{sizeof(Shared)}) usleep(1000);
  void* memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  auto* shared = static_cast<Shared*>(memory);
  auto* ready = reinterpret_cast<volatile std::byte*>(&shared->bytes[0][0]);
  if (is_first) {
    pthread_barrierattr_t attributes;
    pthread_barrierattr_init(&attributes);
    pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&shared->barrier, &attributes, static_cast<unsigned>(ranks));
    __sync_synchronize();
    *ready = std::byte{1};
  }
  while (*ready != std::byte{1}) usleep(1000);
  close(file);
  auto* made = new ncclComm{.shared = shared, .rank = rank, .ranks = ranks};
  made->meet();
  if (is_first) shm_unlink(id.internal);
  if (const char* log = std::getenv("TRAINSCOPE_NCCL_LOG")) {
    made->log = std::fopen((std::string(log) + std::to_string(rank)).c_str(), "w");
  }
  *communicator = made;
  return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t communicator, ncclResult_t* error) {
  *error = communicator->failed;
  return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t communicator) {
  if (communicator->log != nullptr) std::fclose(communicator->log);
  munmap(communicator->shared, sizeof(Shared));
  delete communicator;
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t communicator) { return ncclCommDestroy(communicator); }

ncclResult_t ncclAllReduce(const void* from, void* to, std::size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t c, cudaStream_t stream) {
  if (op != ncclSum) return ncclInvalidArgument;
  return on_stream(stream, *c, [=] {
    const std::size_t bytes = count * size_of(type);
    if (const ncclResult_t asked = c->ask("all_reduce", from, count, type, bytes)) return asked;
    copy_bytes(to, c->shared->bytes[0], bytes);
    for (int r = 1; r < c->ranks; ++r) add(type, to, c->shared->bytes[r], count);
    return c->done();
  });
}

ncclResult_t ncclReduceScatter(const void* from, void* to, std::size_t count, ncclDataType_t type,
                               ncclRedOp_t op, ncclComm_t c, cudaStream_t stream) {
  if (op != ncclSum) return ncclInvalidArgument;
  return on_stream(stream, *c, [=] {
    const std::size_t part = count * size_of(type);
    const std::size_t bytes = part * static_cast<std::size_t>(c->ranks);
    if (const ncclResult_t asked = c->ask("reduce_scatter", from, count, type, bytes)) return asked;
    const std::size_t begin = part * static_cast<std::size_t>(c->rank);
    copy_bytes(to, c->shared->bytes[0] + begin, part);
    for (int r = 1; r < c->ranks; ++r) add(type, to, c->shared->bytes[r] + begin, count);
    return c->done();
  });
}

ncclResult_t ncclAllGather(const void* from, void* to, std::size_t count, ncclDataType_t type,
                           ncclComm_t c, cudaStream_t stream) {
  return on_stream(stream, *c, [=] {
    const std::size_t part = count * size_of(type);
    if (const ncclResult_t asked = c->ask("all_gather", from, count, type, part)) return asked;
    for (int r = 0; r < c->ranks; ++r) {
      copy_bytes(static_cast<std::byte*>(to) + part * static_cast<std::size_t>(r),
                 c->shared->bytes[r], part);
    }
    return c->done();
  });
}

ncclResult_t ncclBroadcast(const void* from, void* to, std::size_t count, ncclDataType_t type,
                           int root, ncclComm_t c, cudaStream_t stream) {
  return on_stream(stream, *c, [=] {
    const std::size_t bytes = count * size_of(type);
    if (const ncclResult_t asked = c->ask("broadcast", from, count, type, bytes, root))
      return asked;
    copy_bytes(to, c->shared->bytes[root], bytes);
    return c->done();
  });
}

// Of two ranks, both of which call one of these: `root` is the sender.
ncclResult_t ncclSend(const void* from, std::size_t count, ncclDataType_t type, int to,
                      ncclComm_t c, cudaStream_t stream) {
  if (c->ranks != 2 || to == c->rank) return ncclInvalidArgument;
  return on_stream(stream, *c, [=] {
    const std::size_t bytes = count * size_of(type);
    if (const ncclResult_t asked = c->ask("send", from, count, type, bytes, c->rank)) return asked;
    return c->done();
  });
}

ncclResult_t ncclRecv(void* to, std::size_t count, ncclDataType_t type, int from, ncclComm_t c,
                      cudaStream_t stream) {
  if (c->ranks != 2 || from == c->rank) return ncclInvalidArgument;
  return on_stream(stream, *c, [=] {
    if (const ncclResult_t asked = c->ask("send", nullptr, count, type, 0, from)) return asked;
    copy_bytes(to, c->shared->bytes[from], count * size_of(type));
    return c->done();
  });
}

}  // extern "C"
