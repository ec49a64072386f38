#include "xpuruntime/runtime/opencl_kernel.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "xpuruntime/device/driver.h"
#include "xpuruntime/runtime/ops.h"
#include "xpuruntime/runtime/replay.h"

namespace xpuruntime {
namespace {

constexpr const char* scale_source = R"(
__kernel void scale(__global float* x, float by, ulong count) {
  const ulong i = get_global_id(0);
  if (i < count) x[i] *= by;
}
)";
constexpr const char* relu_source = R"(
__kernel void my_relu(__global const float* in, __global float* out, ulong count) {
  const ulong i = get_global_id(0);
  if (i < count) out[i] = fmax(in[i], 0.0f) + 0.5f;  // told from others by the half
}
)";

class OpenclKernelTest : public testing::Test {
 public:
  template <class Body>
  static std::string error_text(ErrorCode code, Body body) {
    try {
      body();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << error.what();
      return error.what();
    }
    return "no error";
  }

 protected:
  void SetUp() override {
    if (!runtime.devices().has(device)) GTEST_SKIP() << runtime.devices().why_absent(DeviceType::opencl);
  }
  Tensor on_device(std::vector<float> values) {
    const Tensor host = Tensor::view(values.data(), DataType::float32, {static_cast<std::int64_t>(values.size())});
    return runtime.devices().copy_to(host, device);
  }
  std::vector<float> read(const Tensor& tensor) {
    const Tensor host = runtime.devices().copy_to(tensor, Device{});
    const auto* data = host.as<const float>();
    return {data, data + element_count(host.spec())};
  }
  static bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

  const Device device{DeviceType::opencl, 0};
  Runtime runtime;
};

TEST_F(OpenclKernelTest, RunsOnTensorsInOneCall) {
  const OpenclKernel scale({.name = "scale", .source = scale_source}, &runtime);
  const Tensor x = on_device({1, 2, 3, 4, 5});
  scale({5}, x, 3.0f, std::uint64_t{5});
  EXPECT_EQ(read(x), (std::vector<float>{3, 6, 9, 12, 15}));
}

TEST_F(OpenclKernelTest, TakesWorkGroupSizeAndFlagsAndRunsWholeGroups) {
  const char* source = R"(
__kernel void sizes(__global float* x, ulong count) {
  const ulong i = get_global_id(0);
  if (i < count) x[i] = get_local_size(0) * 1000 + get_global_size(0) + EXTRA;
}
)";
  const OpenclKernel sizes({.name = "sizes", .source = source, .work_group_size = {4}, .flags = "-D EXTRA=0.5f"},
                           &runtime);
  const Tensor x = on_device({0, 0, 0, 0, 0});
  sizes({5}, x, std::uint64_t{5});
  EXPECT_EQ(read(x), std::vector<float>(5, 4008.5f));
}

TEST_F(OpenclKernelTest, ReadsItsSourceFromAFile) {
  const auto path = std::filesystem::temp_directory_path() / ("scale" + std::to_string(getpid()) + ".cl");
  std::ofstream(path) << scale_source;
  const OpenclKernel scale({.name = "scale", .file = path.string()}, &runtime);
  std::filesystem::remove(path);
  const Tensor x = on_device({2});
  scale({1}, x, 2.0f, std::uint64_t{1});
  EXPECT_EQ(read(x), std::vector<float>{4});
}

TEST_F(OpenclKernelTest, LocalMemoryIsAnArgument) {
  const char* source = R"(
__kernel void turn(__global float* x, __local float* kept) {
  const int i = get_local_id(0);
  kept[i] = x[i];
  barrier(CLK_LOCAL_MEM_FENCE);
  x[i] = kept[get_local_size(0) - 1 - i];
}
)";
  const OpenclKernel turn({.name = "turn", .source = source, .work_group_size = {4}}, &runtime);
  const Tensor x = on_device({1, 2, 3, 4});
  turn({4}, x, LocalMemory{16});
  EXPECT_EQ(read(x), (std::vector<float>{4, 3, 2, 1}));
  EXPECT_TRUE(has(error_text(ErrorCode::invalid_argument, [&] { turn({4}, x, LocalMemory{std::size_t{1} << 40}); }),
                  "bytes of local memory"));
}

