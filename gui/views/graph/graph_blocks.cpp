// Scopes first; forward nodes without one get that of their neighbours, gradients that of the node
// that they are of, updates that of the gradient that they read.
#include "gui/views/graph/graph_blocks.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace trainscope::gui {
namespace {

constexpr std::string_view kWholeModel = "model";
constexpr std::string_view kInputs = "inputs";
constexpr std::string_view kOutputs = "outputs";
constexpr std::string_view kUpdates = "update";
constexpr std::size_t kShortestPeriod = 4;
constexpr std::size_t kLongestPeriod = 200;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// "h.3", "layers.12": a level of a scope that counts.
bool is_numbered(std::string_view level) {
  const std::size_t dot = level.rfind('.');
  const std::string_view last = dot == std::string_view::npos ? level : level.substr(dot + 1);
  return !last.empty() && dot != std::string_view::npos && std::ranges::all_of(last, is_digit);
}

// Where ops repeat: the period that covers most of the forward nodes, and from where to where.
struct Repetition {
  std::size_t period = 0;
  std::size_t begin = 0;
  std::size_t end = 0;
};

Repetition find_repetition(const std::vector<std::string_view>& ops) {
  Repetition best;
  for (std::size_t period = kShortestPeriod; period <= kLongestPeriod && 2 * period <= ops.size();
       ++period) {
    std::size_t run = 0;
    for (std::size_t i = 0; i + period < ops.size(); ++i) {
      run = ops[i] == ops[i + period] ? run + 1 : 0;
      const std::size_t covered = run + period;
      if (run >= period && covered > best.end - best.begin) {
        best = {.period = period, .begin = i + 1 - run, .end = i + 1 + period};
      }
    }
  }
  return best;
}

class BlockFinder {
 public:
  BlockFinder(const GraphPicture& picture, BlockMemory& memory)
      : picture_(picture), memory_(memory), name_(picture.nodes.size()) {}

  Blocks find() {
    take_remembered();
    const bool scoped = name_forward_by_scope();
    if (!scoped) name_forward_by_repetition();
    fill_forward();
    name_others();
    for (std::size_t i = 0; i < name_.size(); ++i) memory_[picture_.nodes[i].serial] = name_[i];
    return numbered();
  }

 private:
  void take_remembered() {
    for (std::size_t i = 0; i < name_.size(); ++i) {
      const auto found = memory_.find(picture_.nodes[i].serial);
      if (found != memory_.end()) name_[i] = found->second;
    }
  }

  bool is_forward(std::size_t i) const { return picture_.nodes[i].column == Column::kForward; }

  // False where the names have no scopes.
  bool name_forward_by_scope() {
    std::size_t forward = 0;
    std::size_t scoped = 0;
    for (std::size_t i = 0; i < name_.size(); ++i) {
      if (!is_forward(i)) continue;
      ++forward;
      const std::string_view scope = block_scope(picture_.nodes[i].source);
      if (!scope.empty()) ++scoped;
      if (name_[i].empty()) name_[i] = scope;
    }
    return 2 * scoped >= forward;
  }

  void name_forward_by_repetition() {
    std::vector<std::string_view> ops;
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < name_.size(); ++i) {
      if (!is_forward(i)) continue;
      ops.push_back(picture_.nodes[i].op);
      places.push_back(i);
    }
    const Repetition repetition = find_repetition(ops);
    const bool repeats = 2 * (repetition.end - repetition.begin) >= ops.size() && !ops.empty();
    for (std::size_t k = 0; k < places.size(); ++k) {
      std::string& name = name_[places[k]];
      if (!name.empty()) continue;
      if (!repeats) {
        name = kWholeModel;
      } else if (k < repetition.begin) {
        name = "before";
      } else if (k >= repetition.end) {
        name = "after";
      } else {
        name = "block " + std::to_string((k - repetition.begin) / repetition.period);
      }
    }
  }

