#include "select/unavailable.h"

#include <algorithm>

#include "registry/builtin_catalogue.h"
#include "xpuruntime/core/error.h"
#include "xpuruntime/registry/catalogue.h"

namespace xpuruntime {

std::string why_unavailable(OpId op, std::string_view kernel, Device device) {
  const auto entries = find_in_catalogue(op, kernel);
  if (entries.empty()) return "no backend has a kernel of that name";
  const auto here =
      std::find_if(entries.begin(), entries.end(), [&](const auto& e) { return e.device_type == device.type; });
  const CatalogueEntry& entry = here == entries.end() ? entries.front() : *here;
  if (entry.device_type == DeviceType::cpu && device.type != DeviceType::cpu)
    return "it is a kernel of the CPU; this is " + to_string(device);
  if (entry.device_type == DeviceType::cpu && entry.needs == needs_nothing)
    return "it is not registered; this is " + to_string(device);
  return "it needs " + std::string(entry.needs) + "; this is " + to_string(device);
}

void check_kernel_name(const char* function, OpId op, std::string_view kernel) {
  if (!find_in_catalogue(op, kernel).empty()) return;
  std::vector<std::string_view> known;
  for (const CatalogueEntry& entry : catalogue()) {
    if (entry.op == op && std::find(known.begin(), known.end(), entry.name) == known.end()) known.push_back(entry.name);
  }
  if (known.empty()) {
    fail(ErrorCode::unknown_name, function,
         "unknown kernel '" + std::string(kernel.substr(0, 64)) + "': no backend has a kernel for " +
             std::string(to_string(op)) + "; register one first");
  }
  fail_unknown(function, "kernel for " + std::string(to_string(op)), kernel, known);
}

}  // namespace xpuruntime
