#include "backends/opencl/lines.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "backends/opencl/device_fixture.h"

namespace xpuruntime::opencl {
namespace {

DeviceProfile gpu(DeviceProfile profile = {}) {
  profile.vendor = "nvidia";
  profile.cpu_features = {};
  profile.compute_units = 132;
  if (profile.max_work_group_size == 0) profile.max_work_group_size = 1024;
  return profile;
}

DeviceProfile pocl() {
  DeviceProfile profile;
  profile.vendor = "pocl";
  profile.max_work_group_size = 4096;
  profile.compute_units = 4;
  return profile;
}

Problem parsed(const std::string& text) { return parse_problem(text, Device{DeviceType::opencl, 0}); }

/// Runs plans that were made for a profile, whatever the device: work-groups of GPUs are tried on any.
class TeamTest : public OpenClTest {
 protected:
  const Kernel& kernel_for(const Problem& problem) {
    for (const KernelSpec& row : table) {
      if (!row.ops.contains(problem.op)) continue;
      kernel_ = make_kernel(row, problem.op, DeviceType::opencl);
      return *kernel_;
    }
    throw std::runtime_error("no kernel for " + to_string(problem));
  }

  void fill(const Problem& problem) {
    inputs_.clear();
    const Dims& scores = problem.inputs[0].shape;
    const auto classes = static_cast<unsigned>(std::max<std::int64_t>(scores[scores.size() > 1 ? 1 : 0], 1));
    for (const TensorSpec& spec : problem.inputs) {
      HostTensor host = random_tensor(spec);
      const std::size_t count = host.bytes.size() / host.width();
      for (std::size_t i = 0; i < count && !is_floating(spec.dtype); ++i)
        host.set(i, static_cast<double>(random_() % classes));
      inputs_.push_back(upload(host, 8));
    }
  }

  /// All numbers of all outputs.
  std::vector<double> results(const Problem& problem, const DeviceProfile& on, std::string_view token = {}) {
    const Kernel& kernel = kernel_for(problem);
    EXPECT_EQ(kernel.supports(problem, on).reason, "");
    const auto plan = kernel.prepare(problem, {device, on, driver()}, token);
    std::vector<Tensor> outputs;
    for (const TensorSpec& spec : problem.outputs) outputs.push_back(upload(HostTensor(spec), 8));
    std::vector<const Tensor*> in, out;
    for (const Tensor& input : inputs_) in.push_back(&input);
    for (const Tensor& output : outputs) out.push_back(&output);
    void* workspace = driver().allocate(device.index, plan->workspace_bytes().value_or(0) + 16);
    const Status status = plan->run({in, out, workspace, {}});
    EXPECT_TRUE(status.ok()) << status.message();
    std::vector<double> values;
    for (const Tensor& output : outputs) {
      const HostTensor host = download(output);
      for (std::size_t i = 0; i < host.bytes.size() / host.width(); ++i) values.push_back(host.get(i));
    }
    driver().deallocate(device.index, workspace);
    return values;
  }

  static void expect_near(const std::vector<double>& got, const std::vector<double>& want, DataType dtype) {
    ASSERT_EQ(got.size(), want.size());
    const double relative = dtype == DataType::float32 ? 1e-4 : 2e-2;
    for (std::size_t i = 0; i < got.size(); ++i)
      ASSERT_NEAR(got[i], want[i], relative * (std::abs(want[i]) + 1)) << "at " << i;
  }

