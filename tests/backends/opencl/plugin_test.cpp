#include <dlfcn.h>
#include <gtest/gtest.h>

#include "xpuruntime/registry/backend.h"

namespace xpuruntime {
namespace {

/// The module, opened as the library opens it. Never closed: drivers leave threads behind that run its code.
const PluginInfo* open_module() {
  void* library = dlopen(XRT_OPENCL_MODULE, RTLD_NOW | RTLD_LOCAL);
  EXPECT_NE(library, nullptr) << dlerror();
  return library ? static_cast<const PluginInfo*>(dlsym(library, "xpuruntime_plugin")) : nullptr;
}

TEST(OpenClPlugin, DeclaresTheContractItWasBuiltFor) {
  const PluginInfo* info = open_module();
  ASSERT_NE(info, nullptr);
  EXPECT_EQ(info->contract_version, backend_contract_version);
  EXPECT_EQ(info->struct_bytes, sizeof(PluginInfo));
  EXPECT_STREQ(info->compiler, XRT_PLUGIN_ABI);
}

TEST(OpenClPlugin, HasDevicesOrSaysWhyNot) {
  const PluginInfo* info = open_module();
  ASSERT_NE(info, nullptr);
  const std::unique_ptr<Backend> backend(info->create());
  EXPECT_EQ(backend->name(), "opencl");
  EXPECT_EQ(backend->device_type(), DeviceType::opencl);
  ASSERT_NE(backend->driver(), nullptr);
  EXPECT_EQ(backend->driver()->type(), DeviceType::opencl);
  EXPECT_EQ(backend->driver()->devices().empty(), !backend->driver()->why_absent().empty());
}

#if XRT_HAVE_OPENCL
TEST(OpenClPlugin, ListsItsKernelsFastestFirst) {
  const PluginInfo* info = open_module();
  ASSERT_NE(info, nullptr);
  const std::unique_ptr<Backend> backend(info->create());
  std::vector<std::string_view> products;
  for (const KernelSpec& row : backend->kernels()) {
    EXPECT_NE(row.prepare, nullptr) << row.name;
    if (row.ops.contains(OpId::matmul)) products.push_back(row.name);
  }
  ASSERT_GE(products.size(), 2u);
  EXPECT_EQ(products.back(), "MATMUL_DIRECT");
}
#else
TEST(OpenClPlugin, IsAStubThatSaysWhatToInstall) {
  const PluginInfo* info = open_module();
  ASSERT_NE(info, nullptr);
  const std::unique_ptr<Backend> backend(info->create());
  EXPECT_TRUE(backend->kernels().empty());
  EXPECT_EQ(backend->driver()->why_absent(),
            "this build has no OpenCL backend: install opencl-headers and build again");
  EXPECT_THROW(backend->driver()->allocate(0, 1), Error);
}
#endif

}  // namespace
}  // namespace xpuruntime
