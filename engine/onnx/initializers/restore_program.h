// Initializers of a file that PyTorch's present exporter wrote, as its program has them.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/onnx/initializers/model_edit.h"
#include "engine/onnx/initializers/program_calls.h"

namespace trainscope {

// "encoder.0" of "encoder.0.weight".
std::string module_of(const std::string& target);
// The indices of the rows of an embedding where only those that the graph reads are in the file.
inline std::string rows_name(const std::string& target) { return target + "/rows"; }
// The last part of the name of an initializer that holds the shape of a folded view: the shape that
// the parameter has in the module is not told.
inline constexpr std::string_view kShapeOfView = "/shape_of_view";
// That of the number that a folded sum added to a parameter, which is not told either.
inline constexpr std::string_view kOneOfSum = "/one_of_sum";
// "view" of the result "view_3".
std::string_view function_of(std::string_view result);

class ProgramRestorer {
 public:
  // `merged`: parameters of calls that the exporter merged with equal ones (HiddenCalls).
  ProgramRestorer(ModelEdit& edit, std::set<std::string> merged)
      : edit_(edit), calls_(edit.model().marks), merged_(std::move(merged)) {}
  // Edits the model; what is lost becomes faults.
  void run();

 private:
  // An initializer at an input of a node.
  struct Read {
    int node = 0;
    int slot = 0;
    std::string name;
    bool marked = false;  // a parameter or buffer of the program
  };
  using Inputs = std::vector<const ProgramInput*>;
  // A constant that stands for a result of the program: of a view, rows, a sum of a parameter.
  struct Folded {
    std::string result;
    Read read;
  };

  void lose_all(const ProgramCall& call);
  void restore_call(const ProgramCall& call);
  void restore_batch_norm(const ProgramCall& call, int node);
  bool set_apart(const ProgramInput& input, const Read& read);
  std::vector<Read> reads_of(const ProgramCall& call) const;
  bool restore_pairs(const ProgramCall& call, const Inputs& lost, const std::vector<Read>& reads);
  bool unfold(const ProgramCall& call, const ProgramInput& input, const Read& read);
  bool unfold_moved(std::string_view function, const ProgramInput& input, const Read& read);
  bool add_parameter(const ProgramInput& input, const Read& read, Tensor elements,
                     const std::string& how);
  void read_through(const ProgramInput& input, const Read& read, std::string_view op,
                    std::string_view shape_leaf = "/shape");
  std::optional<Tensor> unrepeated(const Tensor& folded, bool& uniform) const;
  bool is_batch(std::int64_t size) const;
  bool find_moved(const std::string& target);
  void restore_folded();
  void restore_folded(const ProgramCall& call);
  std::vector<Folded> folded_of(const ProgramCall& call) const;
  const ProgramInput* only_source(const std::string& constant) const;
  const ProgramInput* missing_of(const ProgramCall& call, const Folded& folded) const;
  bool is_moved(const std::string& constant) const;
  bool is_of_lookup(const std::string& constant) const;
  bool is_lookup(const ProgramInput& input, const std::string& constant) const;
  bool is_missing(const ProgramInput& input) const;
  bool restore_rows(const ProgramInput& input, const Read& read);
  bool is_of_one_number(const std::string& constant) const;
  bool restore_sum(const ProgramInput& input, const Read& read);
  void find_constants_of_parameters();
  bool is_place(const std::string& result) const;
  bool is_merged(const ProgramCall& call, const std::string& result) const;
  bool add_zero_bias(const ProgramCall& call, const ProgramInput& input);
  void set_apart_constants(const ProgramCall& call, const std::vector<Read>& foreign);
  bool is_fused_norm(const ProgramCall& call) const;
  void find_folded();
  std::string tied_to(const ProgramInput& input) const;
  bool find_twins(const std::string& target);
  void add_faults();
  void add_notes();

  ModelEdit& edit_;
  ProgramCalls calls_;
  std::set<std::string> merged_;
  std::vector<std::string> fused_;         // modules of batch norms
  std::set<std::string> fused_tensors_;    // theirs and those of the layers before them
  std::vector<std::string> unread_;        // parameters that no call reads, used or not
  std::vector<std::string> places_;        // results whose constants these may have become
  std::vector<std::string> unread_twins_;  // parameters whose calls were merged with others
  std::vector<std::string> twins_;         // these and those of the other calls
  // Parameters that were restored with something that the file does not tell: whose row is a
  // padding row, what is added to it, which axes its copies are along.
  std::vector<std::string> rows_;
  std::vector<std::string> sums_;
  std::vector<std::string> uniform_;
  std::vector<std::string> lost_;      // parameters
  std::vector<std::string> evidence_;  // what stands where they were
  bool evaluates_ = false;             // batch norms in their form for inference
  std::set<std::string> restored_;     // results whose constants are parameters again
  // By constant: the last parts of the names of the parameters that it stood for.
  std::map<std::string, std::set<std::string, std::less<>>> leaves_;
};

}  // namespace trainscope
