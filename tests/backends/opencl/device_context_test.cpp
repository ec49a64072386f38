#include "backends/opencl/device_context.h"

#include <thread>

#include "backends/opencl/device_fixture.h"

namespace xpuruntime::opencl {
namespace {

using DeviceContextTest = OpenClTest;

constexpr std::string_view good = "__kernel void nothing(void) {}";
constexpr std::string_view bad = "__kernel void broken(void) { not_declared_anywhere = 1; }";

DeviceContext& context_of(OpenClDriver& driver) { return driver.context(0); }

std::string error_of_building(DeviceContext& context, std::string_view source, const std::string& options) {
  try {
    context.program(source, options);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::device_error);
    return error.what();
  }
  return {};
}

TEST_F(DeviceContextTest, BuildsAProgramOnceForEachSetOfOptions) {
  DeviceContext& context = context_of(driver());
  const auto first = context.program(good, "");
  EXPECT_EQ(context.program(good, ""), first);
  EXPECT_NE(context.program(good, "-D SOMETHING=1"), first);
}

TEST_F(DeviceContextTest, AProgramThatMayReadOtherFilesIsBuiltEachTime) {
  DeviceContext& context = context_of(driver());
  const std::string source = "#if 0\n# include \"nowhere.h\"\n#endif\n" + std::string(good);
  const auto first = context.program(source, "", false);
  EXPECT_NE(context.program(source, "", false), first);
  EXPECT_EQ(context.program(good, "", false), context.program(good, "", false));
}

TEST_F(DeviceContextTest, BuildsAProgramOnceForManyThreads) {
  DeviceContext context(driver().context(0).device());
  std::vector<std::shared_ptr<Program>> got(4);
  std::vector<std::thread> threads;
  for (auto& slot : got) threads.emplace_back([&] { slot = context.program(good, "-D THREADS"); });
  for (std::thread& thread : threads) thread.join();
  for (const auto& slot : got) EXPECT_EQ(slot, got[0]);
}

TEST_F(DeviceContextTest, AFailedBuildShowsTheLogAndTheOptions) {
  const std::string text = error_of_building(context_of(driver()), bad, "-D MARK=1");
  EXPECT_EQ(text.find("[opencl::build] "), 0u) << text;
  EXPECT_NE(text.find("-D MARK=1"), std::string::npos) << text;
  EXPECT_NE(text.find("not_declared_anywhere"), std::string::npos) << text;
  EXPECT_LT(std::count(text.begin(), text.end(), '\n'), 12) << text;
}

TEST_F(DeviceContextTest, WrongOptionsAreAnErrorThatShowsThem) {
  const std::string text = error_of_building(context_of(driver()), good, "-no-such-option");
  EXPECT_NE(text.find("-no-such-option"), std::string::npos) << text;
}

TEST_F(DeviceContextTest, AFailureIsNotKept) {
  DeviceContext& context = context_of(driver());
  EXPECT_NE(error_of_building(context, bad, "-D AGAIN"), "");
  EXPECT_NE(error_of_building(context, bad, "-D AGAIN"), "");
  EXPECT_EQ(error_of_building(context, good, "-D AGAIN"), "");
}

}  // namespace
}  // namespace xpuruntime::opencl
