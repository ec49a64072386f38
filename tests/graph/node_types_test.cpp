#include <gtest/gtest.h>

#include "core/expect_error.h"
#include "xpuruntime/graph/session.h"
#include "xpuruntime/runtime/runtime.h"

namespace xpuruntime {
namespace {

constexpr DataType f32 = DataType::float32, i64 = DataType::int64, boolean = DataType::boolean;

/// One node on inputs of these types and this shape.
std::vector<Tensor> run(const std::string& op, const std::vector<DataType>& types, DataType declared = f32,
                        const Dims& shape = {1, 1, 2, 2}) {
  Model model;
  model.opsets[""] = 17;
  ModelNode node{.name = "n", .op = op, .outputs = {"y"}};
  std::vector<ModelExtent> extents;
  for (std::size_t i = 0; i < shape.size(); ++i) extents.push_back({.size = shape[i]});
  std::vector<Tensor> inputs;
  for (const DataType type : types) {
    node.inputs.push_back("x" + std::to_string(inputs.size()));
    model.graph.inputs.push_back({.name = node.inputs.back(), .dtype = type, .shape = extents});
    inputs.push_back(Tensor::empty(type, shape));
    std::fill_n(inputs.back().as<std::byte>(), span_bytes(inputs.back().spec()), std::byte{});
  }
  if (op == "Concat") node.attributes["axis"] = std::int64_t{0};
  model.graph.outputs = {{.name = "y", .dtype = declared}};
  model.graph.nodes = {node};
  ExecutionPolicy execution;
  execution.target = DeviceType::cpu;
  execution.engine = "native";
  Runtime& runtime = Runtime::global();
  return Session(std::move(model), runtime.dispatcher(), runtime.devices(), {.execution = execution}).run(inputs);
}

TEST(NodeTypes, WhatHasToBeOfOneTypeIs) {
  for (const char* op : {"Add", "Sub", "Mul", "MatMul", "Concat", "Max", "Conv", "PRelu"}) {
    SCOPED_TRACE(op);
    EXPECT_EQ(run(op, {f32, f32})[0].dtype(), f32);
    expect_error(ErrorCode::corrupt_data, "inputs 0 and 1 have to be of one type, and are f32 and i64", [&] {
      run(op, {f32, i64});
    });
  }
  EXPECT_EQ(run("Equal", {i64, i64}, boolean)[0].dtype(), boolean);
  expect_error(ErrorCode::corrupt_data, "have to be of one type", [&] { run("Equal", {i64, f32}, boolean); });
}

TEST(NodeTypes, InputsOfOtherTypesAreNotCompared) {
  EXPECT_EQ(run("Where", {boolean, f32, f32})[0].dtype(), f32);
  expect_error(ErrorCode::corrupt_data, "inputs 1 and 2", [&] { run("Where", {boolean, f32, i64}); });
}

TEST(NodeTypes, ConvolutionsAreOfFloats) {
  expect_error(ErrorCode::corrupt_data, "node 'n' (Conv): input 0 has to be of a floating type, and is i64", [&] {
    run("Conv", {i64, i64}, i64);
  });
}

TEST(NodeTypes, AnOutputIsOfTheTypeThatItIsDeclaredOf) {
  EXPECT_EQ(run("Neg", {i64}, i64)[0].dtype(), i64);
  expect_error(ErrorCode::corrupt_data, "output 'y' is declared as i64, and the model computes f32",
               [&] { run("Neg", {f32}, i64); });
}

}  // namespace
}  // namespace xpuruntime
