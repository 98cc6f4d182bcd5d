// What is told of the threads inside of kernels, to whoever watches them.
#pragma once

namespace trainscope {

// A region is a loop that several threads divide among each other: thread 0 is the calling one, and
// goes on when all are done. Functions are called by the thread that they are about; they must not
// throw.
struct ThreadWatch {
  void* context = nullptr;
  void (*region_begin)(void* context, int threads) = nullptr;
  void (*region_end)(void* context) = nullptr;
  void (*thread_begin)(void* context, int thread) = nullptr;
  void (*thread_end)(void* context, int thread) = nullptr;
};

}  // namespace trainscope
