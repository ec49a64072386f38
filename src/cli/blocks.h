#pragma once

#include <map>
#include <string>
#include <vector>

#include "xpuruntime/core/problem.h"
#include "xpuruntime/device/device_manager.h"
#include "xpuruntime/dispatch/call.h"

namespace xpuruntime::cli {

/// One op of a block on tensors that are known by name.
struct Step {
  OpId op = OpId::matmul;
  std::vector<std::string> inputs = {};
  std::string output = {};
  std::string attributes = {};  // as problem texts write them: "stride=1,1 padding=1,1"
};

/// Another way to look at a tensor: attention reads its heads out of the rows that a linear layer wrote.
struct View {
  std::string name = {};
  std::string source = {};
  std::int64_t offset = 0;  // in elements
  Dims shape = {};
  Dims strides = {};
};

/// A piece of a model: named parameters and inputs, views, and steps that feed each other.
struct Block {
  std::string name = {};
  std::string about = {};
  std::map<std::string, Dims> given = {};  // f32, filled with random numbers
  std::vector<View> views = {};
  std::vector<Step> steps = {};
};

/// A pre-norm transformer block as in GPT-2, and a bottleneck of ResNet-50 with a pool behind it.
Block transformer_block();
Block cnn_block();

/// A step with its tensors.
struct BoundStep {
  Problem problem = {};
  std::vector<Tensor> inputs = {};
  Tensor output = {};
};

/// Makes the tensors of a block on a device and binds its steps to them.
std::vector<BoundStep> bind(const Block& block, std::uint64_t seed, const DeviceManager& devices, Device device);

}  // namespace xpuruntime::cli
