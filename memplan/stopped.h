// How a search ends that somebody has asked to stop, where half a result is none.
#pragma once

#include <exception>

namespace trainscope::memplan {

class Stopped final : public std::exception {
 public:
  const char* what() const noexcept override { return "stopped as asked"; }
};

}  // namespace trainscope::memplan
