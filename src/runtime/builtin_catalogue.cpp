#include "registry/builtin_catalogue.h"

#include <array>

#include "backends/cpu/table.h"
#include "backends/cuda/table.h"
#include "backends/opencl/table.h"

namespace xpuruntime {
namespace {

/// A part of a backend's table, and what its rows need where they do not say.
struct Rows {
  DeviceType type = DeviceType::cpu;
  std::string_view needs = {};
  std::span<const KernelSpec> rows = {};
};

// Only the compiler runs this: the functions that rows of other libraries name are not in this one.
consteval std::array<Rows, 4> all_rows() {
  constexpr std::string_view not_yet = "a later version of xpuruntime";
  return {{{DeviceType::cpu, needs_nothing, cpu::table},
           {DeviceType::nvidia, "an NVIDIA GPU", cuda::table},
           {DeviceType::nvidia, not_yet, cuda::planned},
           {DeviceType::opencl, "an OpenCL device", opencl::table}}};
}

consteval std::size_t entry_count() {
  std::size_t count = 0;
  for (const Rows& part : all_rows()) {
    for (const KernelSpec& row : part.rows) count += row.ops.size();
  }
  return count;
}

consteval std::array<CatalogueEntry, entry_count()> entries_by_op() {
  std::array<CatalogueEntry, entry_count()> entries = {};
  std::size_t count = 0;
  for (std::uint16_t op = 0; op < static_cast<std::uint16_t>(OpId::builtin_count); ++op) {
    for (const Rows& part : all_rows()) {
      for (const KernelSpec& row : part.rows) {
        if (!row.ops.contains(OpId{op})) continue;
        CatalogueEntry& entry = entries[count++] = entry_of(row, OpId{op}, part.type);
        if (entry.needs.empty()) entry.needs = part.needs;
      }
    }
  }
  return entries;
}

}  // namespace

std::span<const CatalogueEntry> builtin_catalogue() {
  static constexpr auto entries = entries_by_op();
  return entries;
}

}  // namespace xpuruntime