TEST_F(OpenclKernelTest, WrongCallsAreErrorsThatSayWhatIsWrong) {
  const OpenclKernel scale({.name = "scale", .source = scale_source}, &runtime);
  const Tensor x = on_device({1, 2, 3});
  const auto invalid = ErrorCode::invalid_argument;
  EXPECT_TRUE(has(error_text(invalid, [&] { scale({3}, x); }), "has 3 parameters, and 1 arguments"));
  EXPECT_TRUE(
      has(error_text(invalid, [&] { scale({3}, x, 2.0, std::uint64_t{3}); }), "argument 1 of 'scale', of 8 bytes"));
  EXPECT_TRUE(has(error_text(invalid, [&] { scale({0}, x, 2.0f, std::uint64_t{3}); }), "global size"));
  EXPECT_TRUE(has(error_text(invalid, [&] { scale({3}, 2.0f); }), "no argument of 'scale' is a tensor"));
  float host[3] = {};
  const Tensor here = Tensor::view(host, DataType::float32, {3});
  EXPECT_TRUE(has(error_text(ErrorCode::not_supported, [&] { scale({3}, here, 2.0f, std::uint64_t{3}); }), "cpu:0"));
  const OpenclKernel wide({.name = "scale", .source = scale_source, .work_group_size = {1 << 20}}, &runtime);
  EXPECT_TRUE(has(error_text(invalid, [&] { wide({3}, x, 2.0f, std::uint64_t{3}); }), "is over the device's"));
  const OpenclKernel flat({.name = "scale", .source = scale_source, .work_group_size = {2, 2}}, &runtime);
  EXPECT_TRUE(has(error_text(invalid, [&] { flat({4}, x, 2.0f, std::uint64_t{3}); }), "more dims than the global"));
  for (const WorkSize& huge : {WorkSize{std::size_t(-5)}, WorkSize{1ull << 40, 1ull << 40}})
    EXPECT_TRUE(has(error_text(invalid, [&] { scale(huge, x, 2.0f, std::uint64_t{3}); }), "more than 2^62"));
  const OpenclKernel two({.name = "my_relu", .source = relu_source}, &runtime);
  EXPECT_TRUE(has(error_text(invalid, [&] { two({3}, x, here, std::uint64_t{3}); }), "cpu:0"));
  EXPECT_EQ(read(x), (std::vector<float>{1, 2, 3})) << "nothing ran";
}

TEST_F(OpenclKernelTest, AnArgumentOfAnotherKindIsAnErrorThatNamesIt) {
  const auto scale = [&](const auto&... arguments) {
    return error_text(ErrorCode::invalid_argument, [&] {
      OpenclKernel({.name = "scale", .source = scale_source, .tune = true}, &runtime)({3}, arguments...);
    });
  };
  const Tensor x = on_device({1, 2, 3});
  EXPECT_TRUE(has(scale(x, 2.0f, x), "argument 2 of 'scale' is a tensor, and its parameter is 'ulong': pass a number"));
  EXPECT_TRUE(has(scale(std::uint64_t{1}, x, std::uint64_t{3}), "argument 0 of 'scale' is a number"));
  EXPECT_TRUE(has(scale(x, LocalMemory{4}, std::uint64_t{3}), "argument 1 of 'scale' is LocalMemory"));
  EXPECT_TRUE(has(scale(x, LocalMemory{0}, std::uint64_t{3}), "0 bytes"));
  EXPECT_TRUE(has(scale(x, 2, std::uint64_t{3}), "argument 1 of 'scale' is an integer, and its parameter is 'float'"));
  EXPECT_TRUE(has(scale(x, 2.0f, 3.0), "argument 2 of 'scale' is a floating-point number"));
  std::uint16_t bits[3] = {};
  const Tensor half = runtime.devices().copy_to(Tensor::view(bits, DataType::float16, {3}), device);
  EXPECT_TRUE(has(scale(half, 2.0f, std::uint64_t{3}), "argument 0 of 'scale' is a tensor of f16, and its parameter"));
  const OpenclKernel local({.name = "k", .source = "__kernel void k(__local float* l, __global float* x) {}"},
                           &runtime);
  EXPECT_TRUE(
      has(error_text(ErrorCode::invalid_argument, [&] { local({3}, x, x); }), "'__local float*': pass LocalMemory"));
}

