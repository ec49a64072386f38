#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "xpuruntime/core/mutex.h"
#include "xpuruntime/device/device_manager.h"
#include "xpuruntime/registry/backend.h"

namespace xpuruntime {

class KernelSelector;  // select layer

/// The kernels of one op on one device type, in the order they are preferred: what was added later comes first, since
/// it was asked for; a backend's own rows keep their order.
using KernelList = std::vector<std::shared_ptr<const Kernel>>;

/// Whose code a kernel is: this library's own, or third-party code, which is tried in a process of its own before it is
/// timed.
enum class KernelOrigin : std::uint8_t { built_in, third_party };

/// Which kernels exist for which op, and one selector per device. Readers get immutable snapshots; every change moves
/// the generation, which makes cached decisions miss.
class KernelRegistry {
 public:
  explicit KernelRegistry(DeviceManager& devices);
  ~KernelRegistry();
  KernelRegistry(const KernelRegistry&) = delete;
  KernelRegistry& operator=(const KernelRegistry&) = delete;

  /// Adds a backend's driver and, before those that are there, its kernels. The backend lives as long as the registry.
  void add_backend(std::shared_ptr<Backend> backend, KernelOrigin origin = KernelOrigin::third_party);

  /// Opens a shared library and adds its backend; returns the backend's name. The path must name a file: nothing is
  /// searched. A missing or damaged file, one that is not a plugin or of another version is an error that says which.
  std::string load_plugin(const std::string& path, KernelOrigin origin = KernelOrigin::third_party);

  /// Adds one kernel before the table's. A name that exists for the op and device type is an error, and so is a version
  /// that is not a short line of text.
  void register_kernel(std::shared_ptr<const Kernel> kernel);
  /// Removes a kernel added by register_kernel; false if there is none of that name.
  bool unregister_kernel(OpId op, DeviceType type, std::string_view name);

  KernelList kernels(OpId op, DeviceType type) const;
  /// third_party for every kernel that no built-in backend brought, also for one that is not registered here.
  KernelOrigin origin(const Kernel& kernel) const;
  /// Names of the kernels of an op over all device types, in order, without repeats.
  std::vector<std::string> kernel_names(OpId op) const;
  /// Ops that have at least one kernel.
  std::vector<OpId> registered_ops() const;

  /// The selector of a device, made with the device's default capabilities on first use. Defined in the select layer.
  std::shared_ptr<KernelSelector> get_or_create_selector(Device device);
  /// Puts the default capabilities into a selector of that device: what its profile says it computes in. Rows that
  /// were registered for the same op and dtype are replaced. Defined in the select layer.
  void register_default_capabilities(Device device, KernelSelector& selector) const;
  std::map<Device, std::shared_ptr<KernelSelector>> get_all_selectors() const;
  /// Drops all selectors; those still referenced stay valid.
  void clear();

  /// Moves on every change; decisions made under another generation are stale.
  std::uint32_t generation(std::memory_order order = std::memory_order_acquire) const {
    return generation_.load(order);
  }
  /// For the layers above: something that choices depend on has changed.
  void invalidate() { generation_.fetch_add(1, std::memory_order_acq_rel); }

  DeviceManager& devices() const { return devices_; }

 private:
  using Table = std::map<std::pair<OpId, DeviceType>, KernelList>;

  void add(std::shared_ptr<Backend> backend, KernelOrigin origin, const std::optional<std::string>& version);

  DeviceManager& devices_;
  std::atomic<std::uint32_t> generation_{1};
  mutable Mutex mutex_;
  std::vector<std::shared_ptr<Backend>> backends_;
  std::shared_ptr<const Table> table_;
  KernelList registered_;  // those that unregister_kernel may remove
  std::unordered_set<const Kernel*> built_in_;
  std::map<Device, std::shared_ptr<KernelSelector>> selectors_;
};

}  // namespace xpuruntime