  std::shared_ptr<const Kernel> kernel_;
  std::vector<Tensor> inputs_;
};

// The conformance suite has compared the CPU's plans with float64.
TEST_F(TeamTest, WorkGroupsOfAGpuGiveWhatOneItemGives) {
  for (const char* text :
       {"softmax(f32[5,256])", "add_rms_norm(bf16[5,264], bf16[5,264], bf16[264])",
        "layer_norm:backward(f32[33,264], f32[264], f32[264], f32[33,264])", "reduce_sum(f32[9,9000]; dim=1)",
        "batch_norm2d(f32[4,6,40,40], f32[6], f32[6], f32[6], f32[6]; training=true)",
        "cross_entropy:backward(f32[20,264], i64[20], f32[264], f32[])"}) {
    SCOPED_TRACE(text);
    const Problem problem = parsed(text);
    fill(problem);
    const std::vector<double> want = results(problem, profile());
    expect_near(results(problem, gpu(profile())), want, problem.outputs[0].dtype);
  }
}

TEST_F(TeamTest, EveryVariantOfAGpuRuns) {
  const Problem problem = parsed("softmax(f32[6,260])");
  fill(problem);
  const std::vector<double> want = results(problem, profile());
  const DeviceProfile on = gpu(profile());
  const std::vector<std::string> tokens = kernel_for(problem).variants(problem, {device, on, driver()});
  EXPECT_GE(tokens.size(), 3u);
  for (const std::string& token : tokens) {
    SCOPED_TRACE(token);
    expect_near(results(problem, on, token), want, DataType::float32);
  }
  EXPECT_EQ(kernel_for(problem).variants(problem, {device, pocl(), driver()}).size(), 1u);
}

TEST_F(TeamTest, ATargetThatIsNoClassIsAnErrorAtTheNextSynchronisation) {
  const Problem problem = parsed("cross_entropy(f32[4,3], i64[4])");
  fill(problem);
  HostTensor targets(problem.inputs[1]);
  for (std::size_t i = 0; i < 4; ++i) targets.set(i, i == 2 ? 3 : 0);
  inputs_[1] = upload(targets);
  EXPECT_TRUE(driver().synchronize(device.index, {}).ok());
  const auto plan = kernel_for(problem).prepare(problem, {device, profile(), driver()});
  const Tensor output = upload(HostTensor(problem.outputs[0]));
  const Tensor* in[] = {&inputs_[0], &inputs_[1]};
  const Tensor* out[] = {&output};
  void* workspace = driver().allocate(device.index, plan->workspace_bytes().value_or(0));
  EXPECT_TRUE(plan->run({in, out, workspace, {}}).ok());
  const Status status = driver().synchronize(device.index, {});
  EXPECT_EQ(status.code(), ErrorCode::invalid_argument);
  EXPECT_NE(status.message().find("a target is outside the 3 classes"), std::string::npos) << status.message();
  EXPECT_TRUE(driver().synchronize(device.index, {}).ok());
  driver().deallocate(device.index, workspace);
}

std::string team(const char* text, const DeviceProfile& on) {
  const Problem problem = parsed(text);
  const TensorSpec &x = problem.inputs[0], &y = problem.outputs[0];
  const unsigned along = dim_bit(problem.attributes.integer("dim"), x.shape.size());
  return token_of(
      team_for({split_nest(x.shape, along, {x.strides, {}, y.strides}), bit(line_x) | bit(line_y)}, problem, on));
}

TEST(LineTeams, FitTheDeviceAndTheRows) {
  EXPECT_EQ(team("softmax(f32[4096,1024])", pocl()), "rows width=16");
  EXPECT_EQ(team("softmax(f32[4096,1024]; dim=0)", pocl()), "lines width=16");
  EXPECT_EQ(team("softmax(f32[4096,3]; dim=0)", pocl()), "lines width=1");
  EXPECT_EQ(team("softmax(f32[4096,1024])", gpu()), "rows width=4 lanes=64 held=4");
  EXPECT_EQ(team("softmax(bf16[8192,1024])", gpu()), "rows width=8 lanes=32 held=4");
  EXPECT_EQ(team("softmax(f32[4096,1023])", gpu()), "rows width=1 lanes=64 held=16");
  EXPECT_EQ(team("softmax(f32[8,32768])", gpu()), "rows width=4 lanes=256");
  EXPECT_EQ(team("softmax(f32[8192,65536])", gpu()), "rows width=4 lanes=256");
  EXPECT_EQ(team("softmax(f32[64,1024]; dim=0)", gpu()), "lines width=1");
  DeviceProfile small = gpu();
  small.max_work_group_size = 64;
  EXPECT_EQ(team("softmax(f32[8,32768])", small), "rows width=4 lanes=64");
}

}  // namespace
}  // namespace xpuruntime::opencl