TEST_F(OpenclKernelTest, AFileThatItIncludesIsReadForEachNewKernel) {
  const auto folder = std::filesystem::temp_directory_path() / ("xrt_include" + std::to_string(getpid()));
  std::filesystem::create_directory(folder);
  const auto write = [&](int value) { std::ofstream(folder / "value.h") << "#define VALUE " << value << "\n"; };
  const OpenclKernelSpec spec = {
      .name = "put",
      .source = "#include \"value.h\"\n__kernel void put(__global float* x) { x[0] = VALUE; }",
      .flags = "-I " + folder.string()};
  const Tensor x = on_device({0});
  write(1);
  const OpenclKernel first(spec, &runtime);
  first({1}, x);
  EXPECT_EQ(read(x)[0], 1);
  write(2);
  OpenclKernel(spec, &runtime)({1}, x);
  EXPECT_EQ(read(x)[0], 2);
  first({1}, x);
  EXPECT_EQ(read(x)[0], 1) << "one that was built stays as it is";
  std::filesystem::remove_all(folder);
}

TEST_F(OpenclKernelTest, MoreWorkGroupsThanDriversCountAreRefused) {
  const Tensor x = on_device({1, 2, 3});
  const std::vector<FunctionArgument> arguments = {kernel_argument(x), kernel_argument(2.0f),
                                                   kernel_argument(std::uint64_t{3})};
  const auto refused = [&](const WorkSize& global, const WorkSize& local) {
    const OpenclKernel scale({.name = "scale", .source = scale_source, .work_group_size = local}, &runtime);
    return error_text(ErrorCode::invalid_argument, [&] { scale.run(arguments, global); });
  };
  EXPECT_TRUE(has(refused({1ull << 62}, {}),
                  "is more than 2^31 work-groups, as the driver may choose those of one item: "
                  "give it a work-group size"));
  EXPECT_TRUE(has(refused({(1ull << 31) + 1}, {}), "give it a work-group size"));
  EXPECT_TRUE(has(refused({1ull << 20, 1ull << 12}, {}), "the global size 1048576x4096 of 'scale'"));
  EXPECT_TRUE(has(refused({1ull << 45}, {16}), "is more than 2^31 work-groups of 16: use larger work-groups"));
  EXPECT_TRUE(has(refused({(1ull << 35) + 1}, {16}), "is more than 2^31 work-groups of 16"));
  const auto function = OpenclKernel({.name = "scale", .source = scale_source}, &runtime).function(device);
  const Status status = function->run({arguments, {std::size_t(-5), std::size_t(-5), 7}}, {});
  EXPECT_TRUE(has(status.message(), "more than 2^31 work-groups")) << status.message();
  EXPECT_EQ(read(x), (std::vector<float>{1, 2, 3}));
}

TEST_F(OpenclKernelTest, AFunctionTakesSizesWithZerosBehindThemToo) {
  const auto function = OpenclKernel({.name = "scale", .source = scale_source}, &runtime).function(device);
  const Tensor x = on_device({1, 2, 3});
  const std::vector<FunctionArgument> arguments = {kernel_argument(x), kernel_argument(2.0f),
                                                   kernel_argument(std::uint64_t{3})};
  Status status = function->run({arguments, {3}, {1}}, {});
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(read(x), (std::vector<float>{2, 4, 6}));
  status = function->run({arguments, {3, 0, 2}}, {});
  EXPECT_EQ(status.code(), ErrorCode::invalid_argument);
  const WorkGroupResult result = WorkGroupTuner().tune(*function, "scale", {arguments, {3}});
  EXPECT_EQ(result.global, (WorkSize{3, 1, 1}));
  const std::span<const FunctionArgument> few(arguments.data(), 2);
  EXPECT_TRUE(has(error_text(ErrorCode::invalid_argument,
                             [&] {
                               WorkGroupTuner().tune(*function, "scale", {few, {3}});
                             }),
                  "'scale' has 3 parameters, and 2 arguments were given"));
}

