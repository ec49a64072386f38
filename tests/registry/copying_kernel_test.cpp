#include "registry/copying_kernel.h"

#include <gtest/gtest.h>

#include "xpuruntime/runtime/runtime.h"

namespace xpuruntime {
namespace {

/// Takes what `takes` says, needs 100 bytes, and notes what it was given.
std::shared_ptr<const Kernel> picky(std::function<bool(const Problem&)> takes) {
  FunctionKernel kernel;
  kernel.op = OpId::add;
  kernel.name = "picky";
  kernel.version = "1";
  kernel.workspace_bytes = 100;
  kernel.supports = [takes](const Problem& problem, const DeviceProfile&) {
    return takes(problem) ? Verdict::yes() : Verdict::no("it is picky");
  };
  kernel.run = [](const Problem& problem, const RunArguments& arguments) {
    const Tensor &a = *arguments.inputs[0], &b = *arguments.inputs[1], &out = *arguments.outputs[0];
    EXPECT_EQ(a.spec(), problem.inputs[0]);
    EXPECT_EQ(out.spec(), problem.outputs[0]);
    static_cast<std::byte*>(arguments.workspace)[99] = std::byte{1};
    for (std::int64_t i = 0; i < element_count(out.spec()); ++i) {
      out.as<float>()[i] = a.as<float>()[i] + b.as<float>()[i];
    }
    return Status();
  };
  return make_kernel(std::move(kernel));
}

bool all_contiguous(const Problem& problem) {
  return problem.inputs[0].contiguous && problem.inputs[1].contiguous && problem.outputs[0].contiguous;
}

class Copying : public ::testing::Test {
 protected:
  std::shared_ptr<const CopyingKernel> around(const std::shared_ptr<const Kernel>& kernel, const Problem& problem) {
    const KernelList copiers = runtime.registry().kernels(OpId::copy, DeviceType::cpu);
    return CopyingKernel::around(kernel, problem, runtime.devices().profile({}), copiers, refusal);
  }

