#include "xpuruntime/registry/kernel_registry.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>

#include "core/expect_error.h"
#include "device/fake_driver.h"
#include "xpuruntime/registry/catalogue.h"

namespace xpuruntime {
namespace {

std::unique_ptr<const Plan> prepare_none(const Problem&, const PrepareContext&) { return nullptr; }

/// A backend around any rows and driver.
class RowsBackend final : public Backend {
 public:
  explicit RowsBackend(std::vector<KernelSpec> rows, std::shared_ptr<DeviceDriver> driver = nullptr,
                       DeviceType type = DeviceType::npu)
      : rows_(std::move(rows)), driver_(std::move(driver)), type_(type) {}
  std::string_view name() const override { return "rows"; }
  DeviceType device_type() const override { return type_; }
  std::shared_ptr<DeviceDriver> driver() override { return driver_; }
  std::span<const KernelSpec> kernels() const override { return rows_; }

 private:
  std::vector<KernelSpec> rows_;
  std::shared_ptr<DeviceDriver> driver_;
  DeviceType type_;
};

std::shared_ptr<Backend> backend_of(std::vector<KernelSpec> rows, std::shared_ptr<DeviceDriver> driver = nullptr) {
  return std::make_shared<RowsBackend>(std::move(rows), std::move(driver));
}

KernelSpec row(OpId op, std::string_view name) { return {op, name, "a row", any_dtype, prepare_none}; }

std::shared_ptr<const Kernel> kernel_of(OpId op, std::string name, DeviceType type = DeviceType::npu) {
  FunctionKernel function;
  function.op = op;
  function.name = std::move(name);
  function.device_type = type;
  function.run = [](const Problem&, const RunArguments&) { return Status(); };
  return make_kernel(std::move(function));
}

std::vector<std::string> names_of(const KernelList& kernels) {
  std::vector<std::string> names;
  for (const auto& kernel : kernels) names.emplace_back(kernel->name());
  return names;
}
using Names = std::vector<std::string>;

class KernelRegistryTest : public ::testing::Test {
 protected:
  Names relu_names() const { return names_of(registry.kernels(OpId::relu, DeviceType::npu)); }

