#include <cstdlib>
#include <cstring>

#include "backends/cpu/backend.h"
#include "backends/cpu/matmul/blas.h"
#include "backends/cpu/onednn/kernels.h"
#include "xpuruntime/device/device_manager.h"

namespace xpuruntime {
namespace {

/// The processor with the libraries that its kernels come from: another version of one is another machine to a time.
DeviceProfile cpu_with_libraries() {
  DeviceProfile profile = probe_cpu();
  profile.library_versions["openblas"] = cpu::blas_version();
  if (const std::string version = cpu::onednn_version(); !version.empty()) profile.library_versions["onednn"] = version;
  return profile;
}

class CpuDriver final : public DeviceDriver {
 public:
  CpuDriver() : devices_{cpu_with_libraries()} {}

  DeviceType type() const override { return DeviceType::cpu; }
  const std::vector<DeviceProfile>& devices() const override { return devices_; }
  std::string why_absent() const override { return {}; }

  void* allocate(int, std::size_t bytes) override {
    constexpr std::size_t line = 64;
    // Rounding up may wrap for sizes near the end of the address space; those cannot be had anyway.
    const std::size_t rounded = (bytes / line + 1) * line;
    void* memory = rounded < bytes ? nullptr : std::aligned_alloc(line, rounded);
    if (memory == nullptr) {
      fail(ErrorCode::out_of_memory, "allocate",
           "no " + std::to_string(bytes) + " bytes of host memory; use a smaller shape or free some");
    }
    return memory;
  }
  void deallocate(int, void* memory) noexcept override { std::free(memory); }

  Status copy_from_host(int, void* memory, std::size_t byte_offset, const void* host, std::size_t bytes,
                        Stream) override {
    if (bytes != 0) std::memcpy(static_cast<std::byte*>(memory) + byte_offset, host, bytes);
    return {};
  }
  Status copy_to_host(int, void* host, const void* memory, std::size_t byte_offset, std::size_t bytes,
                      Stream) override {
    if (bytes != 0) std::memcpy(host, static_cast<const std::byte*>(memory) + byte_offset, bytes);
    return {};
  }

  Stream create_stream(int) override { return {}; }
  void destroy_stream(int, Stream) noexcept override {}
  Status synchronize(int, Stream) override { return {}; }
  Event create_event(int) override { return {}; }
  void destroy_event(int, Event) noexcept override {}
  Status record_event(int, Event&, Stream) override { return {}; }
  Status wait_event(int, Event) override { return {}; }
  bool event_done(int, Event) override { return true; }
  double elapsed_us(int, Event, Event) override { return -1; }
  bool asynchronous() const override { return false; }

 private:
  std::vector<DeviceProfile> devices_;
};

}  // namespace

std::shared_ptr<DeviceDriver> make_cpu_driver() { return std::make_shared<CpuDriver>(); }

}  // namespace xpuruntime