  std::string refusal;
  Runtime runtime{{false, false, {}}};
};

// In place, a copy of a cache would write over what other threads append meanwhile.
TEST_F(Copying, TensorsOfWhichCallsInPlaceWriteAPartAreNotCopied) {
  const char* cache = "f32[64,16,4,32]{2048,1,512,16}";
  const auto problem = [&](const std::string& out) {
    return parse_problem("kv_append(" + std::string(cache) + ", " + cache +
                         ", f32[1,4,64,32]{8192,1,128,4}, f32[1,4,64,32], i64[1], i32[1,16]) -> " + out);
  };
  FunctionKernel dense;
  dense.op = OpId::kv_append;
  dense.name = "dense";
  dense.supports = [](const Problem& p, const DeviceProfile&) {
    const auto contiguous = [](const TensorSpec& spec) { return spec.contiguous; };
    return std::all_of(p.inputs.begin(), p.inputs.end(), contiguous) ? Verdict::yes() : Verdict::no("not contiguous");
  };
  dense.run = [](const Problem&, const RunArguments&) { return Status(); };
  EXPECT_EQ(around(make_kernel(dense), problem(std::string(cache) + ", " + cache)), nullptr);
  EXPECT_EQ(refusal, "not contiguous");
  dense.supports = [](const Problem& p, const DeviceProfile&) {
    return p.inputs[2].contiguous ? Verdict::yes() : Verdict::no("the tokens are not contiguous");
  };
  const auto tokens = around(make_kernel(dense), problem(std::string(cache) + ", " + cache));
  ASSERT_NE(tokens, nullptr);
  ASSERT_EQ(tokens->steps().size(), 1u);
  EXPECT_EQ(tokens->steps()[0].index, 2u);
}

TEST_F(Copying, CopiesWhatTheKernelRefusesAndNothingElse) {
  const Problem problem = parse_problem("add(f32[4,6]{1,4}, f32[4,6]{12,2}) -> f32[4,6]{1,4}");
  EXPECT_EQ(around(picky([](const Problem&) { return true; }), problem), nullptr);
  EXPECT_EQ(refusal, "");
  EXPECT_EQ(around(picky([](const Problem&) { return false; }), problem), nullptr);
  EXPECT_EQ(refusal, "it is picky");
  const auto first = around(picky([](const Problem& p) { return p.inputs[0].contiguous; }), problem);
  ASSERT_NE(first, nullptr);
  ASSERT_EQ(first->steps().size(), 1u);
  EXPECT_FALSE(first->steps()[0].is_output);
  EXPECT_EQ(to_string(first->steps()[0].problem), "copy(f32[4,6]{1,4}) @cpu:0");
  EXPECT_EQ(first->steps()[0].kernel->name(), "blocked");
  EXPECT_EQ(first->copied_bytes(), 96u);
  EXPECT_EQ(to_string(first->inner().inputs[1]), "f32[4,6]{12,2}");
  const auto all = around(picky(all_contiguous), problem);
  ASSERT_EQ(all->steps().size(), 3u);
  EXPECT_EQ(to_string(all->steps()[2].problem), "copy(f32[4,6]) -> f32[4,6]{1,4} @cpu:0");
  EXPECT_EQ(all->copied_bytes(), 3 * 96u);
}

TEST_F(Copying, TakesTheKernelsNameAndVersionAndCountsItsWorkspace) {
  const Problem problem = parse_problem("add(f32[4,6]{1,4}, f32[4,6]) -> f32[4,6]{1,4}");
  const auto kernel = picky(all_contiguous);
  const auto copying = around(kernel, problem);
  ASSERT_NE(copying, nullptr);
  EXPECT_EQ(copying->name(), "picky");
  EXPECT_EQ(copying->version(), "1");
  EXPECT_TRUE(copying->supports(problem, runtime.devices().profile({})).supported);
  EXPECT_FALSE(copying->supports(parse_problem("add(f32[4], f32[4])"), runtime.devices().profile({})).supported);
  EXPECT_EQ(copying->workspace_bytes(problem, runtime.devices().profile({})), 128u + 2 * 128u);  // in whole lines
  EXPECT_EQ(registered_kernel(copying), kernel);
  EXPECT_EQ(registered_kernel(kernel), kernel);
}

TEST_F(Copying, RunsOnTheCopiesAndWritesBack) {
  const Problem problem = parse_problem("add(f32[2,3]{1,2}, f32[2,3]{0,1}) -> f32[2,3]{1,2}");
  const auto copying = around(picky(all_contiguous), problem);
  ASSERT_NE(copying, nullptr);
  const auto plan = copying->prepare(problem, {Device{}, runtime.devices().profile({}), runtime.devices().driver({})});
  EXPECT_EQ(plan->token(), "copies=input0:blocked,input1:blocked,output0:blocked");
  float a[] = {1, 4, 2, 5, 3, 6}, b[] = {10, 20, 30}, out[6] = {};
  const Tensor ta(a, problem.inputs[0]), tb(b, problem.inputs[1]), tout(out, problem.outputs[0]);
  const Tensor* const inputs[] = {&ta, &tb};
  const Tensor* const outputs[] = {&tout};
  const Tensor workspace = Tensor::empty(DataType::uint8, {1024});
  ASSERT_TRUE(plan->run({inputs, outputs, workspace.data(), {}}).ok());
  EXPECT_EQ(std::vector<float>(out, out + 6), (std::vector<float>{11, 14, 22, 25, 33, 36}));
  const Tensor* const in_place[] = {&ta};
  ASSERT_TRUE(plan->run({inputs, in_place, workspace.data(), {}}).ok());
  EXPECT_EQ(std::vector<float>(a, a + 6), (std::vector<float>{11, 14, 22, 25, 33, 36}));
}

TEST_F(Copying, NeedsACopyKernelThatTakesTheLayout) {
  const Problem problem = parse_problem("add(f32[4,6]{1,4}, f32[4,6])");
  EXPECT_EQ(CopyingKernel::around(picky(all_contiguous), problem, runtime.devices().profile({}), {}, refusal), nullptr);
  FunctionKernel hungry{OpId::copy, "hungry"};
  hungry.run = [](const Problem&, const RunArguments&) { return Status(); };
  hungry.workspace_bytes = 1;
  const std::shared_ptr<const Kernel> copiers[] = {make_kernel(std::move(hungry))};
  EXPECT_EQ(CopyingKernel::around(picky(all_contiguous), problem, runtime.devices().profile({}), copiers, refusal),
            nullptr);
}

}  // namespace
}  // namespace xpuruntime
