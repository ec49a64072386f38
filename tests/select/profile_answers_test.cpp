// What each profile of tests/data/profiles is answered, held against tests/data/answers, which was written by
//   XRT_WRITE_ANSWERS=1 build/dev/tests/select_tests --gtest_filter='*ProfileAnswers*'
// on one architecture and holds on all: a kernel reads the problem and the profile, never the machine that it runs on.

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "backends/cpu/backend.h"
#include "xpuruntime/registry/backend.h"
#include "xpuruntime/select/select.h"

namespace xpuruntime {
namespace {

namespace fs = std::filesystem;

const fs::path data = XRT_TEST_DATA;

std::string text_of(const fs::path& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// Those of a CPU, which has kernels for every op. A new one is a line of its own there.
std::vector<std::string> problems() {
  std::ifstream file(data / "answers" / "xeon_amx.txt");
  std::vector<std::string> texts;
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("  ")) texts.push_back(line);
  }
  return texts;
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

/// The problem, and a line for each kernel: its verdict, name and reason.
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
  std::string out = text + "\n";
  for (const Candidate& candidate : select(inputs).decision.candidates) {
    out += "  " + std::string(to_string(candidate.outcome)) + " " + candidate.kernel +
           (candidate.reason.empty() ? "" : ": " + candidate.reason) + "\n";
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
  std::string answers;
  static const std::vector<std::string> asked = problems();  // before any is written anew
  for (const std::string& text : asked) answers += answer(*backend, profile, text);
  const fs::path path = data / "answers" / (GetParam() + ".txt");
  if (std::getenv("XRT_WRITE_ANSWERS") != nullptr) std::ofstream(path) << answers;
  EXPECT_EQ(answers, text_of(path));
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
