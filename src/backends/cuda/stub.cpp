// Stands in where the CUDA backend cannot be built: no device, no kernels, and the reason.

#include "xpuruntime/registry/backend.h"

namespace xpuruntime {
namespace {

class AbsentDriver final : public DeviceDriver {
 public:
  DeviceType type() const override { return DeviceType::nvidia; }
  const std::vector<DeviceProfile>& devices() const override { return devices_; }
  std::string why_absent() const override { return "this build has no CUDA backend: put nvcc on PATH and build again"; }
  void* allocate(int, std::size_t) override { absent("allocate"); }
  void deallocate(int, void*) noexcept override {}
  Status copy_from_host(int, void*, std::size_t, const void*, std::size_t, Stream) override { return absent_status(); }
  Status copy_to_host(int, void*, const void*, std::size_t, std::size_t, Stream) override { return absent_status(); }
  Stream create_stream(int) override { absent("create_stream"); }
  void destroy_stream(int, Stream) noexcept override {}
  Status synchronize(int, Stream) override { return absent_status(); }
  Event create_event(int) override { absent("create_event"); }
  void destroy_event(int, Event) noexcept override {}
  Status record_event(int, Event&, Stream) override { return absent_status(); }
  Status wait_event(int, Event) override { return absent_status(); }
  bool event_done(int, Event) override { return true; }
  double elapsed_us(int, Event, Event) override { return -1; }
  bool asynchronous() const override { return true; }

 private:
  [[noreturn]] void absent(const char* function) const { fail(ErrorCode::not_supported, function, why_absent()); }
  Status absent_status() const { return Status(ErrorCode::not_supported, why_absent()); }

  std::vector<DeviceProfile> devices_ = {};
};

class AbsentBackend final : public Backend {
 public:
  std::string_view name() const override { return "cuda"; }
  DeviceType device_type() const override { return DeviceType::nvidia; }
  std::shared_ptr<DeviceDriver> driver() override { return driver_; }
  std::span<const KernelSpec> kernels() const override { return {}; }

 private:
  std::shared_ptr<DeviceDriver> driver_ = std::make_shared<AbsentDriver>();
};

}  // namespace

XRT_EXPORT_BACKEND(AbsentBackend)

}  // namespace xpuruntime
