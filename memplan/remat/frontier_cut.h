// What to keep at one moment of a training step, and what to recompute after it: a minimum cut.
//
// The frontier is the moment at which node `frontier` has just run for the first time. Of the
// values that the first executions of the nodes frontier+1..last read, each is then in memory or
// recomputed, and so on for the inputs of what is recomputed. At a price per byte, the cheapest
// choice is a minimum cut: source -> in(v) costs a rerun of v, in(v) -> out(v) the price of v's
// bytes, out(u) -> in(v) is uncuttable for each input u of v, out(v) -> sink for each value that is
// read.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "memplan/remat/graph.h"
#include "memplan/remat/max_flow.h"

namespace trainscope::memplan {

struct FrontierChoice {
  double rerun_time = 0;         // of the values that are recomputed
  std::int64_t saved_bytes = 0;  // of those in memory, besides the ones that must be anyway
  double bound = 0;              // no choice has a lower rerun_time + price * saved_bytes
  std::vector<std::int32_t> saved = {};
  std::vector<std::int32_t> rerun = {};
};

class FrontierCut {
 public:
  struct Span {
    std::int32_t frontier = 0;
    std::int32_t last = 0;
  };

  // Values in `kept` are in memory at the frontier, whatever the price.
  FrontierCut(const RematGraph& graph, Span span, std::span<const std::int32_t> kept = {});

  // `price` in time per byte; infinity minimises the bytes alone.
  FrontierChoice choose(double price);

  // Bytes in memory at the frontier for sure: node `frontier`, its inputs and workspace, `kept`.
  std::int64_t sure_bytes() const { return sure_bytes_; }
  // Of the values read directly, without the sure ones.
  std::int64_t read_bytes() const { return read_bytes_; }

 private:
  enum class Role : std::uint8_t { kOutside, kInner, kRead };

  void find_members(Span span);
  void build_network();
  void set_capacities(double price);
  FrontierChoice read_choice() const;

  const RematGraph& graph_;
  std::vector<Role> role_;               // by node
  std::vector<bool> sure_;               // by node
  std::vector<std::int32_t> members_;    // ascending
  std::vector<std::int32_t> member_of_;  // by node: place in members_
  MaxFlow flow_;
  double time_scale_ = 1;  // flow units per unit of time
  std::int64_t sure_bytes_ = 0;
  std::int64_t read_bytes_ = 0;
};

// Whether what may lie between two choices is worth a look, of which the first one saves more.
using WorthLooking = std::function<bool(const FrontierChoice&, const FrontierChoice&)>;

// Every choice that is the cheapest at some price, from saving all that is read to saving least;
// but not those between two that `worth` does not want.
[[nodiscard]] std::vector<FrontierChoice> all_choices(FrontierCut& cut, const WorthLooking& worth);

}  // namespace trainscope::memplan
