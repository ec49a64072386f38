#include "registry/plugin.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "backends/cpu/backend.h"
#include "core/claimed_files.h"
#include "core/expect_error.h"
#include "registry/shared_object.h"
#include "xpuruntime/dispatch/dispatcher.h"
#include "xpuruntime/registry/catalogue.h"
#include "xpuruntime/registry/kernel_registry.h"

namespace xpuruntime {
namespace {

namespace fs = std::filesystem;

std::string plugin(const std::string& name) { return std::string(XRT_TEST_PLUGINS) + "/" + name + ".so"; }

class PluginTest : public ::testing::Test {
 protected:
  PluginTest() {
    std::string name = (fs::temp_directory_path() / "xrt_plugin_XXXXXX").string();
    folder = mkdtemp(name.data());
    registry.add_backend(make_cpu_backend());
    before = registry.kernels(OpId::relu, DeviceType::cpu).size();
  }
  ~PluginTest() override { fs::remove_all(folder); }

  void expect_refused(const std::string& path, ErrorCode code, const std::string& part) {
    const auto generation = registry.generation();
    expect_error(code, part, [&] { registry.load_plugin(path); });
    expect_error(code, "[load_plugin] '" + path + "'", [&] { registry.load_plugin(path); });
    EXPECT_EQ(registry.generation(), generation);
  }
  std::string write(const std::string& name, const std::string& text) const {
    const std::string path = (folder / name).string();
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }
  static std::string content(const std::string& path) {
    std::ifstream stream(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }

  fs::path folder;
  DeviceManager devices;
  KernelRegistry registry{devices};
  std::size_t before = 0;  // kernels of relu
};

TEST_F(PluginTest, AnOpenStoreIsRefusedBeforeItIsOpened) {
  const std::string path = write("store.sqlite", "SQLite");
  const FileClaim claim(path, *file_id(path));
  expect_refused(path, ErrorCode::io_error, "a store that this process has open");
}

TEST_F(PluginTest, AddsTheKernelsOfAGoodPlugin) {
  EXPECT_EQ(registry.load_plugin(plugin("good")), "good");
  const KernelList kernels = registry.kernels(OpId::relu, DeviceType::cpu);
  ASSERT_EQ(kernels.size(), before + 1);
  EXPECT_EQ(kernels.front()->name(), "plugin_relu");  // who loads a plugin wants it used
  EXPECT_FALSE(find_in_catalogue(OpId::relu, "plugin_relu").empty());
}

TEST_F(PluginTest, BringsADeviceTypeOfItsOwn) {
  registry.load_plugin(plugin("own_device"));
  const Device toy = parse_device("toy:1");
  ASSERT_TRUE(devices.has(toy));
  EXPECT_EQ(to_string(toy), "toy:1");
  EXPECT_EQ(DeviceProfile::from_json(devices.profile(toy).to_json()), devices.profile(toy));

  float values[] = {-1, 2, -3, 4};
  const Tensor x = devices.copy_to(Tensor::view(values, {4}), toy);
  const Tensor y = devices.allocate(DataType::float32, {4}, toy);
  const Tensor* inputs[] = {&x};
  const Tensor* outputs[] = {&y};
  Dispatcher dispatcher(registry);
  const Call call{OpId::relu, inputs, outputs};
  dispatcher.dispatch(call);
  const Decision decision = dispatcher.decide(call);
  EXPECT_EQ(decision.kernel, "toy_relu");
  EXPECT_EQ(to_string(decision.problem), "relu(f32[4]) @toy:1");
  EXPECT_EQ(parse_problem(to_string(decision.problem)), decision.problem);
  const Tensor back = devices.copy_to(y, {});
  EXPECT_EQ(std::vector<float>(back.as<float>(), back.as<float>() + 4), (std::vector<float>{0, 2, 0, 4}));
}

TEST_F(PluginTest, IsForwardOnlyWhereItDeclaresNothing) {
  registry.load_plugin(plugin("good"));
  const auto kernel = registry.kernels(OpId::relu, DeviceType::cpu).front();
  EXPECT_TRUE(kernel->supports(parse_problem("relu(f32[4])"), devices.profile({})).supported);
  EXPECT_EQ(kernel->supports(parse_problem("relu:backward(f32[4], f32[4])"), devices.profile({})).reason,
            "forward only");
}

TEST_F(PluginTest, HasTheVersionThatItDeclaresAndAHashOfItsFile) {
  const auto version_of = [&](const std::string& path) {
    KernelRegistry own(devices);
    own.load_plugin(path);
    return std::string(own.kernels(OpId::relu, DeviceType::cpu).front()->version());
  };
  const std::string first = version_of(plugin("good"));
  EXPECT_TRUE(first.starts_with("1.2 sha256:")) << first;
  EXPECT_TRUE(is_versioned(first));
  const std::string copy = write("copy.so", content(plugin("good")));
  EXPECT_EQ(version_of(copy), first);
  const std::string other = write("other.so", content(plugin("good")) + "!");  // another build of the same source
  EXPECT_NE(version_of(other), first);
}

TEST_F(PluginTest, OfTheLibraryItselfHasTheLibrarysVersion) {
  registry.load_plugin(plugin("good"), KernelOrigin::built_in);
  EXPECT_EQ(registry.kernels(OpId::relu, DeviceType::cpu).front()->version(), "");
}

TEST_F(PluginTest, RunsTheKernelOfAGoodPlugin) {
  registry.load_plugin(plugin("good"));
  const auto kernel = registry.kernels(OpId::relu, DeviceType::cpu).front();
  const Problem problem = parse_problem("relu(f32[4])");
  const auto plan = kernel->prepare(problem, {{}, devices.profile({}), devices.driver({})});
  EXPECT_EQ(plan->token(), "loop=plain");
  float in[4] = {-1, 2, -3, 4};
  float out[4] = {9, 9, 9, 9};
  const Tensor input = Tensor::view(in, DataType::float32, {4});
  const Tensor output = Tensor::view(out, DataType::float32, {4});
  const Tensor* inputs[] = {&input};
  const Tensor* outputs[] = {&output};
  EXPECT_TRUE(plan->run({inputs, outputs, nullptr, {}}).ok());
  EXPECT_EQ(std::vector<float>(out, out + 4), (std::vector<float>{0, 2, 0, 4}));
}

TEST_F(PluginTest, KeepsAPluginsKernelsUsableAfterTheRegistryIsGone) {
  KernelList kernels;
  {
    KernelRegistry own(devices);
    own.load_plugin(plugin("good"));
    kernels = own.kernels(OpId::relu, DeviceType::cpu);
  }
  EXPECT_EQ(kernels.at(0)->name(), "plugin_relu");
  EXPECT_TRUE(kernels.at(0)->supports(parse_problem("relu(f32[4])"), devices.profile({})).supported);
}

TEST_F(PluginTest, RefusesTheSamePluginTwiceAndKeepsTheFirst) {
  registry.load_plugin(plugin("good"));
  expect_invalid("already has a kernel 'plugin_relu'", [&] { registry.load_plugin(plugin("good")); });
  EXPECT_EQ(registry.kernels(OpId::relu, DeviceType::cpu).size(), before + 1);
}

TEST_F(PluginTest, RefusesAnotherContractVersion) {
  const auto number = [](std::uint32_t after) { return std::to_string(backend_contract_version + after); };
  expect_refused(plugin("other_version"), ErrorCode::not_supported,
                 "version " + number(41) + " of the backend contract, this is " + number(0));
}

TEST_F(PluginTest, RefusesAnotherSizeOfTheDescription) {
  expect_refused(plugin("other_size"), ErrorCode::not_supported, "rebuild it against these headers");
}

TEST_F(PluginTest, RefusesAnotherAbi) {
  expect_refused(plugin("other_abi"), ErrorCode::not_supported, "C++ ABI 'libc++-1'");
  expect_refused(plugin("no_abi"), ErrorCode::not_supported, "C++ ABI ''");
}

TEST_F(PluginTest, RefusesALibraryThatIsNoPlugin) {
  expect_refused(plugin("no_symbol"), ErrorCode::corrupt_data, "does not export xpuruntime_plugin");
  expect_refused(plugin("no_create"), ErrorCode::corrupt_data, "no create function");
}

TEST_F(PluginTest, SaysWhatAPluginThrewOnItsStart) {
  expect_refused(plugin("throws"), ErrorCode::device_error, "failed to start: no licence was found");
  expect_refused(plugin("throws_int"), ErrorCode::device_error, "failed to start: an exception");
}

TEST_F(PluginTest, RefusesAPluginThatMakesNoBackend) {
  expect_refused(plugin("makes_null"), ErrorCode::device_error, "made no backend");
}

TEST_F(PluginTest, KeepsNothingOfAPluginWithABadRow) {
  expect_invalid("second_row_is_not", [&] { registry.load_plugin(plugin("bad_row")); });
  EXPECT_EQ(registry.kernels(OpId::relu, DeviceType::cpu).size(), before);
  EXPECT_TRUE(find_in_catalogue(OpId::relu, "first_row_is_fine").empty());
}

TEST_F(PluginTest, NeverSearchesForAFile) {
  expect_refused("libm.so.6", ErrorCode::invalid_argument, "names no folder");
  expect_refused("", ErrorCode::invalid_argument, "names no folder; write the path of the file, such as ./plugin.so");
}

TEST_F(PluginTest, RefusesWhatIsNoFile) {
  expect_refused((folder / "missing.so").string(), ErrorCode::io_error, "does not exist");
  for (const std::string& path : {folder.string(), std::string("."), std::string("..")}) {
    expect_refused(path, ErrorCode::io_error, "is not a file; give the path of a shared library");
  }
}

TEST_F(PluginTest, RefusesFilesThatAreNoLibraries) {
  expect_refused(write("text.so", "this is a letter, not a library\n"), ErrorCode::corrupt_data,
                 "is not a shared library");
  expect_refused(write("empty.so", ""), ErrorCode::corrupt_data, "is not a shared library");
  expect_refused(write("zeros.so", std::string(10000, '\0')), ErrorCode::corrupt_data, "is not a shared library");
}

TEST_F(PluginTest, RefusesACopyThatWasCutOffAnywhere) {
  const std::string whole = content(plugin("good"));
  ASSERT_GT(whole.size(), 1000u);
  for (const std::size_t bytes : {std::size_t{4}, std::size_t{63}, std::size_t{64}, std::size_t{300}, std::size_t{4096},
                                  whole.size() / 2, whole.size() - 1}) {
    expect_refused(write("cut.so", whole.substr(0, bytes)), ErrorCode::corrupt_data, "is cut off");
  }
  EXPECT_EQ(flaw_of_shared_object(write("whole.so", whole)), "");
}

TEST_F(PluginTest, RefusesHeadersThatPromiseMoreThanThereIs) {
  std::string damaged = content(plugin("good"));
  std::fill_n(damaged.begin() + 32, 8, '\x7f');  // the offset of the segments
  expect_refused(write("damaged.so", damaged), ErrorCode::corrupt_data, "is cut off");
}

TEST_F(PluginTest, RefusesALibraryOfAnotherMachine) {
  std::string other = content(plugin("good"));
  other[4] = other[4] == 1 ? 2 : 1;  // 32 for 64 bits
  expect_refused(write("other.so", other), ErrorCode::corrupt_data, "for this machine");
}

}  // namespace
}  // namespace xpuruntime