  DeviceManager devices;
  KernelRegistry registry{devices};
};

TEST_F(KernelRegistryTest, IsEmptyAtFirst) {
  EXPECT_TRUE(registry.registered_ops().empty());
  EXPECT_TRUE(relu_names().empty());
  EXPECT_TRUE(registry.kernel_names(OpId::relu).empty());
}

TEST_F(KernelRegistryTest, RefusesABackendWhoseVersionStandsForNone) {
  class Versioned final : public Backend {
    std::string_view name() const override { return "versioned"; }
    DeviceType device_type() const override { return DeviceType::npu; }
    std::string_view version() const override { return "unversioned build"; }
    std::shared_ptr<DeviceDriver> driver() override { return nullptr; }
    std::span<const KernelSpec> kernels() const override { return {}; }
  };
  expect_error(ErrorCode::invalid_argument, "means no version; give another",
               [&] { registry.add_backend(std::make_shared<Versioned>(), KernelOrigin::third_party); });
}

TEST_F(KernelRegistryTest, KeepsABackendsRowsInTableOrder) {
  registry.add_backend(backend_of({row(OpId::relu, "fast"), row(OpId::gelu, "other"), row(OpId::relu, "reference")}));
  EXPECT_EQ(relu_names(), (Names{"fast", "reference"}));
  EXPECT_EQ(registry.registered_ops(), (std::vector<OpId>{OpId::relu, OpId::gelu}));
}

TEST_F(KernelRegistryTest, AddsTheBackendsDriver) {
  registry.add_backend(backend_of({}, std::make_shared<testing::FakeDriver>()));
  EXPECT_TRUE(devices.has({DeviceType::npu, 1}));
}

TEST_F(KernelRegistryTest, KeepsTheBackendAliveAsLongAsItself) {
  std::weak_ptr<Backend> watched;
  {
    KernelRegistry own(devices);
    auto backend = backend_of({row(OpId::relu, "fast")});
    watched = backend;
    own.add_backend(std::move(backend));
    EXPECT_FALSE(watched.expired());
  }
  EXPECT_TRUE(watched.expired());
}

TEST_F(KernelRegistryTest, TakesVersionsThatAreAShortLineOfText) {
  const auto add = [&](const std::string& version) {
    FunctionKernel kernel{.op = OpId::relu, .name = "mine"};
    kernel.run = [](const Problem&, const RunArguments&) { return Status(); };
    kernel.version = version;
    registry.register_kernel(make_kernel(std::move(kernel)));
  };
  for (const std::string& bad : {std::string("two\nlines"), std::string(129, 'x'), std::string("\xc3\xa9")}) {
    expect_invalid("1 to 128 printable ASCII characters", [&] { add(bad); });
  }
  EXPECT_TRUE(registry.kernels(OpId::relu, DeviceType::cpu).empty());
  add("2024-05 beta");
  EXPECT_EQ(registry.kernels(OpId::relu, DeviceType::cpu).front()->version(), "2024-05 beta");
}

TEST_F(KernelRegistryTest, GivesABackendsVersionToItsKernels) {
  struct Versioned final : Backend {
    std::string_view name() const override { return "versioned"; }
    DeviceType device_type() const override { return DeviceType::cpu; }
    std::shared_ptr<DeviceDriver> driver() override { return nullptr; }
    std::span<const KernelSpec> kernels() const override { return rows; }
    std::string_view version() const override { return "3"; }
    std::vector<KernelSpec> rows = {row(OpId::relu, "versioned")};
  };
  registry.add_backend(std::make_shared<Versioned>());
  EXPECT_EQ(registry.kernels(OpId::relu, DeviceType::cpu).front()->version(), "3");
  registry.add_backend(backend_of({row(OpId::gelu, "silent")}));
  EXPECT_FALSE(is_versioned(registry.kernels(OpId::gelu, DeviceType::npu).front()->version()));
  registry.add_backend(backend_of({row(OpId::silu, "own")}), KernelOrigin::built_in);
  EXPECT_EQ(registry.kernels(OpId::silu, DeviceType::npu).front()->version(), "");
}

/// A backend that is refused leaves no kernel, no driver, no name and no new generation behind.
class BadBackend : public KernelRegistryTest, public ::testing::WithParamInterface<int> {};

std::vector<KernelSpec> bad_rows(int kind) {
  static const std::string long_name(65, 'x');
  std::vector<KernelSpec> rows = {row(OpId::relu, "left_behind"), row(OpId::relu, "bad")};
  switch (kind) {
    case 0:
      rows[1].ops = {};
      break;
    case 1:
      rows[1].prepare = nullptr;
      break;
    case 2:
      rows[1].name = "";
      break;
    case 3:
      rows[1].name = "has space";
      break;
    case 4:
      rows[1].name = long_name;
      break;
    case 5:
      rows[1].ops = {OpId::relu, static_cast<OpId>(60000)};
      break;
    default:
      rows[1].name = "left_behind";
      break;
  }
  return rows;
}

TEST_P(BadBackend, LeavesNothingBehind) {
  const auto generation = registry.generation();
  const auto known = catalogue().size();
  EXPECT_THROW(registry.add_backend(backend_of(bad_rows(GetParam()), std::make_shared<testing::FakeDriver>())), Error);
  EXPECT_TRUE(relu_names().empty());
  EXPECT_TRUE(registry.registered_ops().empty());
  EXPECT_FALSE(devices.has({DeviceType::npu, 0}));
  EXPECT_EQ(registry.generation(), generation);
  EXPECT_EQ(catalogue().size(), known);
}

INSTANTIATE_TEST_SUITE_P(Rows, BadBackend, ::testing::Range(0, 7));

TEST_F(KernelRegistryTest, LeavesNothingOfABackendWhoseDriverIsOneTooMany) {
  registry.add_backend(backend_of({}, std::make_shared<testing::FakeDriver>()));
  const auto generation = registry.generation();
  expect_invalid("there is a driver for npu already", [&] {
    registry.add_backend(backend_of({row(OpId::relu, "never_added")}, std::make_shared<testing::FakeDriver>()));
  });
  EXPECT_TRUE(relu_names().empty());
  EXPECT_TRUE(find_in_catalogue(OpId::relu, "never_added").empty());
  EXPECT_EQ(registry.generation(), generation);
}

TEST_F(KernelRegistryTest, RefusesANullBackendAndANullKernel) {
  expect_invalid("null backend", [&] { registry.add_backend(nullptr); });
  expect_invalid("null kernel", [&] { registry.register_kernel(nullptr); });
}

TEST_F(KernelRegistryTest, RefusesASecondBackendWithATakenName) {
  registry.add_backend(backend_of({row(OpId::relu, "fast")}));
  expect_invalid("relu on npu already has a kernel 'fast'", [&] {
    registry.add_backend(backend_of({row(OpId::gelu, "new"), row(OpId::relu, "fast")}));
  });
  EXPECT_EQ(relu_names(), Names{"fast"});
  EXPECT_TRUE(registry.kernels(OpId::gelu, DeviceType::npu).empty());
}

TEST_F(KernelRegistryTest, PutsRegisteredKernelsFirstNewestFirst) {
  registry.add_backend(backend_of({row(OpId::relu, "table")}));
  registry.register_kernel(kernel_of(OpId::relu, "older"));
  registry.register_kernel(kernel_of(OpId::relu, "newer"));
  EXPECT_EQ(relu_names(), (Names{"newer", "older", "table"}));
}

TEST_F(KernelRegistryTest, RefusesARegisteredKernelWithATakenName) {
  registry.register_kernel(kernel_of(OpId::relu, "mine"));
  expect_invalid("already has a kernel 'mine'", [&] { registry.register_kernel(kernel_of(OpId::relu, "mine")); });
  EXPECT_NO_THROW(registry.register_kernel(kernel_of(OpId::relu, "mine", DeviceType::cpu)));
  EXPECT_NO_THROW(registry.register_kernel(kernel_of(OpId::gelu, "mine")));
}

TEST_F(KernelRegistryTest, RefusesNamesThatCouldNotBeWrittenInAPolicy) {
  for (const char* name : {"", "a b", "a/b", "ä", "a\n"}) {
    expect_invalid("is not a valid kernel name", [&] { registry.register_kernel(kernel_of(OpId::relu, name)); });
  }
}

TEST_F(KernelRegistryTest, UnregistersOnlyWhatWasRegistered) {
  registry.add_backend(backend_of({row(OpId::relu, "table")}));
  registry.register_kernel(kernel_of(OpId::relu, "mine"));
  EXPECT_FALSE(registry.unregister_kernel(OpId::relu, DeviceType::npu, "table"));
  EXPECT_FALSE(registry.unregister_kernel(OpId::relu, DeviceType::cpu, "mine"));
  EXPECT_FALSE(registry.unregister_kernel(OpId::gelu, DeviceType::npu, "mine"));
  EXPECT_TRUE(registry.unregister_kernel(OpId::relu, DeviceType::npu, "mine"));
  EXPECT_FALSE(registry.unregister_kernel(OpId::relu, DeviceType::npu, "mine"));
  EXPECT_EQ(relu_names(), Names{"table"});
}

TEST_F(KernelRegistryTest, ForgetsAnOpWhoseLastKernelWentButNotTheName) {
  registry.register_kernel(kernel_of(OpId::silu, "only_silu"));
  EXPECT_EQ(registry.registered_ops(), std::vector<OpId>{OpId::silu});
  registry.unregister_kernel(OpId::silu, DeviceType::npu, "only_silu");
  EXPECT_TRUE(registry.registered_ops().empty());
  EXPECT_FALSE(find_in_catalogue(OpId::silu, "only_silu").empty());
  EXPECT_NO_THROW(registry.register_kernel(kernel_of(OpId::silu, "only_silu")));
}

TEST_F(KernelRegistryTest, MovesTheGenerationOnEveryChangeAndOnlyThen) {
  auto last = registry.generation();
  const auto moved = [&] { return std::exchange(last, registry.generation()) != registry.generation(); };
  registry.register_kernel(kernel_of(OpId::relu, "mine"));
  EXPECT_TRUE(moved());
  EXPECT_THROW(registry.register_kernel(kernel_of(OpId::relu, "mine")), Error);
  EXPECT_FALSE(moved());
  registry.unregister_kernel(OpId::relu, DeviceType::npu, "other");
  EXPECT_FALSE(moved());
  registry.unregister_kernel(OpId::relu, DeviceType::npu, "mine");
  EXPECT_TRUE(moved());
  registry.add_backend(backend_of({row(OpId::relu, "table")}));
  EXPECT_TRUE(moved());
  registry.clear();
  EXPECT_TRUE(moved());
  registry.invalidate();
  EXPECT_TRUE(moved());
  registry.kernels(OpId::relu, DeviceType::npu);
  EXPECT_FALSE(moved());
}

TEST_F(KernelRegistryTest, ListsTheNamesOfAllDeviceTypesOnce) {
  registry.register_kernel(kernel_of(OpId::relu, "both", DeviceType::cpu));
  registry.register_kernel(kernel_of(OpId::relu, "both", DeviceType::npu));
  registry.register_kernel(kernel_of(OpId::relu, "npu_only", DeviceType::npu));
  EXPECT_EQ(registry.kernel_names(OpId::relu), (Names{"both", "npu_only"}));
}

TEST_F(KernelRegistryTest, LetsAHeldKernelOutliveItsRemoval) {
  registry.register_kernel(kernel_of(OpId::relu, "mine"));
  const KernelList held = registry.kernels(OpId::relu, DeviceType::npu);
  registry.unregister_kernel(OpId::relu, DeviceType::npu, "mine");
  EXPECT_EQ(held.at(0)->name(), "mine");
}

TEST_F(KernelRegistryTest, GivesWholeSnapshotsWhileManyThreadsRegister) {
  constexpr int writers = 3;
  constexpr int rounds = 100;
  std::atomic<int> running = writers;
  std::vector<std::thread> threads;
  for (int writer = 0; writer < writers; ++writer) {
    threads.emplace_back([&, writer] {
      const std::string first = "first_" + std::to_string(writer);
      const std::string second = "second_" + std::to_string(writer);
      for (int i = 0; i < rounds; ++i) {
        registry.register_kernel(kernel_of(OpId::relu, first));
        registry.register_kernel(kernel_of(OpId::relu, second));
        registry.unregister_kernel(OpId::relu, DeviceType::npu, second);
        registry.unregister_kernel(OpId::relu, DeviceType::npu, first);
      }
      --running;
    });
  }
  while (running > 0) {
    const Names names = relu_names();
    const std::set<std::string> unique(names.begin(), names.end());
    ASSERT_EQ(unique.size(), names.size());
    for (int writer = 0; writer < writers; ++writer) {  // `second` is only there while `first` is
      const bool second = unique.count("second_" + std::to_string(writer)) != 0;
      ASSERT_TRUE(!second || unique.count("first_" + std::to_string(writer)) != 0);
    }
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(relu_names().empty());
  EXPECT_EQ(registry.generation(), 1u + writers * rounds * 4);
}

}  // namespace
}  // namespace xpuruntime
