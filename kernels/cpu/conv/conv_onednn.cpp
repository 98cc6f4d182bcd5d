// Convolutions in f32 on oneDNN: the direct algorithm, and where it pays Winograd's F(4 x 4, 3 x 3)
// (Lavin and Gray, "Fast algorithms for convolutional neural networks", CVPR 2016), which needs 36
// multiplications for 16 windows of 3 x 3 instead of 144 and rounds more.
#include <algorithm>
#include <memory>
#include <variant>

#include "kernels/api/kernel.h"
#include "kernels/cpu/conv/conv.h"
#include "kernels/cpu/support/fixed_chunks.h"
#include "kernels/cpu/support/onednn.h"
#include "kernels/cpu/support/rounding.h"

namespace trainscope::cpu {
namespace {

using Dims = dnnl::memory::dims;
using Algorithm = dnnl::algorithm;
constexpr auto kDirect = Algorithm::convolution_direct;
constexpr auto kWinograd = Algorithm::convolution_winograd;

Dims dims_of(const Shape& shape) { return {shape.span().begin(), shape.span().end()}; }

// oneDNN's view of a convolution: groups are an axis of the weights of their own.
struct Problem {
  Dims x, w, y;
  Dims stride, dilation, pad_begin, pad_end;
};

Dims first(const Spatial& values, int rank, std::int64_t minus) {
  Dims dims(values.begin(), values.begin() + rank);
  for (auto& value : dims) value -= minus;
  return dims;
}

Problem problem(const Params& of, const Shape& x, const Shape& w, const Shape& y) {
  const auto& params = std::get<ConvParams>(of);
  const WindowParams& window = params.window;
  Problem found{.x = dims_of(x),
                .w = dims_of(w),
                .y = dims_of(y),
                .stride = first(window.stride, window.rank, 0),
                .dilation = first(window.dilation, window.rank, 1),
                .pad_begin = first(window.pad_begin, window.rank, 0),
                .pad_end = first(window.pad_end, window.rank, 0)};
  if (params.group > 1) {
    found.w[0] /= params.group;
    found.w.insert(found.w.begin(), params.group);
  }
  for (const Dims* sizes : {&found.stride, &found.dilation, &found.pad_begin, &found.pad_end}) {
    in_32_bits(*sizes);
  }
  return found;
}

constexpr std::int64_t kWinogradTile = 4;  // pixels of the result on a side

bool has_winograd_form(const Problem& p) {
  const Dims ones(2, 1);
  const bool groups = p.w.size() != p.x.size();
  return p.x.size() == 4 && !groups && p.w[2] == 3 && p.w[3] == 3 && p.stride == ones &&
         p.dilation == Dims(2, 0);
}

// Of the whole batch.
std::int64_t winograd_tiles(const Problem& p) {
  return p.x[0] * divide_up(p.y[2], kWinogradTile) * divide_up(p.y[3], kWinogradTile);
}

constexpr std::int64_t kWinogradChannels = 64;
constexpr std::int64_t kWinogradChannelsOfWeights = 128;

// Each weight becomes 36 numbers, which enough tiles must share; what transforms pixels costs more
// beside the multiplications the fewer channels there are, most in the gradient by the weights.
Support winograd_pays(const Problem& p, std::int64_t fewest_channels) {
  constexpr std::int64_t kFewestTiles = 128;
  if (!has_winograd_form(p)) {
    return {"Winograd's form is for images, 3 x 3 at stride 1 without dilation or groups"};
  }
  if (std::min(p.w[0], p.w[1]) < fewest_channels) {
    return fewest_channels == kWinogradChannels
               ? Support{"Winograd's form pays from 64 channels on"}
               : Support{"Winograd's form of a gradient by weights pays from 128 channels on"};
  }
  return supported_if(winograd_tiles(p) >= kFewestTiles,
                      "Winograd's form pays from 128 tiles of 4 x 4 in the batch on");
}

// FLOPs of the transforms (Lavin and Gray, section 4.3): of a channel's tile of 6 x 6 pixels, of
// the sums of one, of a pair of channels' weights. A transposed transform has about as many.
constexpr double kPixelsTransform = 156.0;
constexpr double kSumsTransform = 100.0;
constexpr double kWeightsTransform = 72.0;

// Multiplications and additions of 36 products for each tile and pair of channels.
double winograd_flops(const Problem& p) {
  constexpr std::int64_t kProducts = (kWinogradTile + 2) * (kWinogradTile + 2);
  const std::int64_t tiles = winograd_tiles(p);
  return multiplied(2 * kProducts, tiles, p.w[0], p.w[1]) +
         multiplied(kPixelsTransform, tiles, p.w[1]) + multiplied(kSumsTransform, tiles, p.w[0]) +
         multiplied(kWeightsTransform, p.w[0], p.w[1]);
}

// What the numbers are transformed to, beside what they are.
bool is_small(const dnnl::primitive_desc_base& winograd, const PrepareArgs& args) {
  constexpr std::size_t kMost = 10;
  std::size_t bytes = args.outputs[0].type.bytes();
  for (const TensorView& input : args.inputs) bytes += input.present ? input.type.bytes() : 0;
  return winograd.scratchpad_desc().get_size() <= kMost * bytes;
}

Support is_wanted(Algorithm algorithm, const dnnl::primitive_desc_base& description,
                  const PrepareArgs& args) {
  if (!is_usable(description)) return kNoOneDnnCode;
  return supported_if(algorithm == kDirect || is_small(description, args),
                      "Winograd's form would take ten times the tensors' bytes");
}

bool has_empty(std::initializer_list<const Shape*> shapes) {
  return std::ranges::any_of(shapes, [](const Shape* shape) { return shape->elements() == 0; });
}

template <auto describe, Algorithm kAlgorithm>
Support supports(const PrepareArgs& args) {
  if (has_empty({&args.inputs[0].shape(), &args.inputs[1].shape(), &args.outputs[0].shape()})) {
    return {"a tensor has no elements"};
  }
  return onednn_supports(args.threads, [&](const dnnl::engine& engine) {
    return is_wanted(kAlgorithm, describe(kAlgorithm, args, engine).primitive, args);
  });
}

// By the op's Problem: what is described then does not depend on what pays.
template <auto describe, auto problem_of, std::int64_t kFewestChannels>
Support supports_winograd(const PrepareArgs& args) {
  if (has_empty({&args.inputs[0].shape(), &args.inputs[1].shape(), &args.outputs[0].shape()})) {
    return {"a tensor has no elements"};
  }
  const Support pays = onednn_supports(args.threads, [&](const dnnl::engine&) {
    return winograd_pays(problem_of(args), kFewestChannels);
  });
  return pays ? supports<describe, kWinograd>(args) : pays;
}

dnnl::convolution_forward::primitive_desc forward(Algorithm algorithm, const Problem& p,
                                                  const dnnl::engine& engine,
                                                  const dnnl::memory::desc& bias = {}) {
  constexpr auto kKind = dnnl::prop_kind::forward_training;
  if (bias.is_zero()) {
    return {{kKind, algorithm, any_desc(p.x), any_desc(p.w), any_desc(p.y), p.stride, p.dilation,
             p.pad_begin, p.pad_end},
            user_scratchpad(),
            engine,
            true};
  }
  return {{kKind, algorithm, any_desc(p.x), any_desc(p.w), bias, any_desc(p.y), p.stride,
           p.dilation, p.pad_begin, p.pad_end},
          user_scratchpad(),
          engine,
          true};
}

// --- Conv ----------------------------------------------------------------------------------------

struct Forward {
  Problem problem;
  dnnl::memory::desc bias;
  dnnl::convolution_forward::primitive_desc primitive;
};

Problem forward_problem(const PrepareArgs& args) {
  return problem(args.params, args.inputs[0].shape(), args.inputs[1].shape(),
                 args.outputs[0].shape());
}

Forward describe_forward(Algorithm algorithm, const PrepareArgs& args, const dnnl::engine& engine) {
  Forward found{.problem = forward_problem(args), .bias = {}, .primitive = {}};
  if (args.inputs.size() > 2 && args.inputs[2].present) {
    found.bias = plain_desc(dims_of(args.inputs[2].shape()));
  }
  found.primitive = forward(algorithm, found.problem, engine, found.bias);
  return found;
}

template <Algorithm kAlgorithm>
void build_forward(const PrepareArgs& args, OneDnnProgram& program) {
  const auto [p, bias, primitive] = describe_forward(kAlgorithm, args, program.engine());
  const auto x = program.reordered(program.input(0, plain_desc(p.x)), primitive.src_desc());
  const auto w = program.reordered(program.input(1, plain_desc(p.w)), primitive.weights_desc());
  const auto y = program.output(0, plain_desc(p.y));
  const auto result = program.writable(y, primitive.dst_desc());
  OneDnnProgram::Arguments arguments{
      {DNNL_ARG_SRC, x}, {DNNL_ARG_WEIGHTS, w}, {DNNL_ARG_DST, result}};
  if (!bias.is_zero()) arguments.emplace_back(DNNL_ARG_BIAS, program.input(2, bias));
  program.add(dnnl::convolution_forward(primitive), primitive.scratchpad_desc(), arguments);
  program.finish_output(result, y);
}

// --- ConvGradInput(dy, w) ------------------------------------------------------------------------

struct GradInput {
  Problem problem;
  dnnl::convolution_backward_data::primitive_desc primitive;
};

Problem grad_input_problem(const PrepareArgs& args) {
  return problem(args.params, args.outputs[0].shape(), args.inputs[1].shape(),
                 args.inputs[0].shape());
}

GradInput describe_grad_input(Algorithm algorithm, const PrepareArgs& args,
                              const dnnl::engine& engine) {
  GradInput found{.problem = grad_input_problem(args), .primitive = {}};
  const Problem& p = found.problem;
  const auto hint = forward(algorithm, p, engine);
  if (!hint) return found;
  found.primitive = {{algorithm, any_desc(p.x), any_desc(p.w), any_desc(p.y), p.stride, p.dilation,
                      p.pad_begin, p.pad_end},
                     user_scratchpad(),
                     engine,
                     hint,
                     true};
  return found;
}

template <Algorithm kAlgorithm>
void build_grad_input(const PrepareArgs& args, OneDnnProgram& program) {
  const auto [p, primitive] = describe_grad_input(kAlgorithm, args, program.engine());
  const auto dy = program.reordered(program.input(0, plain_desc(p.y)), primitive.diff_dst_desc());
  const auto w = program.reordered(program.input(1, plain_desc(p.w)), primitive.weights_desc());
  const auto dx = program.output(0, plain_desc(p.x));
  const auto result = program.writable(dx, primitive.diff_src_desc());
  program.add(dnnl::convolution_backward_data(primitive), primitive.scratchpad_desc(),
              {{DNNL_ARG_DIFF_DST, dy}, {DNNL_ARG_WEIGHTS, w}, {DNNL_ARG_DIFF_SRC, result}});
  program.finish_output(result, dx);
}

// --- ConvGradWeight(x, dy) -----------------------------------------------------------------------

struct GradWeight {
  Problem problem;
  dnnl::convolution_backward_weights::primitive_desc primitive;
};

Problem grad_weight_problem(const PrepareArgs& args) {
  return problem(args.params, args.inputs[0].shape(), args.outputs[0].shape(),
                 args.inputs[1].shape());
}

GradWeight describe_grad_weight(Algorithm algorithm, const PrepareArgs& args,
                                const dnnl::engine& engine) {
  GradWeight found{.problem = grad_weight_problem(args), .primitive = {}};
  const Problem& p = found.problem;
  const auto hint = forward(algorithm, p, engine);
  if (!hint) return found;
  found.primitive = {{algorithm, any_desc(p.x), any_desc(p.w), any_desc(p.y), p.stride, p.dilation,
                      p.pad_begin, p.pad_end},
                     user_scratchpad(),
                     engine,
                     hint,
                     true};
  return found;
}

template <Algorithm kAlgorithm>
void build_grad_weight(const PrepareArgs& args, OneDnnProgram& program) {
  const auto [p, primitive] = describe_grad_weight(kAlgorithm, args, program.engine());
  const auto x = program.reordered(program.input(0, plain_desc(p.x)), primitive.src_desc());
  const auto dy = program.reordered(program.input(1, plain_desc(p.y)), primitive.diff_dst_desc());
  const auto dw = program.output(0, plain_desc(p.w));
  const auto result = program.writable(dw, primitive.diff_weights_desc());
  program.add(dnnl::convolution_backward_weights(primitive), primitive.scratchpad_desc(),
              {{DNNL_ARG_SRC, x}, {DNNL_ARG_DIFF_DST, dy}, {DNNL_ARG_DIFF_WEIGHTS, result}});
  program.finish_output(result, dw);
}

// --- The table -----------------------------------------------------------------------------------
// oneDNN chooses blocks and, for the weights, partial sums by the number of threads.

template <auto build>
Estimate estimate_direct(const PrepareArgs& args, const Estimate& definition) {
  return estimate_program<build>(args, static_cast<double>(definition.flops));
}
template <auto build, auto problem_of>
Estimate estimate_winograd(const PrepareArgs& args, const Estimate&) {
  return estimate_program<build>(args, winograd_flops(problem_of(args)));
}

template <auto describe, auto build>
constexpr Kernel direct_kernel(std::string_view name) {
  return {.name = name,
          .supports = supports<describe, kDirect>,
          .prepare = prepare_program<build>,
          .run = run_program,
          .estimate = estimate_direct<build>,
          .same_for_any_threads = false};
}
template <auto describe, auto build, auto problem_of, std::int64_t kFewestChannels>
constexpr Kernel winograd_kernel(std::string_view name) {
  return {.name = name,
          .supports = supports_winograd<describe, problem_of, kFewestChannels>,
          .prepare = prepare_program<build>,
          .run = run_program,
          .estimate = estimate_winograd<build, problem_of>,
          .same_for_any_threads = false,
          .transforms = true};
}

constexpr Kernel kForward = direct_kernel<describe_forward, build_forward<kDirect>>("conv.onednn");
constexpr Kernel kGradInput =
    direct_kernel<describe_grad_input, build_grad_input<kDirect>>("conv_grad_input.onednn");
constexpr Kernel kGradWeight =
    direct_kernel<describe_grad_weight, build_grad_weight<kDirect>>("conv_grad_weight.onednn");

constexpr FixedSplit kSliceFirst = {.slices_input = {true}};  // x or dy; the weights are whole
constexpr FixedSplit kSumOverBatch = {.slices_input = {true, true}, .slices_output = false};

}  // namespace

void add_conv_onednn(KernelTable& table) {
  table.add("Conv", DType::kF32, in_fixed_chunks<kForward, kSliceFirst>("conv.onednn_chunks"));
  table.add("Conv", DType::kF32, kForward);
  table.add("ConvGradInput", DType::kF32,
            in_fixed_chunks<kGradInput, kSliceFirst>("conv_grad_input.onednn_chunks"));
  table.add("ConvGradInput", DType::kF32, kGradInput);
  table.add("ConvGradWeight", DType::kF32,
            in_fixed_chunks<kGradWeight, kSumOverBatch>("conv_grad_weight.onednn_chunks"));
  table.add("ConvGradWeight", DType::kF32, kGradWeight);
}

void add_conv_winograd(KernelTable& table) {
  table.add("Conv", DType::kF32,
            winograd_kernel<describe_forward, build_forward<kWinograd>, forward_problem,
                            kWinogradChannels>("conv.onednn_winograd"));
  table.add("ConvGradInput", DType::kF32,
            winograd_kernel<describe_grad_input, build_grad_input<kWinograd>, grad_input_problem,
                            kWinogradChannels>("conv_grad_input.onednn_winograd"));
  table.add("ConvGradWeight", DType::kF32,
            winograd_kernel<describe_grad_weight, build_grad_weight<kWinograd>, grad_weight_problem,
                            kWinogradChannelsOfWeights>("conv_grad_weight.onednn_winograd"));
}

}  // namespace trainscope::cpu
