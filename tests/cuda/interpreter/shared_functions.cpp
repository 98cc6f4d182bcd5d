// What PTX calls that was made with nvcc_functions.cuh: the host's functions, as the emulator has
// them.
#include <cmath>

#include "tests/cuda/interpreter/lanewise.h"

namespace trainscope::ptx {
namespace {

#define TRAINSCOPE_FUNCTION(Name, function) \
  struct Name {                             \
    template <typename... T>                \
    auto operator()(T... x) const {         \
      return function(x...);                \
    }                                       \
  };
TRAINSCOPE_FUNCTION(SharedExponential, std::exp)
TRAINSCOPE_FUNCTION(SharedLogarithm, std::log)
TRAINSCOPE_FUNCTION(SharedLogarithmOfOneMore, std::log1p)
TRAINSCOPE_FUNCTION(SharedExponentialLessOne, std::expm1)
TRAINSCOPE_FUNCTION(SharedSine, std::sin)
TRAINSCOPE_FUNCTION(SharedCosine, std::cos)
TRAINSCOPE_FUNCTION(SharedTangent, std::tan)
TRAINSCOPE_FUNCTION(SharedArcSine, std::asin)
TRAINSCOPE_FUNCTION(SharedArcCosine, std::acos)
TRAINSCOPE_FUNCTION(SharedArcTangent, std::atan)
TRAINSCOPE_FUNCTION(SharedHyperbolicSine, std::sinh)
TRAINSCOPE_FUNCTION(SharedHyperbolicCosine, std::cosh)
TRAINSCOPE_FUNCTION(SharedAreaSine, std::asinh)
TRAINSCOPE_FUNCTION(SharedAreaCosine, std::acosh)
TRAINSCOPE_FUNCTION(SharedAreaTangent, std::atanh)
TRAINSCOPE_FUNCTION(SharedHyperbolicTangent, std::tanh)
TRAINSCOPE_FUNCTION(SharedErrorFunction, std::erf)
TRAINSCOPE_FUNCTION(SharedErrorFunctionRest, std::erfc)
TRAINSCOPE_FUNCTION(SharedPower, std::pow)
#undef TRAINSCOPE_FUNCTION

// As emulator/device_functions.h has it.
struct SharedInverseRoot {
  template <typename T>
  T operator()(T x) const {
    return static_cast<T>(1.0 / std::sqrt(static_cast<double>(x)));
  }
};

template <typename F>
void add_function(OpcodeTable& table, const std::string& name) {
  table["call trainscope_" + name + "_f32"] = {run_unary<F, float>};
  table["call trainscope_" + name + "_f64"] = {run_unary<F, double>};
}

}  // namespace

void add_shared_functions(OpcodeTable& table) {
  add_function<SharedExponential>(table, "exp");
  add_function<SharedLogarithm>(table, "log");
  add_function<SharedLogarithmOfOneMore>(table, "log1p");
  add_function<SharedExponentialLessOne>(table, "expm1");
  add_function<SharedSine>(table, "sin");
  add_function<SharedCosine>(table, "cos");
  add_function<SharedTangent>(table, "tan");
  add_function<SharedArcSine>(table, "asin");
  add_function<SharedArcCosine>(table, "acos");
  add_function<SharedArcTangent>(table, "atan");
  add_function<SharedHyperbolicSine>(table, "sinh");
  add_function<SharedHyperbolicCosine>(table, "cosh");
  add_function<SharedAreaSine>(table, "asinh");
  add_function<SharedAreaCosine>(table, "acosh");
  add_function<SharedAreaTangent>(table, "atanh");
  add_function<SharedHyperbolicTangent>(table, "tanh");
  add_function<SharedErrorFunction>(table, "erf");
  add_function<SharedErrorFunctionRest>(table, "erfc");
  add_function<SharedInverseRoot>(table, "rsqrt");
  table["call trainscope_pow_f32"] = {run_binary<SharedPower, float>};
  table["call trainscope_pow_f64"] = {run_binary<SharedPower, double>};
  // Of pow as it ships: CUDA's function, which stands beside the kernel, of a base that is not
  // negative. The host's is as near to the truth.
  table["call __internal_accurate_pow"] = {run_binary<SharedPower, double>};
}

}  // namespace trainscope::ptx