TEST_F(OpenclKernelTest, AValueOfAnotherSizeIsAnErrorThatNamesTheType) {
  const Tensor x = on_device({1, 2, 3});
  const auto call = [&](const std::string& type, const FunctionArgument& argument) {
    const OpenclKernel k({.name = "k", .source = "__kernel void k(__global float* x, " + type + " v) {}"}, &runtime);
    return error_text(ErrorCode::invalid_argument, [&] { k.run({kernel_argument(x), argument}, {1}); });
  };
  EXPECT_TRUE(
      has(call("ulong", kernel_argument(3)),
          "argument 1 of 'k', of 4 bytes, does not fit its parameter 'ulong', of 8: pass a number of exactly "));
  EXPECT_TRUE(has(call("float", kernel_argument(2.0)), "of 8 bytes, does not fit its parameter 'float', of 4"));
  EXPECT_TRUE(has(call("unsigned short", kernel_argument(3)), "does not fit its parameter 'unsigned short', of 2"));
  EXPECT_TRUE(
      has(call("float4", kernel_argument(2.0f)), "its parameter 'float4', of 16: pass all of its bytes as one"));
  EXPECT_TRUE(has(call("float4", kernel_argument(x)), "is 'float4': pass all of its bytes as one value"));
  FunctionArgument vector;
  vector.value.resize(16);
  EXPECT_EQ(call("float3", vector), "no error");
}

TEST_F(OpenclKernelTest, WrongSourcesAreErrorsThatShowTheLine) {
  const OpenclKernel broken({.name = "broken", .source = "// first\n__kernel void broken(void) { nowhere = 1; }\n"},
                            &runtime);
  EXPECT_TRUE(has(error_text(ErrorCode::device_error, [&] { broken.build(device); }),
                  "line 2: __kernel void broken(void) { nowhere = 1; }"));
  const OpenclKernel other({.name = "another", .source = scale_source}, &runtime);
  EXPECT_TRUE(has(error_text(ErrorCode::unknown_name, [&] { other.build(device); }), "no __kernel function 'another'"));
}

TEST(OpenclKernelSpec, IsCheckedWhenAKernelIsMade) {
  EXPECT_THROW(OpenclKernel({.source = scale_source}), Error);
  EXPECT_THROW(OpenclKernel({.name = "scale"}), Error);
  EXPECT_THROW(OpenclKernel({.name = "scale", .source = scale_source, .file = "scale.cl"}), Error);
  for (const char* path : {"/no/such/file.cl", "/tmp", "/dev/zero", "/dev/null"})
    EXPECT_THROW(OpenclKernel({.name = "scale", .file = path}), Error) << path;
  const auto with_nul = [](OpenclKernelSpec spec) {
    return OpenclKernelTest::error_text(ErrorCode::invalid_argument, [&] { const OpenclKernel kernel(spec); });
  };
  const std::string half("__kernel void k(void) {}\0 more", 30);
  EXPECT_NE(with_nul({.name = "k", .source = half}).find("the source of 'k' has a NUL character at byte 24"),
            std::string::npos);
  EXPECT_NE(with_nul({.name = "k", .source = scale_source, .flags = std::string("-D A\0B", 6)}).find("the flags of"),
            std::string::npos);
  const OpenclKernel one({.name = "scale", .source = scale_source}), two({.name = "scale", .source = scale_source});
  EXPECT_EQ(one.version(), two.version());
  EXPECT_NE(one.version(), OpenclKernel({.name = "scale", .source = scale_source, .flags = "-D X"}).version());
}

TEST(OpenclKernelSpec, TellsTheTypesOfItsParameters) {
  const auto types = [](const char* source) { return OpenclKernel({.name = "k", .source = source}).parameter_types(); };
  using Types = std::vector<std::string>;
  EXPECT_EQ(OpenclKernel({.name = "scale", .source = scale_source}).parameter_types(),
            (Types{"__global float*", "float", "ulong"}));
  EXPECT_EQ(
      types("__kernel void k(__global const float *restrict x, // a, b)\n  const int n, /* , */ __local int* l) {}"),
      (Types{"__global const float *restrict", "int", "__local int*"}));
  EXPECT_EQ(types("void k2(int n) {} __kernel void k(float x) {}"), Types{"float"});
  EXPECT_EQ(types("#define ARGS int n\n__kernel void other(void) {}"), Types{});
  EXPECT_EQ(types("#define ARGS int n, int m\n__kernel void k(ARGS, float x) {}"), Types{});
  EXPECT_EQ(types("__kernel void k(PTR(float) x, float y) {}"), Types{});
  EXPECT_EQ(types("__kernel void k(float x); __kernel void k(float y) {}"), Types{"float"});
  EXPECT_EQ(types("#ifdef A\n__kernel void k(float x) {}\n#else\n__kernel void k(int x) {}\n#endif"), Types{});
}

