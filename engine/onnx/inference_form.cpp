// Nodes that behave differently in training, in the form they have in inference.
#include "engine/onnx/inference_form.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/onnx/composites/composites.h"
#include "engine/onnx/validate.h"

namespace trainscope {
namespace {

constexpr int kModeAsInput = 12;      // from here Dropout has an input training_mode
constexpr int kModeAsAttribute = 14;  // from here BatchNormalization has an attribute of that name

class InferenceForm {
 public:
  InferenceForm(Nodes& nodes, const std::vector<std::string>& results, int opset)
      : nodes_(nodes), results_(results.begin(), results.end()), opset_(opset), used_(results_) {
    for (const pb::NodeProto& node : nodes) {
      used_.insert(node.input().begin(), node.input().end());
      for (std::string_view name : captured_names(node)) {
        used_.emplace(name);
        results_.emplace(name);
      }
    }
  }

  void run() {
    for (pb::NodeProto& node : nodes_) {
      for (std::string& input : *node.mutable_input()) {
        auto found = instead_.find(input);
        if (found != instead_.end()) input = found->second;
      }
      bool plain = plain_domain(node.domain()).empty();
      if (plain && node.op_type() == "Dropout") {
        dropout(std::move(node));
      } else if (plain && node.op_type() == "BatchNormalization") {
        batch_norm(std::move(node));
      } else if (node.domain() == kMicrosoftDomain && node.op_type() == "BatchNormInternal") {
        batch_norm(as_plain_norm(std::move(node)));
      } else {
        done_.Add(std::move(node));
      }
    }
    nodes_.Swap(&done_);
  }

 private:
  bool is_used(const pb::NodeProto& node, int output) const {
    return output < node.output_size() && !node.output(output).empty() &&
           used_.contains(node.output(output));
  }

  void add_identity(const pb::NodeProto& like, const std::string& from, const std::string& to) {
    pb::NodeProto& node = *done_.Add();
    node.set_op_type("Identity");
    if (!like.name().empty()) node.set_name(like.name() + "/identity");
    node.add_input(from);
    node.add_output(to);
  }

  static void clear_training_mode(pb::NodeProto& node) {
    for (pb::AttributeProto& a : *node.mutable_attribute()) {
      if (a.name() == "training_mode") a.set_i(0);
    }
  }

  // ONNX's op, of which this one is the form in training.
  static pb::NodeProto as_plain_norm(pb::NodeProto node) {
    node.set_op_type("BatchNormalization");
    node.clear_domain();
    pb::NodeProto plain = node;
    plain.clear_attribute();
    for (const pb::AttributeProto& a : node.attribute()) {
      if (a.name() != "training_mode") *plain.add_attribute() = a;
    }
    return plain;
  }

  void dropout(pb::NodeProto node) {
    if (is_used(node, 1)) {  // the mask, all ones in inference: the node stays to make it
      if (opset_ >= kModeAsInput && node.input_size() > 2) {
        node.mutable_input()->DeleteSubrange(2, node.input_size() - 2);
      }
      done_.Add(std::move(node));
      return;
    }
    const std::string& from = node.input(0);
    if (results_.contains(node.output(0))) add_identity(node, from, node.output(0));
    instead_[node.output(0)] = from;
  }

  void batch_norm(pb::NodeProto node) {
    // The next running statistics are the present ones.
    std::vector<std::pair<std::string, std::string>> unchanged;
    for (int i = 1; i < node.output_size(); ++i) {
      if (!is_used(node, i)) continue;
      require(i <= 2, ErrorCode::kBadInput,
              "node '{}' (BatchNormalization): output {} is read, but inference does not have it",
              printable(node.name()), i);
      unchanged.emplace_back(node.input(i + 2), node.output(i));
    }
    node.mutable_output()->DeleteSubrange(1, node.output_size() - 1);
    if (opset_ >= kModeAsAttribute) clear_training_mode(node);
    for (const auto& [from, to] : unchanged) add_identity(node, from, to);
    done_.Add(std::move(node));
  }

  Nodes& nodes_;
  std::unordered_set<std::string> results_;  // and what bodies read: under their own names
  int opset_;
  std::unordered_set<std::string> used_;
  std::unordered_map<std::string, std::string> instead_;  // removed value -> what stands for it
  Nodes done_;
};

}  // namespace

void use_inference_form(Nodes& nodes, const std::vector<std::string>& results, int opset) {
  InferenceForm(nodes, results, opset).run();
}

}  // namespace trainscope
