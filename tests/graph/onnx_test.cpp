#include <gtest/gtest.h>

#include "core/expect_error.h"
#include "graph/onnx_bytes.h"
#include "xpuruntime/graph/model.h"

namespace xpuruntime {
namespace {

using namespace testing;

Model parse(const Proto& model) { return parse_onnx(model.bytes()); }

void expect_corrupt(const std::string& part, const Proto& model) {
  expect_error(ErrorCode::corrupt_data, part, [&] { (void)parse(model); });
}

void expect_unsupported(const std::string& part, const Proto& model) {
  expect_error(ErrorCode::not_supported, part, [&] { (void)parse(model); });
}

/// y = Relu(x + w)
GraphParts small_parts() {
  return {{node("Add", {"x", "w"}, {"sum"}, {}, "add"), node("Relu", {"sum"}, {"y"})},
          {floats("w", {1.5f, -2.0f})},
          {value("x")},
          {value("y")},
          {value("sum")}};
}

/// A model whose one node has these attributes.
Proto with_attributes(const std::vector<Proto>& attributes) {
  return model({{node("Op", {"x"}, {"y"}, attributes, "n")}, {}, {value("x")}, {value("y")}});
}

template <class Value>
Value attribute_of(const Proto& written) {
  return std::get<Value>(parse(with_attributes({written})).graph.nodes[0].attributes.at("a"));
}

std::vector<std::string> ops_of(const ModelGraph& graph) {
  std::vector<std::string> ops;
  for (const ModelNode& node : graph.nodes) ops.push_back(node.op);
  return ops;
}

TEST(Onnx, ReadsASmallModel) {
  const Model model = parse(testing::model(small_parts()).message(8, opset("com.microsoft", 1)));
  EXPECT_EQ(model.path, "");
  EXPECT_EQ(model.producer, "tests 1.0");
  EXPECT_EQ(model.ir_version, 8);
  EXPECT_EQ(model.opsets.at(""), 17);
  EXPECT_EQ(model.opsets.at("com.microsoft"), 1);
  EXPECT_EQ(model.graph.name, "main");
  ASSERT_EQ(model.graph.nodes.size(), 2u);
  EXPECT_EQ(model.graph.nodes[0].name, "add");
  EXPECT_EQ(model.graph.nodes[0].op, "Add");
  EXPECT_EQ(model.graph.nodes[0].inputs, (std::vector<std::string>{"x", "w"}));
  EXPECT_EQ(model.graph.nodes[0].outputs, (std::vector<std::string>{"sum"}));
  const Tensor& w = model.graph.constants.at("w");
  EXPECT_TRUE(w.read_only());
  EXPECT_NE(w.version(), 0u);
  EXPECT_EQ(w.as<const float>()[1], -2.0f);
  ASSERT_EQ(model.graph.inputs.size(), 1u);
  EXPECT_EQ(model.graph.inputs[0].type, "float");
  EXPECT_EQ(model.graph.inputs[0].dtype, DataType::float32);
  EXPECT_EQ(model.graph.inputs[0].shape, (std::vector<ModelExtent>{{2, ""}}));
  EXPECT_EQ(model.graph.outputs[0].name, "y");
  EXPECT_EQ(model.graph.values.at("sum").dtype, DataType::float32);
}

TEST(Onnx, ReadsValuesOfAllTypes) {
  const auto of_type = [](std::string_view name, const Proto& type) { return Proto().text(1, name).message(2, type); };
  const Proto dims = Proto()
                         .message(1, Proto().text(2, "batch"))
                         .message(1, Proto())
                         .message(1, Proto().number(1, 0))
                         .message(1, Proto().text(3, "denotation"));
  const Proto tensor_type = Proto().message(1, Proto().number(1, 10).message(2, dims));
  const Model model = parse(testing::model(
      {{},
       {},
       {of_type("a", tensor_type), of_type("b", Proto().message(4, Proto())), value("c", 8, {}), value("d", 99, {}),
        Proto().text(1, "e"), of_type("f", Proto().message(1, Proto().number(1, 1)))},
       {}}));
  const auto& inputs = model.graph.inputs;
  EXPECT_EQ(inputs[0].dtype, DataType::float16);
  EXPECT_EQ(inputs[0].shape, (std::vector<ModelExtent>{{-1, "batch"}, {-1, ""}, {0, ""}, {-1, ""}}));
  EXPECT_EQ(inputs[1].type, "sequence");
  EXPECT_EQ(inputs[2].type, "string");
  EXPECT_FALSE(inputs[2].dtype);
  EXPECT_EQ(inputs[2].shape, std::vector<ModelExtent>());
  EXPECT_EQ(inputs[3].type, "type 99");
  EXPECT_EQ(inputs[4].type, "");
  EXPECT_EQ(inputs[5].type, "float");
  EXPECT_FALSE(inputs[5].shape);
}

TEST(Onnx, TakesMinusOneAndQuestionMarksForUnknown) {
  const Model read = parse(model({{}, {}, {value("x", 1, {-1, 2})}, {}}));
  EXPECT_EQ(read.graph.inputs[0].shape, (std::vector<ModelExtent>{{-1, ""}, {2, ""}}));
}

TEST(Onnx, RefusesDimsThatCannotBe) {
  expect_corrupt("a dim of -2", model({{}, {}, {value("x", 1, {2, -2})}, {}}));
  expect_corrupt("63 bits", model({{}, {}, {value("x", 1, {std::int64_t{1} << 40, 0, std::int64_t{1} << 40})}, {}}));
}

TEST(Onnx, ReadsAttributesOfAllKinds) {
  EXPECT_EQ(attribute_of<float>(attribute("a", 1).real(2, 0.5f)), 0.5f);
  EXPECT_EQ(attribute_of<std::int64_t>(attribute("a", 2).number(3, -7)), -7);
  EXPECT_EQ(attribute_of<std::string>(attribute("a", 3).text(4, "same")), "same");
  EXPECT_EQ(attribute_of<Tensor>(attribute("a", 4).message(5, floats("", {3}))).as<const float>()[0], 3);
  EXPECT_EQ(attribute_of<std::vector<float>>(attribute("a", 6).real(7, 1).real(7, 2)), (std::vector<float>{1, 2}));
  EXPECT_EQ(attribute_of<std::vector<std::int64_t>>(attribute("a", 7).packed(8, {1, -2}).number(8, 3)),
            (std::vector<std::int64_t>{1, -2, 3}));
  EXPECT_EQ(attribute_of<std::vector<std::string>>(attribute("a", 8).text(9, "p").text(9, "")),
            (std::vector<std::string>{"p", ""}));
  EXPECT_EQ(attribute_of<std::shared_ptr<const ModelGraph>>(body("a", graph({})))->name, "main");
  (void)attribute_of<std::monostate>(attribute("a", 9).message(10, floats("", {3})));
  (void)attribute_of<std::monostate>(attribute("a", 11).message(22, Proto()));
  (void)attribute_of<std::monostate>(attribute("a", 13).message(14, Proto()));
}

TEST(Onnx, ReadsAttributesThatLeaveOutTheirTypeOrAnEmptyValue) {
  EXPECT_EQ(attribute_of<std::int64_t>(Proto().text(1, "a").number(3, 4)), 4);
  EXPECT_EQ(attribute_of<float>(attribute("a", 1)), 0.0f);
  EXPECT_EQ(attribute_of<std::int64_t>(attribute("a", 2)), 0);
  EXPECT_EQ(attribute_of<std::string>(attribute("a", 3)), "");
  EXPECT_TRUE(attribute_of<std::vector<std::int64_t>>(attribute("a", 7)).empty());
}

TEST(Onnx, RefusesAttributesThatDoNotFit) {
  const auto refuses = [](const std::string& part, const Proto& written) {
    expect_corrupt(part, with_attributes({written}));
  };
  refuses("attribute 'a' of node 'n' (Op) has a value of another type", attribute("a", 1).number(3, 4));
  refuses("has a value of another type", Proto().text(1, "a").number(3, 4).real(2, 1));
  refuses("has no value", Proto().text(1, "a"));
  refuses("has no value", attribute("a", 4));
  refuses("has no value", attribute("a", 5));
  refuses("has type 15", attribute("a", 15));
  refuses("has type -1", attribute("a", -1));
  refuses("attribute without a name, of node 'n' (Op)", Proto().number(20, 2).number(3, 1));
  refuses("refers to one of a function", attribute("a", 2).text(21, "outer"));
  refuses("field 3 is 4 bytes instead of a varint", attribute("a", 2).real(3, 1));
  expect_corrupt("attribute 'a' of node 'n' (Op) is there twice",
                 with_attributes({attribute("a", 2).number(3, 1), attribute("a", 2).number(3, 1)}));
  const Model unread = parse(with_attributes({attribute("a", 4).message(5, tensor("", 8, {1}))}));  // of string
  EXPECT_TRUE(std::holds_alternative<std::monostate>(unread.graph.nodes.at(0).attributes.at("a")));
}

TEST(Onnx, TakesOpsets6To28) {
  for (const std::int64_t version : {6, 28}) {
    EXPECT_EQ(parse(model(graph(small_parts()), version)).opsets.at(""), version);
  }
  for (const std::int64_t version : {0, 5, 29}) {
    expect_unsupported("uses opset " + std::to_string(version) + "; opsets 6 to 28 are accepted",
                       model(graph(small_parts()), version));
  }
}

TEST(Onnx, KnowsItsOwnDomainByBothNames) {
  GraphParts parts = small_parts();
  parts.nodes[1].text(7, "ai.onnx");
  const Proto written = Proto().number(1, 8).message(7, graph(parts)).message(8, opset("ai.onnx", 13));
  const Model model = parse(Proto(written).message(8, opset("", 13)));
  EXPECT_EQ(model.opsets, (decltype(model.opsets){{"", 13}}));
  EXPECT_EQ(model.graph.nodes[1].domain, "");
  EXPECT_EQ(model.producer, "");
  expect_corrupt("two opsets of the domain ''", Proto(written).message(8, opset("", 14)));
}

TEST(Onnx, RefusesWhatIsNoModel) {
  expect_error(ErrorCode::corrupt_data, "[parse_onnx] ONNX model: byte 0: no ONNX model", [] { (void)parse_onnx({}); });
  expect_corrupt("it has no ir_version", Proto().message(7, graph({})).message(8, opset("", 17)));
  expect_corrupt("does not say which opset", Proto().number(1, 8).message(7, graph({})));
  expect_unsupported("only of 'ai.onnx.ml'",
                     Proto().number(1, 8).message(7, graph({})).message(8, opset("ai.onnx.ml", 3)));
  expect_corrupt("has no graph", Proto().number(1, 8).message(8, opset("", 17)));
  expect_corrupt("a second graph", model(graph({})).message(7, graph({})));
  expect_unsupported("a sparse initializer", model(graph({}).message(15, Proto())));
}

/// FunctionProto: `name` of the domain "own".
Proto function(std::string_view name, Names inputs, Names outputs, const std::vector<Proto>& nodes) {
  Proto out = Proto().text(1, name).text(10, "own");
  for (const auto input : inputs) out.text(4, input);
  for (const auto output : outputs) out.text(5, output);
  for (const Proto& node : nodes) out.message(7, node);
  return out;
}

Proto call(std::string_view name, Names inputs, Names outputs, const std::vector<Proto>& attributes = {}) {
  return node(name, inputs, outputs, attributes).text(7, "own");
}

Proto calling(const Proto& called, const std::vector<Proto>& functions) {
  Proto out = model({.nodes = {called}, .inputs = {value("x")}, .outputs = {value("y")}});
  for (const Proto& one : functions) out.message(25, one);
  return out;
}

TEST(Onnx, PutsFunctionsInThePlaceOfTheirCalls) {
  const Proto alpha = attribute("alpha", 1).text(21, "slope");
  const Proto leaky = function("leaky", {"a", "b"}, {"c", "a"},
                               {node("LeakyRelu", {"a"}, {"t"}, {alpha}, "act"), node("Sum", {"t", "b"}, {"c"})});
  const Proto twice = function(
      "twice", {"a"}, {"c"},
      {call("leaky", {"a", ""}, {"t"}, {attribute("slope", 1).real(2, 0.5f)}), call("leaky", {"t", "a"}, {"c", "u"})});
  const Model read = parse(calling(call("twice", {"x"}, {"y"}), {leaky, twice}));
  ASSERT_EQ(read.graph.nodes.size(), 5u);
  const auto& nodes = read.graph.nodes;
  EXPECT_EQ(nodes[0].name, "leaky#2/act");
  EXPECT_EQ(nodes[0].inputs, (std::vector<std::string>{"x"}));
  EXPECT_EQ(std::get<float>(nodes[0].attributes.at("alpha")), 0.5f);
  EXPECT_EQ(nodes[1].inputs, (std::vector<std::string>{"leaky#2/t", ""}));
  EXPECT_EQ(nodes[1].outputs, (std::vector<std::string>{"twice#1/t"}));
  EXPECT_EQ(nodes[2].inputs, (std::vector<std::string>{"twice#1/t"}));
  EXPECT_TRUE(nodes[2].attributes.empty()) << "the call leaves it out";
  EXPECT_EQ(nodes[3].inputs, (std::vector<std::string>{"leaky#3/t", "x"}));
  EXPECT_EQ(nodes[3].outputs, (std::vector<std::string>{"y"}));
  EXPECT_EQ(nodes[4].op, "Identity") << "an output that is an input";
  EXPECT_EQ(nodes[4].inputs, (std::vector<std::string>{"twice#1/t"}));
}

TEST(Onnx, RefusesFunctionsThatCannotBe) {
  const Proto same = function("same", {"a"}, {"c"}, {node("Relu", {"a"}, {"c"})});
  const Proto called = call("same", {"x"}, {"y"});
  EXPECT_EQ(parse(calling(called, {same})).graph.nodes.at(0).op, "Relu");
  expect_corrupt("a function without a name", calling(called, {Proto()}));
  expect_corrupt("function 'own::same' is there twice", calling(called, {same, same}));
  expect_corrupt("has inputs of one name", calling(called, {function("same", {"a", "a"}, {"c"}, {})}));
  expect_corrupt("has outputs without a name", calling(called, {function("same", {"a"}, {""}, {})}));
  expect_corrupt("has more inputs or outputs", calling(call("same", {"x", "x"}, {"y"}), {same}));
  expect_corrupt("'own::same' calls itself",
                 calling(called, {function("same", {"a"}, {"c"}, {call("same", {"a"}, {"c"})})}));
  expect_corrupt("which no node, input or constant makes",
                 calling(called, {function("same", {"a"}, {"c"}, {node("Relu", {"x"}, {"c"})})}));
  expect_corrupt("'y' is made by no node", calling(called, {function("same", {"a"}, {"c"}, {})}));
  expect_unsupported("is of opset 16 and the model of 17", calling(called, {Proto(same).message(9, opset("", 16))}));
  expect_corrupt("by its overload", calling(node("same", {"x"}, {"y"}).text(7, "own").text(8, "other"), {same}));
  const Proto given = attribute("body", 5).message(6, graph({}));
  expect_unsupported("a graph, which is not implemented", calling(call("same", {"x"}, {"y"}, {given}), {same}));
}

TEST(Onnx, BoundsWhatFunctionsBecome) {
  std::vector<Proto> doubling;
  std::vector<std::string> names;
  for (int i = 0; i <= 60; ++i) names.push_back("f" + std::to_string(i));
  for (int i = 0; i < 60; ++i) {
    doubling.push_back(function(names[static_cast<std::size_t>(i)], {"a"}, {"c"},
                                {call(names[static_cast<std::size_t>(i) + 1], {"a"}, {"t"}),
                                 call(names[static_cast<std::size_t>(i) + 1], {"t"}, {"c"})}));
  }
  doubling.push_back(function(names.back(), {"a"}, {"c"}, {node("Relu", {"a"}, {"c"})}));
  expect_unsupported("become more than 256 MiB", calling(call("f0", {"x"}, {"y"}), doubling));
}

TEST(Onnx, RefusesBytesThatAreNoProtobuf) {
  const auto refuses = [](const std::string& part, std::string_view bytes) {
    expect_corrupt(part, Proto().number(1, 8).raw(bytes));
  };
  refuses("byte 2: a protobuf group", "\x3b");
  refuses("byte 2: wire type 7", "\x3f");
  refuses("byte 2: a field number that protobuf does not have", std::string_view("\0\0", 2));
  refuses("a field number that protobuf does not have", "\xf8\xff\xff\xff\xff\x01\x01");
  refuses("byte 3: a varint over 64 bits", "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02");
  refuses("a varint over 64 bits", "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
  refuses("byte 4: a value of 5 bytes where its message has 1 left", "\x12\x05x");
  refuses("a value of 4 bytes where its message has 0 left", "\x0d");
  refuses("field 7 is a varint instead of a text, message", "\x38\x01");
  refuses("field 2 is 8 bytes instead of", "\x11xxxxxxxx");
}

TEST(Onnx, PassesOverFieldsThatItDoesNotUse) {
  GraphParts parts = small_parts();
  parts.nodes[0].text(6, "doc").message(9, Proto().text(1, "key"));
  const Proto annotated = graph(parts).message(14, Proto().text(1, "sum")).text(10, "doc").real64(1000, 1);
  EXPECT_EQ(parse(model(annotated).message(14, Proto()).message(20, Proto())).graph.nodes.size(), 2u);
}

TEST(Onnx, TakesInputsThatHaveAConstantAsConstants) {
  GraphParts parts = small_parts();
  parts.inputs.push_back(value("w"));
  EXPECT_EQ(parse(model(parts)).graph.inputs.size(), 1u);
  parts.inputs.back() = value("w", 7);
  expect_corrupt("graph input 'w' is of int64 and its constant of another type", model(parts));
}

TEST(Onnx, RefusesNamesThatAreMadeTwice) {
  const auto refuses = [](const std::string& part, auto change) {
    GraphParts parts = small_parts();
    change(parts);
    expect_corrupt(part, model(parts));
  };
  refuses("constant 'w' is there twice", [](auto& parts) { parts.constants.push_back(floats("w", {1})); });
  refuses("graph input 'x' is there twice", [](auto& parts) { parts.inputs.push_back(value("x")); });
  refuses("the node (Neg) of 'sum' makes 'sum', which is made before",
          [](auto& parts) { parts.nodes.push_back(node("Neg", {"x"}, {"sum"})); });
  refuses("makes 'w', which is made before", [](auto& parts) { parts.nodes.push_back(node("Neg", {"x"}, {"w"})); });
  refuses("makes 'x', which is made before", [](auto& parts) { parts.nodes.push_back(node("Neg", {"x"}, {"x"})); });
  refuses("makes 'z', which is made before", [](auto& parts) {
    parts.nodes.push_back(node("Two", {"x"}, {"z", "z"}));
  });
}

TEST(Onnx, RefusesNamesThatAreMissing) {
  const auto refuses = [](const std::string& part, auto change) {
    GraphParts parts = small_parts();
    change(parts);
    expect_corrupt(part, model(parts));
  };
  refuses("node 'add' (Add) reads 'w', which no node", [](auto& parts) { parts.constants.clear(); });
  refuses("graph output 'z' is made by no node", [](auto& parts) { parts.outputs.push_back(value("z")); });
  refuses("a graph input without a name", [](auto& parts) { parts.inputs.push_back(value("")); });
  refuses("a graph output without a name", [](auto& parts) { parts.outputs.push_back(value("")); });
  refuses("a constant without a name", [](auto& parts) { parts.constants.push_back(floats("", {1})); });
  refuses("the node of 'z' has no op_type", [](auto& parts) { parts.nodes.push_back(node("", {"x"}, {"z"})); });
}

TEST(Onnx, LetsInputsAndOutputsBeLeftOut) {
  const Model model = parse(testing::model({{node("Op", {"", "x"}, {"", "y"}), node("Op", {"x", ""}, {"", "z"})},
                                            {},
                                            {value("x")},
                                            {value("y"), value("x")}}));
  EXPECT_EQ(model.graph.nodes[0].inputs[0], "");
  EXPECT_EQ(model.graph.nodes[0].outputs[0], "");
}

TEST(Onnx, RefusesWhatAnOperatorDoesNotTake) {
  const auto with = [](Proto one) {
    return testing::model(GraphParts{{std::move(one)}, {}, {value("x")}, {value("y")}});
  };
  const auto flag = [](std::string_view name) { return attribute(name, 2).number(3, 1); };
  expect_corrupt("node 'n' (Relu) has 2 inputs and takes at most 1", with(node("Relu", {"x", "x"}, {"y"}, {}, "n")));
  expect_corrupt("(Add) of 'y' has 1 inputs and needs 2", with(node("Add", {"x"}, {"y"})));
  expect_corrupt("(Relu) of 'y' has 2 outputs and makes at most 1", with(node("Relu", {"x"}, {"y", "z"})));
  expect_corrupt("(Softmax) of 'y' has the attribute 'axes', and Softmax has none of that name, but axis; export",
                 with(node("Softmax", {"x"}, {"y"}, {flag("axes")})));
  expect_corrupt("(Relu) of 'y' has the attribute 'a', and Relu has none of that name; export",
                 with(node("Relu", {"x"}, {"y"}, {flag("a")})));
  expect_corrupt("has the attribute 'keepdims noop_with_empty_axes'",
                 with(node("ReduceMax", {"x"}, {"y"}, {flag("keepdims noop_with_empty_axes")})));
  EXPECT_NO_THROW(parse(with(node("Relu", {"x", "", ""}, {"y", ""}))));
  EXPECT_NO_THROW(parse(with(node("Sum", {"x", "x", "x", "x"}, {"y"}))));
  EXPECT_NO_THROW(parse(with(node("Relu", {"x", "x"}, {"y"}, {flag("a")}).text(7, "someone.else"))));
}

TEST(Onnx, PutsNodesInOrder) {
  const auto ordered = parse(model({{node("C", {"b"}, {"c"}), node("X", {"x"}, {"z"}), node("B", {"a"}, {"b"}),
                                     node("A", {"x"}, {"a"}), node("D", {"c", "z"}, {"d"})},
                                    {},
                                    {value("x")},
                                    {value("d")}}));
  EXPECT_EQ(ops_of(ordered.graph), (std::vector<std::string>{"X", "A", "B", "C", "D"}));
}

TEST(Onnx, RefusesACycleAndNamesANodeOnIt) {
  expect_corrupt("node 'loop' (B) is on a cycle",
                 model({{node("Before", {"b"}, {"before"}), node("A", {"x"}, {"a"}),
                         node("B", {"a", "b"}, {"b"}, {}, "loop"), node("After", {"b"}, {"c"})},
                        {},
                        {value("x")},
                        {value("c")}}));
  // Through the subgraph of a node.
  const Proto inner = graph({{node("Neg", {"c"}, {"n"})}, {}, {}, {value("n")}});
  expect_corrupt(
      "is on a cycle",
      model({{node("If", {"x"}, {"b"}, {body("then_branch", inner)}, "if"), node("Neg", {"b"}, {"c"}, {}, "neg")},
             {},
             {value("x")},
             {value("c")}}));
}

TEST(Onnx, ReadsSubgraphsThatUseNamesAroundThem) {
  const Proto deep = graph({{node("Add", {"late", "t"}, {"d"})}, {}, {}, {value("d")}});
  const Proto inner = graph({{node("If", {"x"}, {"u"}, {body("then_branch", deep)}), node("Neg", {"k"}, {"t"})},
                             {floats("k", {1})},
                             {},
                             {value("u")}});
  // What the innermost graph reads is made behind its owners, in both graphs around it.
  const Model read =
      parse(model({{node("If", {"x"}, {"y"}, {body("then_branch", inner)}), node("Not", {"x"}, {"late"})},
                   {},
                   {value("x")},
                   {value("y")}}));
  EXPECT_EQ(ops_of(read.graph), (std::vector<std::string>{"Not", "If"}));
  const auto& attribute = read.graph.nodes[1].attributes.at("then_branch");
  const ModelGraph& branch = *std::get<std::shared_ptr<const ModelGraph>>(attribute);
  EXPECT_EQ(ops_of(branch), (std::vector<std::string>{"Neg", "If"}));
  EXPECT_EQ(branch.constants.at("k").as<const float>()[0], 1);
}

TEST(Onnx, ChecksNamesOfSubgraphs) {
  const auto with_body = [](const GraphParts& parts) {
    return model({{node("Neg", {"x"}, {"a"}), node("If", {"x"}, {"y"}, {body("then_branch", graph(parts))}),
                   node("Neg", {"x"}, {"b"})},
                  {floats("w", {1})},
                  {value("x")},
                  {value("y")}});
  };
  EXPECT_EQ(parse(with_body({{node("Neg", {"a"}, {"t"})}, {}, {}, {value("t")}})).graph.nodes.size(), 3u);
  EXPECT_EQ(ops_of(parse(with_body({{}, {}, {}, {value("b")}})).graph), (std::vector<std::string>{"Neg", "Neg", "If"}));
  expect_corrupt("makes 'a', which is made before", with_body({{node("Neg", {"x"}, {"a"})}, {}, {}, {value("a")}}));
  expect_corrupt("a graph input makes 'x'", with_body({{}, {}, {value("x")}, {value("x")}}));
  expect_corrupt("a constant makes 'w'", with_body({{}, {floats("w", {1})}, {}, {value("w")}}));
  expect_corrupt("reads 'no', which", with_body({{node("Neg", {"no"}, {"t"})}, {}, {}, {value("t")}}));
  expect_corrupt("graph output 'no'", with_body({{}, {}, {}, {value("no")}}));
  // Both branches may have the same names; what one makes is not seen outside.
  const Proto branch = graph({{node("Neg", {"x"}, {"t"})}, {}, {}, {value("t")}});
  const std::vector<Proto> branches = {body("then_branch", branch), body("else_branch", branch)};
  EXPECT_NO_THROW((void)parse(model({{node("If", {"x"}, {"y"}, branches)}, {}, {value("x")}, {value("y")}})));
  expect_corrupt(
      "reads 't'",
      model({{node("If", {"x"}, {"y"}, branches), node("Neg", {"t"}, {"z"})}, {}, {value("x")}, {value("z")}}));
}

TEST(Onnx, BoundsHowDeepGraphsNest) {
  const auto nested = [](int depth) {
    Proto inner = graph({});
    for (int i = 1; i < depth; ++i) inner = graph({{node("Op", {}, {}, {body("then_branch", inner)})}, {}, {}, {}});
    return model(inner);
  };
  EXPECT_NO_THROW((void)parse(nested(16)));
  expect_corrupt("more than 16 graphs one in the other", nested(17));
  expect_corrupt("more than 16 graphs one in the other", nested(2000));
}

TEST(Onnx, NeverReadsPastAnyTruncation) {
  GraphParts parts = small_parts();
  parts.nodes.push_back(
      node("Op", {"y"}, {"z"}, {body("then_branch", graph({})), attribute("a", 7).packed(8, {1, 2})}));
  parts.constants.push_back(tensor("raw", 7, {1}).text(9, "12345678"));
  const Proto whole = model(parts);
  (void)parse(whole);
  for (std::size_t size = 0; size < whole.text().size(); ++size) {
    // A copy of its own, so that AddressSanitizer knows where it ends.
    const std::vector<std::byte> part(whole.bytes().begin(), whole.bytes().begin() + static_cast<std::ptrdiff_t>(size));
    try {
      (void)parse_onnx(part);
    } catch (const Error& error) {
      EXPECT_EQ(to_string(error.code()), to_string(ErrorCode::corrupt_data)) << size << ": " << error.what();
    }
  }
}

TEST(Onnx, ReadsALongChainOfNodes) {
  const auto chain = [](std::size_t count, bool backwards) {
    Proto written;
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t at = backwards ? count - 1 - i : i;
      written.message(1, node("Neg", {std::to_string(at)}, {std::to_string(at + 1)}));
    }
    return model(written.message(11, value("0")).message(12, value(std::to_string(count))));
  };
  EXPECT_EQ(parse(chain(200000, false)).graph.nodes.size(), 200000u);
  EXPECT_EQ(parse(chain(100000, true)).graph.nodes[0].inputs[0], "0");
}

TEST(Onnx, ReadsNamesThatRepeatInLinearTime) {
  Proto wide = Proto().text(4, "Op");
  for (int i = 0; i < 100000; ++i) wide.text(1, "x").text(2, "");
  for (int i = 0; i < 20000; ++i) wide.message(5, attribute(std::to_string(i), 2));
  EXPECT_EQ(parse(model({{wide}, {}, {value("x")}, {}})).graph.nodes[0].inputs.size(), 100000u);
}

}  // namespace
}  // namespace xpuruntime
