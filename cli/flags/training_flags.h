// Flags that say what to build around a model, and the engine's options made of them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/flags/invocation.h"
#include "cli/flags/sizes.h"
#include "engine/session.h"

namespace trainscope {

// Of the file that --gradients names.
inline constexpr std::uint64_t kMaxGradientsBytes = std::uint64_t{1} << 20;

std::span<const Flag> loss_flags();         // --loss
std::span<const Flag> optimizer_flags();    // --optimizer, --lr, --clip, --accumulate, ...
std::span<const Flag> schedule_flags();     // --schedule, --warmup, ...
std::span<const Flag> graph_flags();        // --train, --freeze, --precision, --disable, ...
std::span<const Flag> kernel_flags();       // --kernels
std::span<const Flag> determinism_flags();  // --deterministic
std::span<const Flag> recompute_flags();    // --memory-budget, --recompute, ...
// All of them and size_flags().
std::vector<Flag> compile_flags();

// Of a verb that has compile_flags().
CompileOptions compile_options(const Invocation& invocation, const OnnxModel& model,
                               const Sizes& sizes);
// --train, --freeze, --parameters. Reads the file that the last one names.
void choose_what_to_train(const Settings& settings, ImportOptions& import);
// What of them is about a finished graph: kernels, order, recomputation. Also from a recorded
// stage, after which no pass is to run.
CompileOptions plan_options(const Invocation& invocation);
// Whether flags were given on the command line that plan_options() does not read.
bool changes_the_graph(const Settings& settings);
// Of a verb that has graph_flags() or not: a forward or evaluation program.
CompileOptions forward_options(const Invocation& invocation, const Sizes& sizes);

// --disable, by the names that passes have today.
std::vector<std::string> disabled_passes(const Settings& settings);
// Of a verb that has determinism_flags().
SameBits same_bits(const Settings& settings);
KernelChoice kernel_choice(const Settings& settings);
// "f32", "tf32", "bf16" or, for both, "fp16" and "f16".
StepPrecision step_precision(std::string_view text);
// Of a verb that has recompute_flags().
OpOrder op_order(const Settings& settings);
// None: no ops run batch tile by batch tile.
std::optional<BatchTileOptions> batch_tiles(const Settings& settings);
// --machine, or the one that is built in. Reads the file.
Machine plan_machine(const Settings& settings);
// --link-rate.
HostLink host_link(const Settings& settings);
RecomputeOptions recompute_options(const Settings& settings);
// The options of a run that this call goes on from. Where the call asks for a budget, an overhead
// or a level of recomputation, what it says of recomputation stands in place of all that the run
// says.
Json without_replaced_plan(const Json& options, const Settings& settings);
// "6GiB" as a number of bytes, 1 or more; throws kUsage for what is none, naming the flag.
std::int64_t parse_bytes(std::string_view flag, std::string_view text);
OptimizerOptions optimizer_options(const Settings& settings);
// --alternate, with `usual` where it says nothing of an optimizer; none where it is not given.
std::vector<AlternatingLoss> alternation(const Settings& settings, const OptimizerOptions& usual);
// What such a step records as its loss, and evaluations compute.
LossOptions sum_of_losses(const std::vector<AlternatingLoss>& losses);
// For 0 steps their number is not known yet, and it is not checked.
Schedule training_schedule(const Settings& settings, std::int64_t steps);

// Throws kUsage when one of `all` is given that means nothing with the value of the flag `choice`:
// a flag that would do nothing is a mistake.
void refuse_idle_flags(const Settings& settings, std::string_view choice,
                       std::span<const std::string_view> all,
                       std::span<const std::string_view> meaningful);

// What recomputation was predicted to do, from recompute_json: two lines for people.
std::string recompute_text(const Json& summary);

}  // namespace trainscope
