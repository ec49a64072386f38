#include "xpuruntime/device/device_manager.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "core/lazily.h"
#include "device/allocate_or_trim.h"
#include "xpuruntime/core/problem.h"
#include "xpuruntime/device/current.h"
#include "xpuruntime/device/workspace_pool.h"

namespace xpuruntime {

namespace {

constexpr std::size_t max_devices = std::numeric_limits<decltype(Device::index)>::max() + std::size_t{1};

}  // namespace

/// One driver and its devices. Never moved or removed, so references into it stay good. The driver is not asked before
/// somebody asks for a device of its type: looking for GPUs starts their drivers, which do not survive a fork.
struct DeviceManager::Slot {
  struct Found {
    std::vector<DeviceProfile> profiles = {};
    std::vector<std::unique_ptr<WorkspacePool>> pools = {};
  };
  explicit Slot(std::shared_ptr<DeviceDriver> added) : driver(std::move(added)) {}

  const Found& found() const {
    return lazy.get([&] {
      Found made{driver->devices()};
      if (made.profiles.size() > max_devices) made.profiles.resize(max_devices);
      for (std::size_t i = 0; i < made.profiles.size(); ++i) {
        made.pools.push_back(std::make_unique<WorkspacePool>(*driver, static_cast<int>(i)));
      }
      return made;
    });
  }
  const std::vector<DeviceProfile>& profiles() const { return found().profiles; }

