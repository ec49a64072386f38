// Stands in where the OpenCL backend cannot be built.

#include "xpuruntime/registry/backend.h"

namespace xpuruntime::opencl {
namespace {

constexpr std::string_view absent =
    "this build has no OpenCL backend: install ocl-icd-opencl-dev and opencl-headers and build again";

Status absent_status() { return {ErrorCode::not_supported, std::string(absent)}; }
[[noreturn]] void fail_absent() { fail(ErrorCode::not_supported, "opencl", absent); }

class StubDriver final : public DeviceDriver {
 public:
  DeviceType type() const override { return DeviceType::opencl; }
  const std::vector<DeviceProfile>& devices() const override { return none_; }
  std::string why_absent() const override { return std::string(absent); }

  void* allocate(int, std::size_t) override { fail_absent(); }
  void deallocate(int, void*) noexcept override {}
  Status copy_from_host(int, void*, std::size_t, const void*, std::size_t, Stream) override { return absent_status(); }
  Status copy_to_host(int, void*, const void*, std::size_t, std::size_t, Stream) override { return absent_status(); }

  Stream create_stream(int) override { fail_absent(); }
  void destroy_stream(int, Stream) noexcept override {}
  Status synchronize(int, Stream) override { return absent_status(); }

  Event create_event(int) override { fail_absent(); }
  void destroy_event(int, Event) noexcept override {}
  Status record_event(int, Event&, Stream) override { return absent_status(); }
  Status wait_event(int, Event) override { return absent_status(); }
  bool event_done(int, Event) override { return true; }
  double elapsed_us(int, Event, Event) override { return -1; }
  bool asynchronous() const override { return false; }

 private:
  std::vector<DeviceProfile> none_;
};

class StubBackend final : public Backend {
 public:
  std::string_view name() const override { return "opencl"; }
  DeviceType device_type() const override { return DeviceType::opencl; }
  std::shared_ptr<DeviceDriver> driver() override { return driver_; }
  std::span<const KernelSpec> kernels() const override { return {}; }

 private:
  std::shared_ptr<DeviceDriver> driver_ = std::make_shared<StubDriver>();
};

}  // namespace
}  // namespace xpuruntime::opencl

XRT_EXPORT_BACKEND(xpuruntime::opencl::StubBackend)
