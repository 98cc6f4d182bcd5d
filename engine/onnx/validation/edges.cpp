// Edges between nodes: single assignment, no dangling reads, order, cycles.
#include <fmt/format.h>

#include <unordered_map>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/onnx/validate.h"

namespace trainscope {
namespace {

constexpr int kGiven = -1;

class Edges {
 public:
  Edges(const Nodes& nodes, const std::vector<std::string_view>& given) : nodes_(nodes) {
    for (std::string_view name : given) {
      bool fresh = producer_.emplace(name, kGiven).second;
      if (!fresh) fail(ErrorCode::kBadInput, "'{}' is given twice", printable(name));
    }
    for (int i = 0; i < nodes.size(); ++i) {
      for (const std::string& output : nodes[i].output()) add_output(output, i);
    }
  }

  void check_reads() const {
    for (int i = 0; i < nodes_.size(); ++i) {
      for (const std::string& input : nodes_[i].input()) {
        if (!input.empty()) check_read(input, i);
      }
      for (std::string_view name : captured_names(nodes_[i])) check_read(std::string(name), i);
    }
  }

  void check_result(std::string_view name) const {
    require(producer_.contains(name), ErrorCode::kBadInput, "output '{}': nothing produces it",
            printable(name));
  }

 private:
  std::string label(int i) const { return node_label(nodes_[i], i); }

  void add_output(const std::string& output, int i) {
    if (output.empty()) return;
    auto [place, fresh] = producer_.emplace(output, i);
    if (fresh) return;
    fail(ErrorCode::kBadInput, "{}: produces '{}', which {} already", label(i), printable(output),
         place->second == kGiven ? "is an input or initializer"
                                 : label(place->second) + " produces");
  }

  // One of these per edge: texts are made only when something is wrong.
  void check_read(const std::string& input, int reader) const {
    auto found = producer_.find(input);
    if (found == producer_.end()) {
      fail(ErrorCode::kBadInput, "{}: reads '{}', which nothing produces", label(reader),
           printable(input));
    }
    if (found->second < reader) return;
    if (found->second == reader) {
      fail(ErrorCode::kBadInput, "{}: reads its own output '{}'", label(reader), printable(input));
    }
    refuse_late(input, reader, found->second);
  }

  // Nodes must be sorted; when they cannot be, the cycle is the news.
  [[noreturn]] void refuse_late(const std::string& input, int reader, int producer) const {
    int on_cycle = node_on_cycle();
    if (on_cycle >= 0) {
      fail(ErrorCode::kBadInput, "{}: is part of a cycle", label(on_cycle));
    }
    fail(ErrorCode::kBadInput, "{}: reads '{}' before {} produces it: nodes must be sorted",
         label(reader), printable(input), label(producer));
  }

  // Calls f(producer) for each node whose output node i reads.
  template <typename F>
  void for_producers(int i, F f) const {
    for (const std::string& input : nodes_[i].input()) {
      auto found = producer_.find(input);
      if (!input.empty() && found != producer_.end() && found->second != kGiven) f(found->second);
    }
    for (std::string_view name : captured_names(nodes_[i])) {
      auto found = producer_.find(name);
      if (found != producer_.end() && found->second != kGiven) f(found->second);
    }
  }

  // A node on a cycle, or -1: what Kahn's algorithm leaves over, walked back until it must repeat.
  int node_on_cycle() const {
    auto count = static_cast<std::size_t>(nodes_.size());
    std::vector<int> waiting_for(count, 0);
    std::vector<std::vector<int>> readers(count);
    for (int i = 0; i < nodes_.size(); ++i) {
      for_producers(i, [&](int p) {
        readers[static_cast<std::size_t>(p)].push_back(i);
        ++waiting_for[static_cast<std::size_t>(i)];
      });
    }
    std::vector<int> ready;
    for (int i = 0; i < nodes_.size(); ++i) {
      if (waiting_for[static_cast<std::size_t>(i)] == 0) ready.push_back(i);
    }
    while (!ready.empty()) {
      int done = ready.back();
      ready.pop_back();
      for (int reader : readers[static_cast<std::size_t>(done)]) {
        if (--waiting_for[static_cast<std::size_t>(reader)] == 0) ready.push_back(reader);
      }
    }
    int at = -1;
    for (int i = 0; i < nodes_.size() && at < 0; ++i) {
      if (waiting_for[static_cast<std::size_t>(i)] > 0) at = i;
    }
    for (int step = 0; at >= 0 && step < nodes_.size(); ++step) {
      int before = at;
      for_producers(at, [&](int p) {
        if (waiting_for[static_cast<std::size_t>(p)] > 0) before = p;
      });
      at = before;
    }
    return at;
  }

  const Nodes& nodes_;
  std::unordered_map<std::string_view, int> producer_;
};

}  // namespace

void check_edges(const Nodes& nodes, const std::vector<std::string_view>& given,
                 const std::vector<std::string_view>& results) {
  Edges edges(nodes, given);
  edges.check_reads();
  for (std::string_view name : results) edges.check_result(name);
}

}  // namespace trainscope
