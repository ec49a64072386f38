#include "device/absent_driver.h"

#include <utility>

namespace xpuruntime {
namespace {

class AbsentDriver final : public DeviceDriver {
 public:
  AbsentDriver(DeviceType type, std::string why) : type_(type), why_(std::move(why)) {}

  DeviceType type() const override { return type_; }
  const std::vector<DeviceProfile>& devices() const override { return none_; }
  std::string why_absent() const override { return why_; }

  // There is no index to call these with.
  void* allocate(int, std::size_t) override { refuse("allocate"); }
  void deallocate(int, void*) noexcept override {}
  Status copy_from_host(int, void*, std::size_t, const void*, std::size_t, Stream) override { return status(); }
  Status copy_to_host(int, void*, const void*, std::size_t, std::size_t, Stream) override { return status(); }
  Stream create_stream(int) override { refuse("create_stream"); }
  void destroy_stream(int, Stream) noexcept override {}
  Status synchronize(int, Stream) override { return status(); }
  Event create_event(int) override { refuse("create_event"); }
  void destroy_event(int, Event) noexcept override {}
  Status record_event(int, Event&, Stream) override { return status(); }
  Status wait_event(int, Event) override { return status(); }
  bool event_done(int, Event) override { return true; }
  double elapsed_us(int, Event, Event) override { return -1; }
  bool asynchronous() const override { return true; }

 private:
  [[noreturn]] void refuse(const char* function) const { fail(ErrorCode::not_supported, function, why_); }
  Status status() const { return Status(ErrorCode::not_supported, why_); }

  DeviceType type_;
  std::string why_;
  std::vector<DeviceProfile> none_;
};

}  // namespace

std::shared_ptr<DeviceDriver> make_absent_driver(DeviceType type, std::string why) {
  return std::make_shared<AbsentDriver>(type, std::move(why));
}

}  // namespace xpuruntime
