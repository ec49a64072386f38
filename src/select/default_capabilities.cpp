#include "xpuruntime/select/kernel_selector.h"

namespace xpuruntime {
namespace {

// AMX has a unit for each dtype, so on a CPU "has matrix units" is not enough. SME's take both.
bool has_matrix_units(const DeviceProfile& profile, std::string_view amx_feature) {
  if (profile.type != DeviceType::cpu) return profile.tensor_cores;
  return profile.tensor_cores && (profile.has_cpu_feature(amx_feature) || profile.has_cpu_feature("sme"));
}

}  // namespace

void KernelRegistry::register_default_capabilities(Device device, KernelSelector& selector) const {
  if (selector.device() != device) {
    fail(ErrorCode::invalid_argument, "register_default_capabilities",
         "the selector is for " + to_string(selector.device()) + ", not for " + to_string(device) +
             "; pass the one that get_or_create_selector gives for that device");
  }
  const DeviceProfile& profile = devices_.profile(device);
  const bool half_units = has_matrix_units(profile, "amx_fp16");
  const bool brain_units = has_matrix_units(profile, "amx_bf16");
  for (const OpId op : {OpId::conv2d, OpId::matmul}) {
    selector.set_default_capability(op, KernelCapability::create_float32());
    if (profile.fp16) selector.set_default_capability(op, KernelCapability::create_float16(half_units));
    if (profile.bf16) selector.set_default_capability(op, KernelCapability::create_bfloat16(brain_units));
  }
  for (const OpId op : {OpId::relu, OpId::gelu, OpId::max_pool2d, OpId::avg_pool2d}) {
    selector.set_default_capability(op, KernelCapability::create_float32());
  }
}

std::shared_ptr<KernelSelector> KernelRegistry::get_or_create_selector(Device device) {
  devices_.profile(device);  // an unknown device is an error here
  const std::lock_guard lock(mutex_);
  if (const auto found = selectors_.find(device); found != selectors_.end()) return found->second;
  auto selector = std::make_shared<KernelSelector>(*this, device);
  register_default_capabilities(device, *selector);
  selectors_.emplace(device, selector);
  return selector;
}

}  // namespace xpuruntime
