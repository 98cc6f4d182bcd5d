// Where a node or value comes from: the ties between kernel, node, stage and ONNX node.
#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace trainscope {

// Names of ONNX nodes. Copies share one list until one of them adds to it: most nodes that passes
// make have the sources of another, and each stage's graph those of the one before.
class SourceNames {
 public:
  SourceNames() = default;
  SourceNames(std::initializer_list<std::string> names)
      : SourceNames(std::vector<std::string>(names)) {}
  explicit SourceNames(std::vector<std::string> names) {
    if (!names.empty()) names_ = std::make_shared<std::vector<std::string>>(std::move(names));
  }

  const std::vector<std::string>& list() const {
    static const std::vector<std::string> none;
    return names_ ? *names_ : none;
  }
  auto begin() const { return list().begin(); }
  auto end() const { return list().end(); }
  std::size_t size() const { return list().size(); }
  bool empty() const { return list().empty(); }
  void add(std::string name) {
    if (!names_ || names_.use_count() > 1) {
      names_ = std::make_shared<std::vector<std::string>>(list());
    }
    names_->push_back(std::move(name));
  }
  bool operator==(const SourceNames& other) const { return list() == other.list(); }

 private:
  std::shared_ptr<std::vector<std::string>> names_;  // null: none
};

// Provenance::pass of what is computed a second time, offloaded or fetched.
inline constexpr const char* kRematerializedBy = "recompute";

struct Provenance {
  // Names of the ONNX nodes it stems from, in model order. The first is its primary source: what is
  // counted by ONNX node (time, bytes) is counted there, once.
  SourceNames sources;
  std::string pass;  // the pass that made it ("import" for the model's own)
};

}  // namespace trainscope