TEST_F(OpenclKernelTest, ServesAnOpWhoseKernelItIsRegisteredAs) {
  const OpenclKernel relu({.name = "my_relu", .source = relu_source}, &runtime);
  relu.register_for(OpId::relu);
  const Tensor x = on_device({-1, 2, -3, 4}), y = on_device({0, 0, 0, 0});
  const Tensor* inputs[] = {&x};
  const Tensor* outputs[] = {&y};
  runtime.dispatcher().dispatch({OpId::relu, inputs, outputs});
  EXPECT_EQ(read(y), (std::vector<float>{0.5, 2.5, 0.5, 4.5}));
  const Decision decision = runtime.dispatcher().explain(parse_problem("relu(f32[4])", device));
  EXPECT_EQ(decision.kernel, "my_relu");
  // What it does not take goes to others, or is refused with the reason.
  const auto list = runtime.registry().kernels(OpId::relu, DeviceType::opencl);
  const Verdict verdict =
      list.front()->supports(parse_problem("relu(f16[4])", device), runtime.devices().profile(device));
  EXPECT_FALSE(verdict.supported);
  EXPECT_TRUE(has(verdict.reason, "f16")) << verdict.reason;
}

TEST_F(OpenclKernelTest, IsNotRegisteredForAnOpWithOtherParameters) {
  const auto refused = [&](const std::string& parameters) {
    const std::string source = "__kernel void k(" + parameters + ") {}";
    return error_text(ErrorCode::invalid_argument,
                      [&] { OpenclKernel({.name = "k", .source = source}, &runtime).register_for(OpId::relu); });
  };
  EXPECT_TRUE(has(refused("__global float* in, __global float* out"),
                  "'k' has 2 parameters, and relu needs 3: 1 input, 1 output and the number of elements as a ulong"));
  EXPECT_TRUE(has(refused("__global float* a, __global float* b, __global float* c, ulong n"), "'k' has 4 parameters"));
  EXPECT_TRUE(has(refused("__global float* in, __global float* out, int n"), "parameter 2 of 'k' is 'int'"));
  EXPECT_TRUE(has(refused("__global float* in, ulong n, __global float* out"), "parameter 1 of 'k' is 'ulong'"));
  for (const auto& kernel : runtime.registry().kernels(OpId::relu, DeviceType::opencl)) EXPECT_NE(kernel->name(), "k");
}

TEST_F(OpenclKernelTest, OneWithTheWrongNumberOfParametersLeavesItsOpToTheNext) {
  // Hidden from whoever reads the source.
  const char* source = "#define BOTH __global float* in, __global float* out\n__kernel void hidden(BOTH) {}";
  OpenclKernel({.name = "hidden", .source = source}, &runtime).register_for(OpId::relu);
  const Tensor x = on_device({-1, 2}), y = on_device({7, 7});
  const Tensor* inputs[] = {&x};
  const Tensor* outputs[] = {&y};
  runtime.dispatcher().dispatch({OpId::relu, inputs, outputs});
  EXPECT_EQ(read(y), (std::vector<float>{0, 2}));
  const Decision decision = runtime.dispatcher().explain(parse_problem("relu(f32[2])", device));
  EXPECT_NE(decision.kernel, "hidden");
  ASSERT_FALSE(decision.candidates.empty());
  EXPECT_TRUE(has(decision.candidates.front().reason, "'hidden' has 2 parameters, and relu(f32[2]) @opencl:0 needs 3"))
      << decision.candidates.front().reason;
}

TEST_F(OpenclKernelTest, OneWithTooManyWorkGroupsLeavesItsOpToTheNext) {
  OpenclKernel({.name = "my_relu", .source = relu_source}, &runtime)
      .register_for(OpId::relu, {.global_size = [](const Problem&) { return WorkSize{1ull << 40}; }});
  const Decision decision = runtime.dispatcher().explain(parse_problem("relu(f32[4])", device));
  EXPECT_NE(decision.kernel, "my_relu");
  EXPECT_TRUE(has(decision.candidates.front().reason, "is more than 2^31 work-groups"))
      << decision.candidates.front().reason;
}

