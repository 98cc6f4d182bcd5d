// Functions as text: an op, or its gradient, written with other ops, in the form that ONNX has for
// functions of a model (docs/plugins.md).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/ir/attributes.h"
#include "engine/ir/op_def.h"

namespace trainscope {

// An attribute of a node in a body: a value, or that of an attribute of the function.
struct FunctionAttribute {
  std::string name;
  std::optional<Attribute> value = {};  // none: `reference` says whose
  std::string reference = {};
};

struct FunctionNode {
  std::string domain = {};
  std::string op = {};
  std::vector<std::string> inputs = {};   // "": left out
  std::vector<std::string> outputs = {};  // "": not asked for
  std::vector<FunctionAttribute> attributes = {};
  int line = 0;  // from 1
};

// Invariants: every name is made once, before it is read; results are made, or kNothing.
struct FunctionText {
  std::string name;
  std::string domain;  // of what it belongs to, as its header says; empty: ONNX's
  int since = 1;       // for models that import this or a newer version of the domain
  struct Declared {
    std::string name;
    std::optional<Attribute> absent = {};  // what it is where the node has none; none: left out
  };
  std::vector<Declared> attributes;
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  std::vector<FunctionNode> nodes;
  std::string text;           // all of it, as it was written
  int inputs_line = 0;        // of the text that it stands in
  std::size_t inputs_at = 0;  // where in the text its inputs begin, "(x, y, dy)"
  std::string where;          // "grads.txt:3"
};

// Stands for a result that there is none of.
inline constexpr std::string_view kNothing = "_";

// What `text` holds, one or more functions. `name` is what messages call it: a file, a plugin.
// Throws kBadInput, "NAME:LINE: ...", for what breaks a rule of the form.
// `first_line` is the number of the text's first line there.
std::vector<FunctionText> parse_functions(std::string_view text, std::string_view name,
                                          int first_line = 1);

// The function as text with these values in place of what its attributes are when they are absent.
std::string text_with(const FunctionText& function, const Attributes& attributes);

// Throws kBadInput, "NAME:LINE: ...", for a node whose op there is not, or that has more or fewer
// inputs or outputs or other attributes than its op.
void check_ops(const FunctionText& function, const OpTable& ops);

}  // namespace trainscope
