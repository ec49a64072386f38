#include "xpuruntime/registry/kernel_registry.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <utility>

#include "core/printable.h"
#include "registry/plugin.h"
#include "xpuruntime/registry/catalogue.h"

namespace xpuruntime {
namespace {

void check_kernel(const Kernel& kernel) {
  const std::string_view name = kernel.name();
  const bool printable = std::all_of(name.begin(), name.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '-';
  });
  if (name.empty() || name.size() > 64 || !printable) {
    fail(ErrorCode::invalid_argument, "register_kernel",
         "'" + shown(name) + "' is not a valid kernel name; use up to 64 letters, digits, '_', '-' and '.'");
  }
  op_info(kernel.op());  // an op that does not exist is an error here
  to_string(kernel.device_type());
}

void check_version(std::string_view version) {
  const bool printable = std::all_of(version.begin(), version.end(), [](char c) { return c >= ' ' && c <= '~'; });
  if (!version.empty() && version.size() <= 128 && printable) return;
  fail(ErrorCode::invalid_argument, "register_kernel",
       "a kernel's version must be 1 to 128 printable ASCII characters, such as \"1.0\"; leave it out for none");
}

bool contains(const KernelList& list, std::string_view name) {
  return std::any_of(list.begin(), list.end(), [&](const auto& kernel) { return kernel->name() == name; });
}

[[noreturn]] void fail_taken(const Kernel& kernel) {
  fail(ErrorCode::invalid_argument, "register_kernel",
       std::string(to_string(kernel.op())) + " on " + std::string(to_string(kernel.device_type())) +
           " already has a kernel '" + std::string(kernel.name()) + "'; choose another name or remove that one first");
}

}  // namespace

KernelRegistry::KernelRegistry(DeviceManager& devices) : devices_(devices), table_(std::make_shared<Table>()) {}

KernelRegistry::~KernelRegistry() = default;

void KernelRegistry::add_backend(std::shared_ptr<Backend> backend, KernelOrigin origin) {
  if (backend == nullptr) fail(ErrorCode::invalid_argument, "add_backend", "null backend; pass one");
  std::optional<std::string> version = "";
  if (origin == KernelOrigin::third_party) version = backend->version();
  if (origin == KernelOrigin::third_party && version->empty()) version.reset();
  add(std::move(backend), origin, version);
}

void KernelRegistry::add(std::shared_ptr<Backend> backend, KernelOrigin origin,
                         const std::optional<std::string>& version) {
  if (version && origin == KernelOrigin::third_party) {
    check_version(*version);
    if (!is_versioned(*version)) {
      fail(ErrorCode::invalid_argument, "add_backend",
           "backend '" + std::string(backend->name()) + "' has the version '" + *version +
               "', which means no version; give another");
    }
  }
  // Everything that can fail comes before the first change, so that a bad backend leaves nothing behind.
  std::vector<std::shared_ptr<const Kernel>> kernels;
  for (const KernelSpec& spec : backend->kernels()) {
    if (spec.ops.size() == 0 || spec.prepare == nullptr) {
      fail(ErrorCode::invalid_argument, "add_backend",
           "backend '" + std::string(backend->name()) + "' has a row '" + std::string(spec.name) +
               "' without ops or prepare; fill both in its table");
    }
    for (const OpId op : spec.ops) {
      kernels.push_back(make_kernel(spec, op, backend->device_type(), version));
      check_kernel(*kernels.back());
    }
  }
  const std::lock_guard lock(mutex_);
  auto table = std::make_shared<Table>(*table_);
  std::map<OpId, std::ptrdiff_t> added;
  std::unordered_set<const Kernel*> built_in = built_in_;
  for (auto& kernel : kernels) {
    if (origin == KernelOrigin::built_in) built_in.insert(kernel.get());
    KernelList& list = (*table)[{kernel->op(), kernel->device_type()}];
    if (contains(list, kernel->name())) fail_taken(*kernel);
    list.insert(list.begin() + added[kernel->op()]++, std::move(kernel));
  }
  if (auto driver = backend->driver()) devices_.add_driver(std::move(driver));
  for (const KernelSpec& spec : backend->kernels()) {
    for (const OpId op : spec.ops) remember_kernel(entry_of(spec, op, backend->device_type()));
  }
  backends_.push_back(std::move(backend));
  table_ = std::move(table);
  built_in_ = std::move(built_in);
  invalidate();
}