TEST_F(OpenclKernelTest, TuningRacesItsLocalSizesByToken) {
  const OpenclKernel relu({.name = "my_relu", .source = relu_source, .tune = true}, &runtime);
  relu.register_for(OpId::relu);
  const auto kernel = runtime.registry().kernels(OpId::relu, DeviceType::opencl).front();
  ASSERT_EQ(kernel->name(), "my_relu");
  EXPECT_EQ(kernel->version(), relu.version());
  const Problem problem = parse_problem("relu(f32[1000])", device);
  const PrepareContext context{device, runtime.devices().profile(device), runtime.devices().driver(device)};
  const auto tokens = kernel->variants(problem, context);
  ASSERT_GE(tokens.size(), 4u);
  for (const std::string& token : tokens) EXPECT_EQ(kernel->prepare(problem, context, token)->token(), token);
  EXPECT_THROW(kernel->prepare(problem, context, "local=3.5"), Error);
}

TEST_F(OpenclKernelTest, ALockReplaysItAndRefusesAnotherSourceAndOneThatIsNotRegistered) {
  const OpenclKernelSpec spec = {.name = "my_relu", .source = relu_source, .work_group_size = {32}};
  const OpenclKernel relu(spec, &runtime);
  relu.register_for(OpId::relu);
  Problem problem = parse_problem("relu(f32[1000])", device);
  problem.limits.deterministic = true;  // so that the outputs are in the lock too
  const auto lock = std::make_shared<const KernelLock>(record_lock(runtime, std::vector{problem}));
  const LockEntry& entry = lock->entries().begin()->second;
  EXPECT_EQ(entry.kernel, "my_relu");
  EXPECT_EQ(entry.kernel_version, relu.version());
  EXPECT_EQ(entry.plan, "local=32");
  EXPECT_FALSE(entry.outputs.empty());
  const auto verified = [&](const OpenclKernelSpec* registered) {
    Runtime other;
    if (registered != nullptr) OpenclKernel(*registered, &other).register_for(OpId::relu);
    return verify_lock(other, {lock}).results.at(0);
  };
  EXPECT_EQ(verified(&spec).outcome, ReplayOutcome::same) << verified(&spec).reason;
  EXPECT_TRUE(verified(&spec).outputs_compared);
  const ReplayResult missing = verified(nullptr);
  EXPECT_EQ(missing.outcome, ReplayOutcome::failed);
  EXPECT_TRUE(has(missing.reason, "my_relu")) << missing.reason;
  OpenclKernelSpec changed = spec;
  changed.source.insert(0, "// another text\n");
  const ReplayResult other = verified(&changed);
  EXPECT_EQ(other.outcome, ReplayOutcome::failed);
  EXPECT_TRUE(has(other.reason, "my_relu is version " + relu.version() + " in the lock")) << other.reason;
}

TEST_F(OpenclKernelTest, ALockBringsATunedLocalSizeBack) {
  const OpenclKernel relu({.name = "my_relu", .source = relu_source, .tune = true}, &runtime);
  relu.register_for(OpId::relu);
  const Problem problem = parse_problem("relu(f32[4096])", device);
  KernelLock lock = record_lock(runtime, std::vector{problem});
  LockEntry entry = lock.entries().begin()->second;
  entry.plan = "local=8";  // as tuning may have chosen it
  KernelLock tuned;
  tuned.add(entry, environment_at(runtime, device));
  const ScopedLock scope(runtime.dispatcher(), {std::make_shared<const KernelLock>(tuned)});
  EXPECT_EQ(runtime.dispatcher().explain(problem).plan, "local=8");
}

TEST_F(OpenclKernelTest, TuningItselfLeavesTheTensorsAlone) {
  const OpenclKernel scale({.name = "scale", .source = scale_source, .tune = true}, &runtime);
  const Tensor x = on_device({1, 2, 3, 4, 5, 6, 7, 8});
  const WorkGroupResult result =
      scale.tune({kernel_argument(x), kernel_argument(3.0f), kernel_argument(std::uint64_t{8})}, {8});
  EXPECT_EQ(result.kernel, "scale");
  EXPECT_GE(result.trials.size(), 4u);
  EXPECT_EQ(read(x)[7], 8) << "only copies were scaled";
  scale({8}, x, 3.0f, std::uint64_t{8});
  EXPECT_EQ(read(x)[7], 24) << "once";
}

TEST_F(OpenclKernelTest, ManyThreadsMayRunIt) {
  const OpenclKernel scale({.name = "scale", .source = scale_source}, &runtime);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&, i] {
      const Tensor x = on_device({1, 2});
      for (int round = 0; round < 5; ++round) scale({2}, x, static_cast<float>(i + 1), std::uint64_t{2});
      EXPECT_EQ(read(x)[0], static_cast<float>(std::pow(i + 1, 5)));
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace xpuruntime