  const std::shared_ptr<DeviceDriver> driver;
  Lazily<Found> lazy;  // after the driver: pools give memory back to it
};

namespace {

std::string list_of(const std::vector<Device>& devices) {
  std::string text;
  for (const Device device : devices) text += (text.empty() ? "" : ", ") + to_string(device);
  return text;
}

std::string advice(const std::vector<Device>& devices) {
  return devices.empty() ? "no device is there at all: add a driver first" : "use one of " + list_of(devices);
}

void check(const Status& status, const char* function, const std::string& what) {
  if (status.ok()) return;
  // Those that say themselves what to do.
  const bool advised = status.code() == ErrorCode::device_lost || status.code() == ErrorCode::invalid_argument;
  fail(status.code(), function,
       what + " failed: " + status.message() + (advised ? "" : "; check whether the device still responds"));
}

std::size_t byte_count(const TensorSpec& spec) {
  return static_cast<std::size_t>(element_count(spec)) * size_of(spec.dtype);
}

/// Lays the elements out in row-major order.
void pack(std::byte* to, const std::byte* from, const TensorSpec& spec) {
  if (spec.contiguous) {
    std::memcpy(to, from, byte_count(spec));
    return;
  }
  const std::size_t size = size_of(spec.dtype);
  Dims position = Dims::filled(spec.shape.size(), 0);
  for (std::int64_t left = element_count(spec); left > 0; --left, to += size) {
    std::int64_t offset = 0;
    for (std::size_t i = 0; i < position.size(); ++i) offset += position[i] * spec.strides[i];
    std::memcpy(to, from + static_cast<std::size_t>(offset) * size, size);
    for (std::size_t i = position.size(); i-- > 0 && ++position[i] == spec.shape[i];) position[i] = 0;
  }
}

/// Those of work before a copy. While another thread records a graph the device must not be waited for, and the copy
/// itself is done: they show later.
void show_earlier_errors(DeviceDriver& driver, Device device, Stream stream, const std::string& what) {
  const Status status = driver.synchronize(device.index, stream);
  if (!status.ok() && status.code() != ErrorCode::not_supported) check(status, "DeviceManager::copy_to", what);
}

/// The tensor's memory, from its first element to its last.
void download(void* host, const Tensor& from, DeviceDriver& driver) {
  const Device device = from.device();
  const Stream stream = current_stream(device);
  const std::string what = "copying from " + to_string(device);
  check(driver.copy_to_host(device.index, host, from.data(), from.byte_offset(), from.span(), stream),
        "DeviceManager::copy_to", what);
  show_earlier_errors(driver, device, stream, what);
}

/// The same in host memory, with its own strides.
Tensor span_on_host(const Tensor& tensor, DeviceDriver& driver) {
  Tensor host = Tensor::empty(DataType::uint8, {static_cast<std::int64_t>(tensor.span())});
  download(host.data(), tensor, driver);
  return host;
}

void queue_upload(const Tensor& to, const void* host, DeviceDriver& driver) {
  const Device device = to.device();
  check(driver.copy_from_host(device.index, to.data(), to.byte_offset(), host, to.span(), current_stream(device)),
        "DeviceManager::copy_to", "copying to " + to_string(device));
}

void upload(const Tensor& to, const void* host, DeviceDriver& driver) {
  queue_upload(to, host, driver);
  show_earlier_errors(driver, to.device(), current_stream(to.device()), "copying to " + to_string(to.device()));
}

}  // namespace

DeviceManager::DeviceManager() = default;
DeviceManager::~DeviceManager() = default;

void DeviceManager::add_driver(std::shared_ptr<DeviceDriver> driver) {
  if (driver == nullptr) {
    fail(ErrorCode::invalid_argument, "DeviceManager::add_driver", "the driver is null; pass one");
  }
  const DeviceType type = driver->type();
  auto added = std::make_unique<Slot>(std::move(driver));
  const std::lock_guard lock(mutex_);
  const auto place = std::lower_bound(slots_.begin(), slots_.end(), type, [](const auto& slot, DeviceType wanted) {
    return slot->driver->type() < wanted;
  });
  if (place != slots_.end() && (*place)->driver->type() == type) {
    fail(ErrorCode::invalid_argument, "DeviceManager::add_driver",
         "there is a driver for " + std::string(to_string(type)) + " already; add one driver for each type");
  }
  slots_.insert(place, std::move(added));
}

std::vector<Device> DeviceManager::devices() const {
  std::vector<const Slot*> slots;  // drivers are asked without the lock
  {
    const std::lock_guard lock(mutex_);
    for (const auto& slot : slots_) slots.push_back(slot.get());
  }
  std::vector<Device> devices;
  for (const Slot* slot : slots) {
    for (std::size_t i = 0; i < slot->profiles().size(); ++i) {
      devices.push_back({slot->driver->type(), static_cast<std::uint8_t>(i)});
    }
  }
  return devices;
}

const DeviceManager::Slot* DeviceManager::find_slot(DeviceType type) const {
  const std::lock_guard lock(mutex_);
  for (const auto& slot : slots_) {
    if (slot->driver->type() == type) return slot.get();
  }
  return nullptr;
}

const DeviceManager::Slot& DeviceManager::slot(Device device, const char* function) const {
  const Slot* found = find_slot(device.type);
  if (found != nullptr && device.index < found->profiles().size()) return *found;
  const std::string name = to_string(device);
  if (found == nullptr || found->profiles().empty()) {
    fail(ErrorCode::not_supported, function,
         "device " + name + " is not available: " + why_absent(device.type) + "; " + advice(devices()));
  }
  fail(ErrorCode::not_supported, function,
       "device " + name + " does not exist: this machine has " + std::to_string(found->profiles().size()) +
           " of that type, counted from 0; " + advice(devices()));
}

bool DeviceManager::has(Device device) const {
  const Slot* found = find_slot(device.type);
  return found != nullptr && device.index < found->profiles().size();
}

const DeviceProfile& DeviceManager::profile(Device device) const {
  return slot(device, "DeviceManager::profile").profiles()[device.index];
}

DeviceDriver& DeviceManager::driver(Device device) const { return *slot(device, "DeviceManager::driver").driver; }

std::string DeviceManager::why_absent(DeviceType type) const {
  const Slot* found = find_slot(type);
  if (found == nullptr) return "no backend for " + std::string(to_string(type)) + " is loaded";
  if (!found->profiles().empty()) return {};
  const std::string reason = found->driver->why_absent();
  return reason.empty() ? "its driver found no device" : reason;
}

Stream DeviceManager::stream(Device device, void* handle) const {
  if (handle == nullptr) return {};
  return {handle, slot(device, "DeviceManager::stream").driver->stream_id(device.index, handle)};
}

WorkspacePool& DeviceManager::workspace(Device device) const {
  return *slot(device, "DeviceManager::workspace").found().pools[device.index];
}

Tensor DeviceManager::allocate(DataType dtype, const Dims& shape, Device device) const {
  return allocate(make_spec(dtype, shape), device);
}

Tensor DeviceManager::allocate(const TensorSpec& asked, Device device) const {
  const Slot& place = slot(device, "DeviceManager::allocate");
  const TensorSpec spec = make_spec(asked.dtype, asked.shape, asked.strides);
  const std::size_t bytes = span_bytes(spec);
  if (bytes == 0) return Tensor(nullptr, spec, device);
  void* memory =
      allocate_or_trim(*place.found().pools[device.index], [&] { return place.driver->allocate(device.index, bytes); });
  // The owner shares the driver, so a tensor that outlives the manager can still be freed.
  std::shared_ptr<void> owner(
      memory, [driver = place.driver, index = device.index](void* data) noexcept { driver->deallocate(index, data); });
  return Tensor(memory, spec, device, 0, std::move(owner));
}

Tensor DeviceManager::copy_to(const Tensor& tensor, Device device) const {
  Tensor result = allocate(tensor.dtype(), tensor.shape(), device);
  if (element_count(tensor.spec()) == 0) return result;
  if (tensor.data() == nullptr) {
    fail(ErrorCode::invalid_argument, "DeviceManager::copy_to", "the tensor has no memory; pass one that has");
  }
  const bool from_host = tensor.device().type == DeviceType::cpu;
  const Tensor source =
      from_host ? tensor : span_on_host(tensor, *slot(tensor.device(), "DeviceManager::copy_to").driver);
  const auto* bytes = source.as<const std::byte>();
  if (device.type == DeviceType::cpu) {
    pack(result.as<std::byte>(), bytes, tensor.spec());
  } else if (tensor.contiguous()) {
    upload(result, bytes, driver(device));
  } else {
    const Tensor packed = Tensor::empty(tensor.dtype(), tensor.shape());
    pack(packed.as<std::byte>(), bytes, tensor.spec());
    upload(result, packed.data(), driver(device));
  }
  return result;
}

void DeviceManager::copy_into(const Tensor& from, const Tensor& to) const {
  if (from.dtype() != to.dtype() || from.shape() != to.shape() || from.strides() != to.strides() || to.read_only()) {
    fail(ErrorCode::invalid_argument, "DeviceManager::copy_into",
         to_string(from.spec()) + " does not go into " + (to.read_only() ? "read-only " : "") + to_string(to.spec()) +
             "; give memory of the same dtype, shape and strides that may be written");
  }
  if (from.span() == 0) return;
  const auto on_host = [](const Tensor& tensor) { return tensor.device().type == DeviceType::cpu; };
  if (on_host(from) && on_host(to)) {
    std::memcpy(to.as<std::byte>(), from.as<const std::byte>(), from.span());
  } else if (on_host(from)) {
    queue_upload(to, from.as<const std::byte>(), driver(to.device()));
  } else if (on_host(to)) {
    download(to.as<std::byte>(), from, driver(from.device()));
  } else {
    queue_upload(to, span_on_host(from, driver(from.device())).data(), driver(to.device()));
  }
}

Tensor DeviceManager::value_on(const Tensor& host, Device device) const {
  if (device.type == DeviceType::cpu) return host;
  constexpr std::size_t most_bytes = 16;
  const TensorSpec spec = make_spec(host.dtype(), host.shape());
  const std::size_t bytes = byte_count(spec);
  const bool on_host = host.device().type == DeviceType::cpu && host.data() != nullptr;
  if (!on_host || bytes == 0 || bytes > most_bytes || !host.contiguous()) return copy_to(host, device);
  const Stream stream = current_stream(device);
  const auto lease = std::make_shared<WorkspacePool::Lease>(workspace(device).acquire(bytes, stream));
  const Status written =
      driver(device).write_value(device.index, lease->data(), host.as<const std::byte>(), bytes, stream);
  if (!written.ok()) fail(written.code(), "DeviceManager::value_on", written.message());
  return Tensor(lease->data(), spec, device, 0, lease);
}

}  // namespace xpuruntime
