// What each profile of tests/data/profiles is answered, held against tests/data/answers.txt, which was written by
//   XRT_WRITE_ANSWERS=1 build/dev/tests/select_tests --gtest_filter='*ProfileAnswers*'
// on one architecture and holds on all: a kernel reads the problem and the profile, never the machine that it runs on.

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>

#include "backends/cpu/backend.h"
#include "xpuruntime/registry/backend.h"
#include "xpuruntime/select/select.h"

namespace xpuruntime {
namespace {

namespace fs = std::filesystem;

const fs::path data = XRT_TEST_DATA;
const fs::path answers_file = data / "answers.txt";

/// What tests/data/answers.txt says: of each problem, and under it of profiles that are answered the same.
struct Answers {
  std::vector<std::string> problems;                             // a new one is a line of its own
  std::map<std::string, std::map<std::string, std::string>> of;  // of[profile][problem]
};

Answers committed() {
  Answers answers;
  std::ifstream file(answers_file);
  EXPECT_TRUE(file) << answers_file;
  std::vector<std::string> profiles;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("    ")) {
      for (const std::string& profile : profiles) answers.of[profile][answers.problems.back()] += line + "\n";
    } else if (line.starts_with("  ")) {
      std::istringstream words(line);
      profiles.assign(std::istream_iterator<std::string>(words), {});
    } else {
      answers.problems.push_back(line);
    }
  }
  return answers;
}

void write(const Answers& answers) {
  std::ofstream file(answers_file);
  for (const std::string& problem : answers.problems) {
    file << problem << "\n";
    std::map<std::string, std::string> profiles;  // of an answer
    for (const auto& [profile, of] : answers.of) {
      if (const auto found = of.find(problem); found != of.end() && !found->second.empty())
        profiles[found->second] += " " + profile;
    }
    for (const auto& [answer, names] : profiles) file << " " << names << "\n" << answer;
  }
}

std::shared_ptr<Backend> backend_in(const char* module) {
  void* library = dlopen(module, RTLD_NOW | RTLD_LOCAL);
  const auto* info = library == nullptr ? nullptr : static_cast<const PluginInfo*>(dlsym(library, "xpuruntime_plugin"));
  return std::shared_ptr<Backend>(info == nullptr ? nullptr : info->create());
}

std::shared_ptr<Backend> backend_for(DeviceType type) {
  if (type == DeviceType::cpu) return make_cpu_backend();
  return backend_in(type == DeviceType::nvidia ? XRT_CUDA_MODULE : XRT_OPENCL_MODULE);
}

/// A line for each kernel with its verdict and reason; those passed over without one are on a line together.
std::string answer(const Backend& backend, const DeviceProfile& profile, const std::string& text) {
  const Problem problem = parse_problem(text, {profile.type, 0});
  std::vector<std::shared_ptr<const Kernel>> kernels, copy_kernels;
  for (const KernelSpec& row : backend.kernels()) {
    if (row.ops.contains(problem.op)) kernels.push_back(make_kernel(row, problem.op, profile.type, ""));
    if (row.ops.contains(OpId::copy)) copy_kernels.push_back(make_kernel(row, OpId::copy, profile.type, ""));
  }
  if (kernels.empty()) return {};
  for (const auto& kernel : kernels)
    EXPECT_NO_THROW(kernel->supports(problem, profile)) << kernel->name() << " " << text;
  SelectionInputs inputs{problem, profile, kernels, {}, {}, builtin_rules()};
  inputs.described = true;
  inputs.copy_kernels = copy_kernels;
  std::string out;
  bool listing = false;
  for (const Candidate& candidate : select(inputs).decision.candidates) {
    const bool listed = candidate.outcome == Outcome::passed && candidate.reason.empty();
    if (listed && listing) {
      out.insert(out.size() - 1, ", " + candidate.kernel);
    } else {
      out += "    " + std::string(to_string(candidate.outcome)) + " " + candidate.kernel +
             (candidate.reason.empty() ? "" : ": " + candidate.reason) + "\n";
    }
    listing = listed;
  }
  return out;
}

class ProfileAnswers : public ::testing::TestWithParam<std::string> {};

TEST_P(ProfileAnswers, AreTheSameOnEveryMachine) {
  const DeviceProfile profile = DeviceProfile::load(data / "profiles" / (GetParam() + ".json"));
  const std::shared_ptr<Backend> backend = backend_for(profile.type);
  ASSERT_NE(backend, nullptr);
  if (backend->kernels().empty()) GTEST_SKIP() << backend->driver()->why_absent();
  if (profile.type == DeviceType::cpu && !backend->driver()->devices()[0].library_versions.contains("onednn")) {
    GTEST_SKIP() << "this build has no oneDNN, and says so for every problem";
  }
  Answers answers = committed();
  std::map<std::string, std::string>& said = answers.of[GetParam()];
  const bool rewrite = std::getenv("XRT_WRITE_ANSWERS") != nullptr;
  for (const std::string& problem : answers.problems) {
    const std::string now = answer(*backend, profile, problem);
    if (rewrite) said[problem] = now;
    EXPECT_EQ(now, said[problem]) << problem;
  }
  if (rewrite) write(answers);
}

std::vector<std::string> profiles() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(data / "profiles")) names.push_back(entry.path().stem());
  std::sort(names.begin(), names.end());
  return names;
}

INSTANTIATE_TEST_SUITE_P(EveryProfile, ProfileAnswers, ::testing::ValuesIn(profiles()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace xpuruntime
