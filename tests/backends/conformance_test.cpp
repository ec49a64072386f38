// One source for every device of this machine: each kernel of each backend's table against float64, forced by name, and
// the name of the kernel that ran is asserted. Kernels are tried on the cases they say yes to; tests/backends/cpu
// checks that these are enough.

#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <optional>
#include <set>
#include <thread>

#include "backends/cases.h"
#include "backends/oracle.h"
#include "xpuruntime/device/current.h"
#include "xpuruntime/device/workspace_pool.h"
#include "xpuruntime/runtime/runtime.h"

namespace xpuruntime {
namespace {

/// A kernel of a device here, and a case that it takes.
struct Subject {
  Device device;
  std::string kernel;
  cases::CaseText text;
};

void PrintTo(const Subject& subject, std::ostream* out) {
  *out << subject.text.problem << (subject.text.fill == oracle::Fill::special ? " with special values" : "") << " by "
       << subject.kernel << " on " << to_string(subject.device);
}

std::optional<Problem> problem_of(const cases::CaseText& text, Device device) {
  try {
    return parse_problem(text.problem, device);
  } catch (const Error&) {
    return std::nullopt;  // EveryCaseIsAProblem reports it; here it would end the process
  }
}

TEST(Cases, EveryCaseIsAProblem) {
  for (const cases::CaseText& text : cases::all()) EXPECT_NO_THROW(parse_problem(text.problem)) << text.problem;
  EXPECT_GT(cases::all().size(), 3000u);
}

std::vector<Subject> subjects() {
  std::vector<Subject> out;
  Runtime& runtime = Runtime::global();
  for (const Device device : runtime.devices().devices()) {
    const DeviceProfile& profile = runtime.devices().profile(device);
    for (const cases::CaseText& text : cases::to_run()) {
      const std::optional<Problem> problem = problem_of(text, device);
      if (!problem) continue;
      for (const auto& kernel : runtime.registry().kernels(problem->op, device.type)) {
        if (kernel->supports(*problem, profile).supported) out.push_back({device, std::string(kernel->name()), text});
      }
    }
  }
  return out;
}

class Conformance : public ::testing::TestWithParam<Subject> {};

/// Forces the subject's kernel and checks that it takes the problem.
KernelPolicy forced(const Subject& subject) {
  KernelPolicy policy;
  policy.force(to_string(parse_problem(subject.text.problem).op), subject.kernel);
  return policy;
}

TEST_P(Conformance, AgreesWithFloat64) {
  Runtime& runtime = Runtime::global();
  const Subject& subject = GetParam();
  const ScopedPolicy scope(runtime.dispatcher(), forced(subject));
  const auto run = oracle::case_of(subject.text.problem, subject.device, subject.text.fill);
  const oracle::Result result = run->through(runtime);
  EXPECT_EQ(result.kernel, subject.kernel);
  EXPECT_EQ(run->compare(result), "");
}

std::string name_of(const ::testing::TestParamInfo<Subject>& info) {
  const std::string op(info.param.text.problem, 0, info.param.text.problem.find('('));
  std::string name =
      std::to_string(info.index) + "_" + to_string(info.param.device) + "_" + op + "_" + info.param.kernel;
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(EveryKernel, Conformance, ::testing::ValuesIn(subjects()), name_of);

/// What a device's kernels are tried on above, and what not.
struct Coverage {
  std::size_t cases = 0;  // a kernel and a problem
  std::set<std::string> problems = {}, kernels = {}, dtypes = {}, untried = {};
  std::map<std::string, std::size_t> left_out = {};  // problems by the reason
};

Coverage coverage_of(Device device) {
  Runtime& runtime = Runtime::global();
  const DeviceProfile& profile = runtime.devices().profile(device);
  Coverage found;
  for (const OpId op : runtime.registry().registered_ops())
    for (const auto& kernel : runtime.registry().kernels(op, device.type)) found.untried.emplace(kernel->name());
  for (const cases::CaseText& text : cases::to_run()) {
    const std::optional<Problem> problem = problem_of(text, device);
    if (!problem) continue;
    std::string reason = "no kernel of their ops";
    bool runs = false;
    for (const auto& kernel : runtime.registry().kernels(problem->op, device.type)) {
      const Verdict verdict = kernel->supports(*problem, profile);
      reason = verdict.reason;  // that of the last, which takes the most
      if (!verdict.supported) continue;
      runs = true;
      ++found.cases;
      found.kernels.emplace(kernel->name());
      found.untried.erase(std::string(kernel->name()));
    }
    if (!runs) {
      ++found.left_out[reason];
      continue;
    }
    found.problems.insert(text.problem);
    for (const TensorSpec& input : problem->inputs) found.dtypes.emplace(to_string(input.dtype));
  }
  return found;
}

std::string joined(const std::set<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

/// tools/run_tests.sh shows the lines that begin with "conformance".
void print_coverage(Device device, const Coverage& found) {
  const std::string head = "conformance " + to_string(device) + ": ";
  std::cout << head << found.cases << " cases of " << found.problems.size() << " problems by " << found.kernels.size()
            << " kernels, in " << found.dtypes.size() << " dtypes (" << joined(found.dtypes) << ")\n";
  if (!found.untried.empty()) std::cout << head << "kernels that take no case: " << joined(found.untried) << "\n";
  std::vector<std::pair<std::size_t, std::string>> reasons;
  std::size_t all = 0;
  for (const auto& [reason, count] : found.left_out) {
    reasons.emplace_back(count, reason);
    all += count;
  }
  std::sort(reasons.rbegin(), reasons.rend());
  std::cout << head << all << " problems left out";
  constexpr std::size_t shown = 12;
  for (std::size_t i = 0; i < reasons.size() && i < shown; ++i)
    std::cout << (i == 0 ? ": " : "; ") << reasons[i].first << " " << reasons[i].second;
  if (reasons.size() > shown) std::cout << "; and " << reasons.size() - shown << " more reasons";
  std::cout << std::endl;
}

/// By the name of a device type: what Conformance runs on its devices, so that one that is not there shows.
class ConformanceOf : public ::testing::TestWithParam<std::string> {};

TEST_P(ConformanceOf, ItsDevices) {
  DeviceManager& devices = Runtime::global().devices();
  std::size_t count = 0;
  for (const Device device : devices.devices()) {
    if (to_string(device.type) != GetParam()) continue;
    const Coverage found = coverage_of(device);
    print_coverage(device, found);
    EXPECT_GT(found.cases, 100u);
    ++count;
  }
  if (count > 0) return;
  const std::string why = devices.why_absent(parse_device_type(GetParam()));
  std::cout << "conformance " << GetParam() << ": nothing ran: " << why << std::endl;
  GTEST_SKIP() << why;
}

INSTANTIATE_TEST_SUITE_P(EveryBackend, ConformanceOf, ::testing::Values("cpu", "cuda", "opencl"),
                         [](const auto& info) { return info.param; });

bool works_in_place(const Problem& problem) {
  if (problem.direction == Direction::backward) return false;
  const auto over = oracle::inputs_to_overwrite(problem);
  return std::any_of(over.begin(), over.end(), [](const auto& input) { return input.has_value(); });
}

TEST(ConformanceInPlace, KernelsMayWriteOverTheInputsThatTheOpsRowNames) {
  Runtime& runtime = Runtime::global();
  std::size_t ran = 0;
  for (const Subject& subject : subjects()) {
    if (!works_in_place(parse_problem(subject.text.problem))) continue;
    const ScopedPolicy scope(runtime.dispatcher(), forced(subject));
    const auto run = oracle::case_of(subject.text.problem, subject.device, subject.text.fill);
    const oracle::Result result = run->in_place(runtime);
    EXPECT_EQ(result.kernel, subject.kernel);
    EXPECT_EQ(run->compare(result), "") << ::testing::PrintToString(subject);
    ++ran;
  }
  EXPECT_GT(ran, 50u);  // of the shortest list that is run, every 21st case
}

/// What every backend must do beyond right numbers, on each device here.
class Contract : public ::testing::TestWithParam<Device> {
 protected:
  Runtime& runtime = Runtime::global();
  DeviceDriver& driver() { return runtime.devices().driver(GetParam()); }
  Problem problem(const std::string& text) { return parse_problem(text, GetParam()); }
};

// By the choice that is made where nobody forces one.
TEST_P(Contract, EveryOpOfTheTableIsRightByTheKernelThatIsChosen) {
  constexpr int cases_of_each_op = 12;
  std::map<OpId, int> ran;
  for (const cases::CaseText& text : cases::to_run()) {
    const std::optional<Problem> asked = problem_of(text, GetParam());
    if (!asked || ran[asked->op] >= cases_of_each_op) continue;
    if (runtime.dispatcher().explain(*asked).kernel.empty()) continue;
    const auto run = oracle::case_of(text.problem, GetParam(), text.fill);
    EXPECT_EQ(run->compare(run->through(runtime)), "") << text.problem;
    ++ran[asked->op];
  }
  for (const OpId op : runtime.registry().registered_ops()) {
    const bool here = !runtime.registry().kernels(op, GetParam().type).empty();
    EXPECT_EQ(ran[op] > 0, here) << to_string(op);
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
