// A text of functions by recursive descent: nothing in it nests, so that no text is too deep.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/functions/function_text.h"
#include "engine/functions/literals.h"
#include "engine/functions/tokens.h"

namespace trainscope {
namespace {

constexpr int kNewestOpset = 17;  // the form of the ops that rows have

class Parser {
 public:
  Parser(std::string_view text, std::string_view name, int first_line)
      : text_(text), name_(printable(name)), cursor_(tokens_of(text, name_, first_line), name_) {}

  std::vector<FunctionText> run() {
    std::vector<FunctionText> functions;
    require(!cursor_.at_end(), ErrorCode::kBadInput, "{} holds no function", name_);
    while (!cursor_.at_end()) functions.push_back(function());
    return functions;
  }

 private:
  FunctionText function() {
    FunctionText function;
    const std::size_t first_begin = cursor_.peek().begin;
    function.where = fmt::format("{}:{}", name_, cursor_.line());
    if (cursor_.peek().is("<")) header(function);
    function.name = cursor_.name("the name of a function");
    if (cursor_.peek().is("<")) declarations(function);
    function.inputs_line = cursor_.line();
    function.inputs_at = cursor_.peek().begin - first_begin;
    function.inputs = names("(", ")");
    cursor_.sign("=>");
    function.outputs = names("(", ")");
    for (const std::string& input : function.inputs) make(input, cursor_.line());
    cursor_.sign("{");
    while (!cursor_.peek().is("}")) function.nodes.push_back(node(function));
    const Token last = cursor_.sign("}");
    for (const std::string& output : function.outputs) {
      require(output == kNothing || made_.contains(output), ErrorCode::kBadInput,
              "{}:{}: the result '{}' is not made", name_, last.line, printable(output));
    }
    made_.clear();
    function.text = std::string(text_.substr(first_begin, last.end - first_begin));
    return function;
  }

  // <domain: "com.example", since: 13, opset_import: ["" : 17]>
  void header(FunctionText& function) {
    cursor_.sign("<");
    do {
      const std::string key = cursor_.name("a key");
      cursor_.sign(":");
      if (key == "domain") {
        function.domain = cursor_.text("the name of a domain");
        if (function.domain == "ai.onnx") function.domain.clear();
      } else if (key == "since") {
        function.since = static_cast<int>(cursor_.integer("a version of the domain", 1, 1 << 20));
      } else if (key == "opset_import") {
        opset_import();
      } else {
        cursor_.fail(fmt::format("there is no key '{}': they are domain, since and opset_import",
                                 printable(key)));
      }
    } while (cursor_.skip(","));
    cursor_.sign(">");
  }

  void opset_import() {
    cursor_.sign("[");
    do {
      const std::string domain = cursor_.text("the name of a domain");
      cursor_.sign(":");
      const std::int64_t version = cursor_.integer("a version", 1, 1 << 20);
      if ((domain.empty() || domain == "ai.onnx") && version != kNewestOpset) {
        cursor_.fail(fmt::format("functions are written with ONNX's ops of opset {}, not of {}",
                                 kNewestOpset, version));
      }
    } while (cursor_.skip(","));
    cursor_.sign("]");
  }

  // <alpha: float = 1.0, axis>
  void declarations(FunctionText& function) {
    cursor_.sign("<");
    do {
      FunctionText::Declared declared{.name = cursor_.name("the name of an attribute")};
      const bool twice = std::ranges::any_of(
          function.attributes, [&](const auto& each) { return each.name == declared.name; });
      if (twice) cursor_.fail(fmt::format("attribute '{}' is given twice", declared.name));
      const std::string type = cursor_.skip(":") ? cursor_.name("a type") : "";
      if (cursor_.skip("=")) declared.absent = literal(cursor_, type);
      function.attributes.push_back(std::move(declared));
    } while (cursor_.skip(","));
    cursor_.sign(">");
  }

  // y, z = com.example.Op <axis = 1> (x, "", w)
  FunctionNode node(const FunctionText& function) {
    FunctionNode node{.line = cursor_.peek().line};
    do {
      node.outputs.push_back(value_name());
    } while (cursor_.skip(","));
    cursor_.sign("=");
    const std::string op = cursor_.name("the name of an op");
    const std::size_t dot = op.rfind('.');
    node.op = dot == std::string::npos ? op : op.substr(dot + 1);
    node.domain = dot == std::string::npos ? "" : op.substr(0, dot);
    if (node.domain == "ai.onnx") node.domain.clear();
    if (cursor_.peek().is("<")) attributes(function, node);
    node.inputs = names("(", ")");
    if (cursor_.peek().is("<")) attributes(function, node);
    cursor_.skip(";");
    for (const std::string& input : node.inputs) {
      require(input.empty() || made_.contains(input), ErrorCode::kBadInput,
              "{}:{}: '{}' is read before anything makes it", name_, node.line, printable(input));
    }
    for (const std::string& output : node.outputs) make(output, node.line);
    return node;
  }

  void attributes(const FunctionText& function, FunctionNode& node) {
    cursor_.sign("<");
    do {
      FunctionAttribute attribute{.name = cursor_.name("the name of an attribute")};
      const std::string type = cursor_.skip(":") ? cursor_.name("a type") : "";
      cursor_.sign("=");
      if (cursor_.skip("@")) {
        attribute.reference = cursor_.name("an attribute of the function");
        const bool declared = std::ranges::any_of(
            function.attributes,
            [&](const FunctionText::Declared& each) { return each.name == attribute.reference; });
        if (!declared) {
          cursor_.fail(fmt::format("the function declares no attribute '{}'",
                                   printable(attribute.reference)));
        }
      } else {
        attribute.value = literal(cursor_, type);
      }
      node.attributes.push_back(std::move(attribute));
    } while (cursor_.skip(","));
    cursor_.sign(">");
  }

  // A name, or "" for nothing.
  std::string value_name() {
    if (cursor_.peek().kind == TokenKind::kText && cursor_.peek().text.empty()) {
      cursor_.take();
      return {};
    }
    return cursor_.name("the name of a value");
  }

  std::vector<std::string> names(std::string_view open, std::string_view close) {
    std::vector<std::string> list;
    cursor_.sign(open);
    if (cursor_.skip(close)) return list;
    do {
      list.push_back(value_name());
    } while (cursor_.skip(","));
    cursor_.sign(close);
    return list;
  }

  void make(const std::string& name, int line) {
    if (name.empty()) return;
    require(name != kNothing, ErrorCode::kBadInput,
            "{}:{}: '{}' stands for no result; it cannot be made", name_, line, kNothing);
    require(made_.insert(name).second, ErrorCode::kBadInput, "{}:{}: '{}' is made twice", name_,
            line, printable(name));
  }

  std::string_view text_;
  std::string name_;
  Cursor cursor_;
  std::set<std::string> made_;  // names of the function that is read
};

}  // namespace

std::vector<FunctionText> parse_functions(std::string_view text, std::string_view name,
                                          int first_line) {
  return Parser(text, name, first_line).run();
}

}  // namespace trainscope
