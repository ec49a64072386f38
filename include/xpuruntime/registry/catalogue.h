#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "xpuruntime/core/device.h"
#include "xpuruntime/registry/kernel.h"

namespace xpuruntime {

/// A kernel name that some backend has or will have, whether or not it was built or can run here.
struct CatalogueEntry {
  OpId op = OpId::matmul;
  std::string_view name = {};
  DeviceType device_type = DeviceType::cpu;
  std::string_view summary = {};    // what it is good for, one line
  std::string_view needs = {};      // "an NVIDIA GPU", "the CUTLASS headers at build time"
  std::string_view libraries = {};  // KernelSpec::libraries
  DataTypeSet dtypes = any_dtype;   // KernelSpec::dtypes
  Directions directions = Directions::forward;
};

/// What a row says of its kernel for one of its ops.
constexpr CatalogueEntry entry_of(const KernelSpec& row, OpId op, DeviceType device_type) {
  return {op, row.name, device_type, row.summary, row.needs, row.libraries, row.dtypes, row.directions};
}

/// Every kernel name of every backend, built or not, and every name registered in this process so far. A policy written
/// for another machine is checked against this.
std::vector<CatalogueEntry> catalogue();

/// Makes a name known for good: policies may name it before and after the kernel is there. Known names are left alone.
/// The texts are copied; an empty summary or need says that the kernel was registered at run time.
void remember_kernel(const CatalogueEntry& entry);

/// What one kernel of one type of device is; nothing where no backend has it.
std::optional<CatalogueEntry> find_in_catalogue(OpId op, std::string_view kernel, DeviceType device_type);

/// Entries of one op, in catalogue order; all where several device types have a kernel of that name.
std::vector<CatalogueEntry> find_in_catalogue(OpId op, std::string_view kernel);

}  // namespace xpuruntime
