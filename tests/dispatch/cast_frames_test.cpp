// The memory that casts are made in is used again by the next call, and never by two at once.

#include "dispatch/cast_frames.h"

#include <stdexcept>

#include "device/fake_driver.h"
#include "dispatch/fixture.h"

namespace xpuruntime {
namespace {

constexpr DataType f32 = DataType::float32;
constexpr DataType bf16 = DataType::bfloat16;

/// Kernels of relu in bf16 whose bodies a test gives. They copy their input; calls around them are of f32.
class CastFramesTest : public DispatchTest {
 protected:
  void add_copy(std::function<Status(std::int64_t)> inside) {
    FunctionKernel kernel;
    kernel.op = OpId::relu;
    kernel.name = "copy";
    kernel.run = [inside](const Problem& problem, const RunArguments& arguments) {
      EXPECT_EQ(problem.inputs[0].dtype, bf16);
      const Status status = inside(problem.inputs[0].shape[0]);
      // Only now: what happened inside must have left the input as it was.
      std::copy_n(arguments.inputs[0]->as<std::uint16_t>(), problem.inputs[0].shape[0],
                  arguments.outputs[0]->as<std::uint16_t>());
      return status;
    };
    runtime.registry().register_kernel(make_kernel(std::move(kernel)));
  }

  /// Whether relu by "copy" gives back a vector of this value; small whole numbers are exact in bf16.
  bool copies(std::int64_t n, float value, std::optional<DataType> precision = {}) {
    const Relu relu(n);
    std::fill_n(relu.in.as<float>(), n, value);
    std::fill_n(relu.out.as<float>(), n, -1.0f);
    Call call = relu.call();
    call.precision = precision;
    dispatcher().dispatch(call);
    return std::count(relu.out.as<float>(), relu.out.as<float>() + n, value) == n;
  }

  WorkspacePool& pool() { return runtime.devices().workspace({}); }
  std::uint64_t in_use() { return pool().stats().bytes_in_use; }
};

TEST_F(CastFramesTest, AKernelThatDispatchesHasMemoryOfItsOwnForItsCasts) {
  add_copy([this](std::int64_t n) {
    if (n == 1) return Status();
    EXPECT_TRUE(copies(n - 1, static_cast<float>(n - 1)));
    EXPECT_TRUE(copies(n - 1, static_cast<float>(100 + n)));
    return Status();
  });
  const std::uint64_t before = in_use();
  {
    const ScopedAutocast scope(dispatcher(), runtime.amp());
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(copies(6, 7));
  }
  EXPECT_EQ(in_use(), before);
}

TEST_F(CastFramesTest, AnExceptionGivesTheMemoryBack) {
  bool fails = true;
  add_copy([&](std::int64_t n) {
    if (n == 4 && fails) throw std::runtime_error("no luck");
    if (n == 5 && fails) return Status(ErrorCode::invalid_argument, "a bad value");
    return Status();
  });
  KernelPolicy policy;
  policy.force("relu", "copy");
  dispatcher().set_policy(policy);
  const std::uint64_t before = in_use();
  {
    const ScopedAutocast scope(dispatcher(), runtime.amp());
    for (int i = 0; i < 3; ++i) {
      fails = true;
      EXPECT_HAS(error_text(ErrorCode::invalid_argument, [&] { copies(5, 1); }), "a bad value");
      fails = false;
      EXPECT_TRUE(copies(5, 3));
    }
    fails = true;
    EXPECT_HAS(error_text(ErrorCode::device_error, [&] { copies(4, 1); }), "no luck");
    EXPECT_TRUE(copies(8, 2));
  }
  EXPECT_EQ(in_use(), before);
}

TEST_F(CastFramesTest, KeepsSmallBlocksWhileAutocastIsOnAndLargeOnesNever) {
  add_copy([](std::int64_t) { return Status(); });
  const std::uint64_t before = in_use();
  {
    const ScopedAutocast scope(dispatcher(), runtime.amp());
    EXPECT_TRUE(copies(1000, 1));
    const std::uint64_t kept = in_use() - before;
    EXPECT_GE(kept, 2u * 2000);
    EXPECT_LE(kept, 2u << 20);
    EXPECT_TRUE(copies(10, 2));
    EXPECT_EQ(in_use() - before, kept) << "the same blocks";
    EXPECT_TRUE(copies(1 << 20, 3)) << "2 MiB each";
    EXPECT_EQ(in_use(), before);
    const ScopedAutocast inner(dispatcher(), runtime.amp());
    EXPECT_TRUE(copies(1000, 4));
  }
  EXPECT_EQ(in_use(), before) << "the scope has ended";
  EXPECT_TRUE(copies(1000, 5, bf16));
  EXPECT_EQ(in_use(), before) << "there was no scope";
}

TEST_F(CastFramesTest, AScopeThatEndsInsideAKernelTakesNothingFromTheCallThatRuns) {
  add_copy([this](std::int64_t n) {
    if (n != 1000) return Status();
    {
      const ScopedAutocast scope(dispatcher(), runtime.amp());
      EXPECT_TRUE(copies(900, 5));
    }
    // Whatever went back to the pool is taken and overwritten here.
    for (int i = 0; i < 4; ++i) EXPECT_TRUE(copies(990, 6, bf16));
    return Status();
  });
  const std::uint64_t before = in_use();
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(copies(1000, 7, bf16));
  EXPECT_EQ(in_use(), before);
}

TEST_F(CastFramesTest, ABlockIsUsedAgainOnItsOwnStreamAlone) {
  int first = 0, second = 0;
  const Stream one{&first}, other{&second};
  const TensorSpec spec = make_spec(bf16, {100});
  CastFrame frame;
  const auto block = [&](Stream stream) {
    frame.start_call({}, 1);
    void* data = frame.temporary(0, pool(), spec, {}, stream).data();
    frame.end_call(true);
    return data;
  };
  void* const first_block = block(one);
  EXPECT_EQ(block(one), first_block);
  EXPECT_NE(block(other), first_block) << "work of the first stream may still read it";
  EXPECT_EQ(block(one), first_block) << "the pool kept it for its stream";
}

TEST_F(CastFramesTest, ABlockIsKeptForTheGraphThatItWasRecordedIn) {
  testing::FakeDriver driver;
  WorkspacePool blocks(driver, 0);
  const TensorSpec spec = make_spec(bf16, {100});
  CastFrame frame;
  const auto block = [&] {
    frame.start_call({}, 1);
    void* data = frame.temporary(0, blocks, spec, {}, {}).data();
    frame.end_call(true);
    return data;
  };
  void* const before = block();
  driver.is_capturing = true;
  void* const recorded = block();
  EXPECT_NE(recorded, before);
  EXPECT_EQ(block(), recorded);
  const DeviceGraph graph = driver.end_capture(0, {});
  EXPECT_EQ(block(), before);
  driver.destroy_graph(0, graph);
}

TEST_F(CastFramesTest, CallsWithManyTemporariesKeepFewOfThem) {
  const std::uint64_t before = in_use();
  const TensorSpec spec = make_spec(f32, {1000});
  CastFrame frame;
  frame.start_call({}, 100);
  for (std::size_t i = 0; i < 100; ++i) frame.temporary(i, pool(), spec, {}, {});
  frame.end_call(true);
  EXPECT_LE(in_use() - before, 8u * 8000);
  EXPECT_GT(in_use(), before);
  frame.end_call(false);
  EXPECT_EQ(in_use(), before);
}

}  // namespace
}  // namespace xpuruntime
