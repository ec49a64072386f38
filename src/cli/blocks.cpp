#include "cli/blocks.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "xpuruntime/core/error.h"

namespace xpuruntime::cli {
namespace {

constexpr std::int64_t tokens = 128, width = 768, heads = 12, head = width / heads;

/// A third of what the fused projection wrote, as [batch, heads, tokens, head] without moving anything.
View heads_of(const std::string& name, std::int64_t third) {
  return {name, "qkv", third * width, {1, heads, tokens, head}, {tokens * 3 * width, head, 3 * width, 1}};
}

Attributes attributes_of(const Step& step) {
  Attributes attributes(step.op);
  std::string_view left = step.attributes;
  while (!left.empty()) {
    const std::size_t end = std::min(left.find(' '), left.size());
    const std::string_view word = left.substr(0, end);
    const std::size_t equals = word.find('=');
    attributes.parse(word.substr(0, equals), word.substr(equals + 1));
    left.remove_prefix(std::min(end + 1, left.size()));
  }
  return attributes;
}

/// Uniform with the size that keeps sums of products near one, as initialisers of layers do; variances are positive.
Tensor random_tensor(const std::string& name, const Dims& shape, std::mt19937_64& random) {
  Tensor tensor = Tensor::empty(DataType::float32, shape);
  const bool variance = name.ends_with("var");
  std::int64_t terms = 1;
  for (std::size_t i = 1; i < shape.size(); ++i) terms *= shape[i];
  const float size = name == "x" ? 1.0f : std::sqrt(3.0f / static_cast<float>(terms));
  std::uniform_real_distribution<float> uniform(variance ? 0.5f : -size, variance ? 1.5f : size);
  std::generate_n(tensor.as<float>(), element_count(tensor.spec()), [&] { return uniform(random); });
  return tensor;
}

Tensor view_of(const View& view, const Tensor& source) {
  return Tensor(source.data(), make_spec(source.dtype(), view.shape, view.strides), source.device(),
                source.byte_offset() + static_cast<std::size_t>(view.offset) * size_of(source.dtype()), source.owner());
}

}  // namespace

Block transformer_block() {
  Block block{"transformer", "pre-norm block, 128 tokens, width 768, 12 causal heads, f32"};
  block.given = {{"x", {tokens, width}},    {"norm1.weight", {width}},
                 {"norm1.bias", {width}},   {"qkv.weight", {3 * width, width}},
                 {"qkv.bias", {3 * width}}, {"proj.weight", {width, width}},
                 {"proj.bias", {width}},    {"norm2.weight", {width}},
                 {"norm2.bias", {width}},   {"up.weight", {4 * width, width}},
                 {"up.bias", {4 * width}},  {"down.weight", {width, 4 * width}},
                 {"down.bias", {width}}};
  block.views = {heads_of("q", 0),
                 heads_of("k", 1),
                 heads_of("v", 2),
                 {"heads", "attended", 0, {1, tokens, heads, head}, {width * tokens, head, tokens * head, 1}},
                 {"rows", "gathered", 0, {tokens, width}, {width, 1}}};
  block.steps = {{OpId::layer_norm, {"x", "norm1.weight", "norm1.bias"}, "normed1"},
                 {OpId::linear, {"normed1", "qkv.weight", "qkv.bias"}, "qkv"},
                 {OpId::attention, {"q", "k", "v"}, "attended", "causal=true"},
                 {OpId::copy, {"heads"}, "gathered"},
                 {OpId::linear, {"rows", "proj.weight", "proj.bias"}, "projected"},
                 {OpId::add, {"x", "projected"}, "middle"},
                 {OpId::layer_norm, {"middle", "norm2.weight", "norm2.bias"}, "normed2"},
                 {OpId::linear, {"normed2", "up.weight", "up.bias"}, "up", "activation=gelu"},
                 {OpId::linear, {"up", "down.weight", "down.bias"}, "down"},
                 {OpId::add, {"middle", "down"}, "out"}};
  return block;
}

Block cnn_block() {
  Block block{"cnn", "ResNet-50 bottleneck on 56x56 with a pool behind it, batch 1, f32"};
  const auto layer = [&](const std::string& name, const Dims& weight) {
    block.given[name + ".weight"] = weight;
    for (const char* part : {".mean", ".var", ".scale", ".shift"}) block.given[name + part] = {weight[0]};
  };
  block.given["x"] = {1, 256, 56, 56};
  layer("reduce", {64, 256, 1, 1});
  layer("conv", {64, 64, 3, 3});
  layer("expand", {256, 64, 1, 1});
  const auto conv = [&](const std::string& from, const std::string& name, const std::string& attributes) {
    block.steps.push_back({OpId::conv2d, {from, name + ".weight"}, name, attributes});
    block.steps.push_back({OpId::batch_norm2d,
                           {name, name + ".mean", name + ".var", name + ".scale", name + ".shift"},
                           name + ".normed"});
  };
  const auto relu = [&](const std::string& from, const std::string& to) {
    block.steps.push_back({OpId::relu, {from}, to});
  };
  conv("x", "reduce", "");
  relu("reduce.normed", "reduced");
  conv("reduced", "conv", "padding=1,1");
  relu("conv.normed", "convolved");
  conv("convolved", "expand", "");
  block.steps.push_back({OpId::add, {"expand.normed", "x"}, "sum"});
  relu("sum", "activated");
  block.steps.push_back({OpId::max_pool2d, {"activated"}, "out", "kernel_size=3,3 stride=2,2 padding=1,1"});
  return block;
}

std::vector<BoundStep> bind(const Block& block, std::uint64_t seed, const DeviceManager& devices, Device device) {
  std::mt19937_64 random(seed);
  std::map<std::string, Tensor> tensors;
  for (const auto& [name, shape] : block.given)
    tensors.emplace(name, devices.copy_to(random_tensor(name, shape, random), device));
  std::vector<BoundStep> steps;
  for (const Step& step : block.steps) {
    BoundStep bound;
    std::vector<TensorSpec> specs;
    for (const std::string& name : step.inputs) {
      const auto is_it = [&](const View& view) { return view.name == name; };
      const auto view = std::find_if(block.views.begin(), block.views.end(), is_it);
      bound.inputs.push_back(view == block.views.end() ? tensors.at(name) : view_of(*view, tensors.at(view->source)));
      specs.push_back(bound.inputs.back().spec());
    }
    bound.problem = make_problem(step.op, std::move(specs), attributes_of(step), device);
    const TensorSpec& out = bound.problem.outputs.front();
    bound.output = devices.allocate(out.dtype, out.shape, device);
    tensors.insert_or_assign(step.output, bound.output);
    steps.push_back(std::move(bound));
  }
  return steps;
}

}  // namespace xpuruntime::cli
