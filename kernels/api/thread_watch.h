// What is told of the threads inside of kernels, to whoever watches them.
#pragma once

namespace trainscope {

// A region is a loop that the threads [0, threads) divide among each other: thread 0 is the calling
// one, and goes on when all are done. Within it each of them tells when its chunk begins and ends.
// A library region is a loop of a library, which tells nothing of its threads. Both are told by the
// calling thread. Functions must not throw.
struct ThreadWatch {
  void* context = nullptr;
  void (*region_begin)(void* context, int threads) = nullptr;
  void (*region_end)(void* context, int threads) = nullptr;
  void (*thread_begin)(void* context, int thread) = nullptr;
  void (*thread_end)(void* context, int thread) = nullptr;
  void (*library_begin)(void* context, int threads) = nullptr;
  void (*library_end)(void* context, int threads) = nullptr;
};

}  // namespace trainscope