std::string KernelRegistry::load_plugin(const std::string& path, KernelOrigin origin) {
  std::string version = origin == KernelOrigin::built_in ? "" : hash_of_plugin(path);
  std::shared_ptr<Backend> backend = open_plugin(path);
  try {
    const std::string name(backend->name());
    const std::string declared(backend->version());
    if (!version.empty() && !declared.empty()) version = declared + " " + version;
    add(std::move(backend), origin, version);
    return name;
  } catch (const Error&) {
    throw;
  } catch (...) {
    fail(ErrorCode::device_error, "load_plugin", "'" + path + "' threw: " + exception_text() + "; ask its author");
  }
}

void KernelRegistry::register_kernel(std::shared_ptr<const Kernel> kernel) {
  if (kernel == nullptr) fail(ErrorCode::invalid_argument, "register_kernel", "null kernel; pass one from make_kernel");
  check_kernel(*kernel);
  check_version(kernel->version());
  remember_kernel({.op = kernel->op(),
                   .name = kernel->name(),
                   .device_type = kernel->device_type(),
                   .directions = kernel->directions()});
  const std::lock_guard lock(mutex_);
  auto table = std::make_shared<Table>(*table_);
  KernelList& list = (*table)[{kernel->op(), kernel->device_type()}];
  if (contains(list, kernel->name())) fail_taken(*kernel);
  list.insert(list.begin(), kernel);
  registered_.push_back(std::move(kernel));
  table_ = std::move(table);
  invalidate();
}

bool KernelRegistry::unregister_kernel(OpId op, DeviceType type, std::string_view name) {
  const std::lock_guard lock(mutex_);
  const auto named = [&](const auto& kernel) {
    return kernel->op() == op && kernel->device_type() == type && kernel->name() == name;
  };
  if (std::erase_if(registered_, named) == 0) return false;
  auto table = std::make_shared<Table>(*table_);
  std::erase_if((*table)[{op, type}], named);
  table_ = std::move(table);
  invalidate();
  return true;
}

KernelList KernelRegistry::kernels(OpId op, DeviceType type) const {
  const std::lock_guard lock(mutex_);
  const auto found = table_->find({op, type});
  return found == table_->end() ? KernelList{} : found->second;
}

KernelOrigin KernelRegistry::origin(const Kernel& kernel) const {
  const std::lock_guard lock(mutex_);
  return built_in_.contains(&kernel) ? KernelOrigin::built_in : KernelOrigin::third_party;
}

std::vector<std::string> KernelRegistry::kernel_names(OpId op) const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> names;
  for (const auto& [key, list] : *table_) {
    if (key.first != op) continue;
    for (const auto& kernel : list) {
      if (std::find(names.begin(), names.end(), kernel->name()) == names.end()) names.emplace_back(kernel->name());
    }
  }
  return names;
}

std::vector<OpId> KernelRegistry::registered_ops() const {
  const std::lock_guard lock(mutex_);
  std::vector<OpId> ops;
  for (const auto& [key, list] : *table_) {
    if (!list.empty() && (ops.empty() || ops.back() != key.first)) ops.push_back(key.first);
  }
  return ops;
}

std::map<Device, std::shared_ptr<KernelSelector>> KernelRegistry::get_all_selectors() const {
  const std::lock_guard lock(mutex_);
  return selectors_;
}

void KernelRegistry::clear() {
  const std::lock_guard lock(mutex_);
  selectors_.clear();
  invalidate();
}

}  // namespace xpuruntime
