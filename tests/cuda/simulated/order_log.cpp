// Writes the calls to the file that the environment names.
#include "tests/cuda/simulated/order_log.h"

#include <cstdlib>

namespace trainscope::simulated {
namespace {

std::FILE* file_of_environment() {
  const char* path = std::getenv("TRAINSCOPE_SIMULATED_ORDER");
  return path == nullptr ? nullptr : std::fopen(path, "w");
}

}  // namespace

OrderLog::OrderLog() : file_(file_of_environment()) {}

OrderLog::~OrderLog() {
  if (file_ != nullptr) std::fclose(file_);
}

void OrderLog::add(const char* what, std::uint32_t stream, const void* moment) {
  if (file_ == nullptr) return;
  if (moment == nullptr) {
    std::fprintf(file_, "%s %u -\n", what, stream);
  } else {
    std::fprintf(file_, "%s %u %p\n", what, stream, moment);
  }
}

}  // namespace trainscope::simulated
