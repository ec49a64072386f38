// One source for every device of this machine: each kernel of each backend's table against float64, forced by name, and
// the name of the kernel that ran is asserted. A kernel that refuses a case is skipped there with its reason.

#include <gtest/gtest.h>

#include <thread>

#include "backends/oracle.h"
#include "xpuruntime/device/current.h"
#include "xpuruntime/device/workspace_pool.h"
#include "xpuruntime/runtime/runtime.h"

namespace xpuruntime {
namespace {

std::vector<std::string> cases() {
  std::vector<std::string> out;
  for (const char* dtype : {"f32", "f16", "bf16", "f64"}) {
    const std::string t = dtype;
    for (const auto& [m, n, k] : std::vector<std::array<int, 3>>{{1, 1, 1},
                                                                 {1, 64, 128},
                                                                 {1, 1000, 257},
                                                                 {2, 3, 5},
                                                                 {7, 13, 31},
                                                                 {16, 16, 16},
                                                                 {17, 33, 65},
                                                                 {64, 48, 80},
                                                                 {5, 1, 9}}) {
      const auto dims = [](int a, int b) { return "[" + std::to_string(a) + "," + std::to_string(b) + "]"; };
      out.push_back("matmul(" + t + dims(m, k) + ", " + t + dims(k, n) + ")");
      out.push_back("matmul(" + t + dims(m, k) + ", " + t + dims(n, k) + "; transpose_b=true)");
      out.push_back("matmul(" + t + dims(k, m) + ", " + t + dims(k, n) + "; transpose_a=true)");
    }
    out.push_back("matmul(" + t + "[4,8]{1,4}, " + t + "[8,6]{12,2})");  // column-major and every other column
    out.push_back("matmul(" + t + "[3,4,5], " + t + "[3,5,6])");         // batch
    out.push_back("matmul(" + t + "[2,1,4,5], " + t + "[3,5,6])");       // batch, broadcast
    out.push_back("matmul(" + t + "[5], " + t + "[5,6])");               // vectors
    out.push_back("matmul(" + t + "[4,5], " + t + "[5])");
    out.push_back("matmul(" + t + "[0,5], " + t + "[5,6])");  // nothing to write
    out.push_back("matmul(" + t + "[4,0], " + t + "[0,6])");  // nothing to sum: zeros
    out.push_back("add(" + t + "[1], " + t + "[1])");
    out.push_back("add(" + t + "[1000003], " + t + "[1000003])");
    out.push_back("add(" + t + "[7,1,5], " + t + "[3,1])");
    out.push_back("add(" + t + "[6,4]{1,6}, " + t + "[6,4])");
    out.push_back("add(" + t + "[], " + t + "[2,3])");
    out.push_back("add(" + t + "[0,3], " + t + "[3])");
    out.push_back("add(" + t + "[2,2,2,2,2,2,2,2], " + t + "[2,1,2,1,2,1,2,1])");
    out.push_back("relu(" + t + "[17,5])");
    out.push_back("softmax(" + t + "[5,33])");
    out.push_back("softmax(" + t + "[5,3,4]; dim=1)");
    for (const char* to : {"f32", "f16", "bf16", "f64"}) out.push_back("cast(" + t + "[1025]; dtype=" + to + ")");
  }
  out.push_back("add(i32[100], i32[100])");
  out.push_back("matmul(i8[5,7], i8[7,3])");
  out.push_back("matmul(f16[5,7], f32[7,3])");
  return out;
}

/// Every kernel of every device here, for every case of its op.
struct Subject {
  Device device;
  std::string kernel;
  std::string problem;
};

void PrintTo(const Subject& subject, std::ostream* out) {
  *out << subject.problem << " by " << subject.kernel << " on " << to_string(subject.device);
}

std::vector<Subject> subjects() {
  std::vector<Subject> out;
  Runtime& runtime = Runtime::global();
  for (const Device device : runtime.devices().devices()) {
    for (const std::string& text : cases()) {
      const Problem problem = parse_problem(text, device);
      for (const auto& kernel : runtime.registry().kernels(problem.op, device.type)) {
        out.push_back({device, std::string(kernel->name()), text});
      }
    }
  }
  return out;
}

class Conformance : public ::testing::TestWithParam<Subject> {};

TEST_P(Conformance, AgreesWithFloat64) {
  Runtime& runtime = Runtime::global();
  const Subject& subject = GetParam();
  const Problem problem = parse_problem(subject.problem, subject.device);
  KernelPolicy policy;
  policy.force(to_string(problem.op), subject.kernel);
  const ScopedPolicy scope(runtime.dispatcher(), policy);
  const Decision decision = runtime.dispatcher().explain(problem);
  if (decision.kernel.empty()) GTEST_SKIP() << decision.because;

  const oracle::Case run(problem, /*seed=*/std::hash<std::string>()(subject.problem));
  const oracle::Result result = run.through(runtime);
  EXPECT_EQ(result.kernel, subject.kernel);
  const std::string verdict = run.compare(result);
  EXPECT_TRUE(verdict.empty()) << verdict;
}

std::string name_of(const ::testing::TestParamInfo<Subject>& info) {
  std::string name = std::to_string(info.index) + "_" + to_string(info.param.device) + "_" + info.param.kernel;
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(EveryKernel, Conformance, ::testing::ValuesIn(subjects()), name_of);

/// What every backend must do beyond right numbers, on each device here.
class Contract : public ::testing::TestWithParam<Device> {
 protected:
  Runtime& runtime = Runtime::global();
  DeviceDriver& driver() { return runtime.devices().driver(GetParam()); }
  Problem problem(const std::string& text) { return parse_problem(text, GetParam()); }
};

TEST_P(Contract, EveryOpOfTheTableHasAKernelThatRuns) {
  for (const char* text : {"matmul(f32[8,8], f32[8,8])", "add(f32[8], f32[8])"}) {
    const oracle::Case run(problem(text), 1);
    const oracle::Result result = run.through(runtime);
    EXPECT_EQ(run.compare(result), "") << text;
    EXPECT_FALSE(result.kernel.empty());
  }
}

TEST_P(Contract, SeveralThreadsOnStreamsOfTheirOwn) {
  std::vector<std::thread> threads;
  std::vector<std::string> verdicts(4);
  for (std::size_t t = 0; t < verdicts.size(); ++t) {
    threads.emplace_back([&, t] {
      const Stream stream = driver().create_stream(GetParam().index);
      {
        const StreamGuard guard(GetParam(), stream);
        for (unsigned i = 0; i < 8 && verdicts[t].empty(); ++i) {
          const oracle::Case run(problem("matmul(f32[33,17], f32[17,29])"), 100 * t + i);
          verdicts[t] = run.compare(run.through(runtime));
        }
        runtime.devices().workspace(GetParam()).trim();  // blocks of a stream that goes
      }
      driver().destroy_stream(GetParam().index, stream);
    });
  }
  for (auto& thread : threads) thread.join();
  for (const std::string& verdict : verdicts) EXPECT_EQ(verdict, "");
}

TEST_P(Contract, APlanDroppedRightAfterItsLaunchFinishesItsWork) {
  Runtime own;  // its caches die at the end of the block, while the device may still be at work
  const oracle::Case run(problem("matmul(f32[256,256], f32[256,256])"), 7);
  const oracle::Result result = run.through(own, [&] {
    own.registry().invalidate();
    own.registry().get_or_create_selector(GetParam());
  });
  EXPECT_EQ(run.compare(result), "");
}

TEST_P(Contract, LoggedTimesComeFromTheDeviceWhereItIsAsynchronous) {
  Runtime own;
  own.dispatcher().enable_logging();
  const oracle::Case run(problem("matmul(f32[64,64], f32[64,64])"), 9);
  run.through(own);
  const auto entries = own.dispatcher().logs();
  ASSERT_FALSE(entries.empty());
  EXPECT_EQ(entries.front().device_time, driver().asynchronous());
  EXPECT_GT(entries.front().elapsed_us, 0);
}

TEST_P(Contract, MemoryThatIsNotThereIsATypedErrorAndTheDeviceGoesOn) {
  try {
    runtime.devices().allocate(DataType::float32, {std::int64_t{1} << 50}, GetParam());
    ADD_FAILURE() << "four petabytes were allocated";
  } catch (const Error& error) {
    EXPECT_EQ(to_string(error.code()), "out_of_memory") << error.what();
  }
  const oracle::Case run(problem("add(f32[8], f32[8])"), 3);
  EXPECT_EQ(run.compare(run.through(runtime)), "");
}

INSTANTIATE_TEST_SUITE_P(EveryDevice, Contract, ::testing::ValuesIn(Runtime::global().devices().devices()),
                         [](const auto& info) {
                           std::string name = to_string(info.param);
                           name[name.find(':')] = '_';
                           return name;
                         });

TEST(Devices, WorkAtTheSameTimeFromSeveralThreads) {
  Runtime& runtime = Runtime::global();
  const std::vector<Device> devices = runtime.devices().devices();
  std::vector<std::string> verdicts(2 * devices.size());
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < verdicts.size(); ++t) {
    threads.emplace_back([&, t] {
      // Each thread goes round all devices, so that every pair meets and current devices keep changing.
      for (std::size_t i = 0; i < 12 && verdicts[t].empty(); ++i) {
        const Device device = devices[(t + i) % devices.size()];
        const oracle::Case run(parse_problem("matmul(f32[19,23], f32[23,17])", device), 1000 * t + i);
        verdicts[t] = run.compare(run.through(runtime));
        if (current_device() != Device{}) verdicts[t] = "the caller's device was not restored";
      }
    });
  }
  for (auto& thread : threads) thread.join();
  for (const std::string& verdict : verdicts) EXPECT_EQ(verdict, "");
}

// Says on every machine which devices the suite above could not speak to.
TEST(Devices, AbsentTypesSayWhy) {
  Runtime& runtime = Runtime::global();
  for (const DeviceType type : {DeviceType::nvidia, DeviceType::opencl}) {
    if (runtime.devices().has({type, 0})) continue;
    const std::string why = runtime.devices().why_absent(type);
    EXPECT_FALSE(why.empty());
    RecordProperty(std::string(to_string(type)), why);
  }
}

}  // namespace
}  // namespace xpuruntime