  // What is between the nodes of a block belongs to it; what comes before all of them, or after, to
  // a block of its own.
  void fill_forward() {
    std::size_t last = 0;
    for (std::size_t i = 0; i < name_.size(); ++i) {
      if (is_forward(i) && !name_[i].empty()) last = i;
    }
    for (std::size_t i = 0; i < name_.size(); ++i) {
      if (!is_forward(i) || !name_[i].empty()) continue;
      name_[i] = i > last ? std::string(kOutputs) : block_of_inputs(i, kInputs);
    }
  }

  std::string block_of_inputs(std::size_t i, std::string_view otherwise) const {
    for (const PictureEdge& edge : picture_.inputs_of(static_cast<std::uint32_t>(i))) {
      if (!name_[edge.from].empty()) return name_[edge.from];
    }
    return std::string(otherwise);
  }

  void name_others() {
    std::unordered_map<std::string_view, std::size_t> by_source;
    for (std::size_t i = 0; i < name_.size(); ++i) {
      if (is_forward(i)) by_source.emplace(picture_.nodes[i].source, i);
    }
    std::string last(kWholeModel);
    for (std::size_t i = 0; i < name_.size(); ++i) {
      if (is_forward(i)) continue;
      if (name_[i].empty()) name_[i] = block_of_gradient(i, by_source);
      if (name_[i].empty()) name_[i] = block_of_inputs(i, last);
      last = name_[i];
    }
  }

  std::string block_of_gradient(
      std::size_t i, const std::unordered_map<std::string_view, std::size_t>& by_source) const {
    const PictureNode& node = picture_.nodes[i];
    if (node.column == Column::kUpdate) return block_of_update(i);
    const auto remembered = memory_.find(node.backward_of);
    if (node.backward_of != 0 && remembered != memory_.end()) return remembered->second;
    const std::uint32_t place =
        node.repeats != kNoPlace ? node.repeats : picture_.find(node.backward_of);
    if (place != kNoPlace && !name_[place].empty()) return name_[place];
    const auto found = by_source.find(node.source);
    if (found != by_source.end() && !node.source.empty()) return name_[found->second];
    return std::string(block_scope(node.source));
  }

  // That of the gradients that it reads; those that read several blocks' are by themselves.
  std::string block_of_update(std::size_t i) const {
    std::string_view block;
    for (const PictureEdge& edge : picture_.inputs_of(static_cast<std::uint32_t>(i))) {
      const std::string& name = name_[edge.from];
      if (name.empty() || name == block) continue;
      if (!block.empty()) return std::string(kUpdates);
      block = name;
    }
    return std::string(block.empty() ? kUpdates : block);
  }

  Blocks numbered() const {
    Blocks blocks;
    std::unordered_map<std::string_view, std::uint32_t> number;
    blocks.of.resize(name_.size());
    for (const bool forward : {true, false}) {
      for (std::size_t i = 0; i < name_.size(); ++i) {
        if (is_forward(i) != forward) continue;
        const auto [entry, is_new] =
            number.try_emplace(name_[i], static_cast<std::uint32_t>(blocks.names.size()));
        if (is_new) blocks.names.push_back(name_[i]);
        blocks.of[i] = entry->second;
      }
    }
    return blocks;
  }

  const GraphPicture& picture_;
  BlockMemory& memory_;
  std::vector<std::string> name_;  // by place
};

}  // namespace

std::string_view block_scope(std::string_view name) {
  const std::size_t start = name.starts_with('/') ? 1 : 0;
  const std::size_t last = name.rfind('/');
  if (last == std::string_view::npos || last < start + 1) return {};
  const std::string_view scope = name.substr(start, last - start);
  std::size_t begin = 0;
  for (;;) {
    const std::size_t slash = scope.find('/', begin);
    const std::size_t end = slash == std::string_view::npos ? scope.size() : slash;
    if (is_numbered(scope.substr(begin, end - begin))) return scope.substr(0, end);
    if (slash == std::string_view::npos) break;
    begin = slash + 1;
  }
  return scope.substr(0, scope.find('/'));
}

Blocks blocks_of(const GraphPicture& picture, BlockMemory& memory) {
  return BlockFinder(picture, memory).find();
}

}  // namespace trainscope::gui
