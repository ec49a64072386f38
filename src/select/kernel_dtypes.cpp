// The precision side of KernelSelector: which dtype an op runs in, which ones there are, and how long they took.
#include <algorithm>

#include "core/forward_call.h"
#include "select/capability_table.h"
#include "select/kernel_probe.h"
#include "select/performance_table.h"
#include "xpuruntime/select/kernel_selector.h"

namespace xpuruntime {
namespace {

DataType promoted(std::span<const DataType> dtypes) {
  std::vector<TensorSpec> specs(dtypes.size());
  for (std::size_t i = 0; i < dtypes.size(); ++i) specs[i].dtype = dtypes[i];
  return promote(specs);
}

}  // namespace

KernelDtype KernelSelector::get_kernel_dtype(const Tensor& tensor) const { return to_kernel_dtype(tensor.dtype()); }

KernelDtype KernelSelector::get_kernel_dtype(std::span<const Tensor> tensors) const {
  if (tensors.empty()) return KernelDtype::float32;
  const DataType first = tensors[0].dtype();
  const bool same = std::all_of(tensors.begin(), tensors.end(), [&](const Tensor& t) { return t.dtype() == first; });
  return same ? to_kernel_dtype(first) : KernelDtype::mixed;
}

KernelDtype KernelSelector::get_kernel_dtype(OpRef op, std::span<const DataType> input_dtypes) const {
  const NamedOp named = capabilities_->resolve("get_kernel_dtype", op);
  return agreed_dtype("get_kernel_dtype", named, to_kernel_dtype(promoted(input_dtypes)));
}

bool KernelSelector::available(const NamedOp& op, KernelDtype dtype) const {
  if (dtype == KernelDtype::auto_select) {
    return available(op, KernelDtype::float32) || available(op, KernelDtype::float16) ||
           available(op, KernelDtype::bfloat16) || available(op, KernelDtype::mixed);
  }
  const auto row = capabilities_->find({op.name, dtype});
  if (row && !row->by_default) return row->capability.is_available;
  return op.id && probe_->takes(*op.id, dtype);
}

bool KernelSelector::is_kernel_available(OpRef op, KernelDtype dtype) const {
  const NamedOp named = capabilities_->resolve("is_kernel_available", op);
  return available(named, agreed_dtype("is_kernel_available", named, dtype));
}

void KernelSelector::register_kernel_capability(OpRef op, const KernelCapability& capability) {
  capability.check();
  const NamedOp named = capabilities_->resolve_or_add("register_kernel_capability", op);
  agreed_dtype("register_kernel_capability", named, capability.dtype);
  capabilities_->set({named.name, capability.dtype}, {capability, false});
}

void KernelSelector::set_default_capability(OpId op, const KernelCapability& capability) {
  capabilities_->set({to_string(op), capability.dtype}, {capability, true});
}

std::optional<KernelCapability> KernelSelector::find_kernel_capability(OpRef op, KernelDtype dtype) const {
  const NamedOp named = capabilities_->resolve("find_kernel_capability", op);
  const auto row = capabilities_->find({named.name, agreed_dtype("find_kernel_capability", named, dtype)});
  if (!row) return std::nullopt;
  KernelCapability capability = row->capability;
  // A default says what the device computes in; whether a kernel is there is for the kernels to say.
  if (row->by_default) capability.is_available = available(named, capability.dtype);
  return capability;
}

KernelDtype KernelSelector::select_best_kernel(OpRef op, std::span<const DataType> input_dtypes,
                                               std::optional<KernelDtype> preferred) const {
  const NamedOp named = capabilities_->resolve("select_best_kernel", op);
  const KernelDtype requested = agreed_dtype("select_best_kernel", named, preferred.value_or(KernelDtype::auto_select));
  if (requested != KernelDtype::auto_select && available(named, requested)) return requested;
  for (const DataType input : input_dtypes) {
    const KernelDtype dtype = to_kernel_dtype(input);
    if (is_floating(input) && available(named, dtype)) return dtype;
  }
  return KernelDtype::float32;
}

void KernelSelector::update_performance_stats(OpRef op, KernelDtype dtype, double execution_time_ms) {
  const NamedOp named = capabilities_->resolve("update_performance_stats", op);
  const KernelDtype ran_in = agreed_dtype("update_performance_stats", named, dtype);
  if (ran_in == KernelDtype::auto_select) {
    fail(ErrorCode::invalid_argument, "update_performance_stats",
         "a time cannot have the dtype auto; give the dtype that the kernel ran in");
  }
  performance_->add({named.name, ran_in}, execution_time_ms);
}

std::optional<KernelPerformanceStats> KernelSelector::get_performance_stats(OpRef op, KernelDtype dtype,
                                                                            const Statistics* measured) const {
  const NamedOp named = capabilities_->resolve("get_performance_stats", op);
  const KernelDtype asked = agreed_dtype("get_performance_stats", named, dtype);
  RunningStats times = performance_->find({named.name, asked});
  if (measured != nullptr && named.id) {
    const std::optional<DataType> wanted = to_data_type(asked);
    times.merge(in_milliseconds(measured->total([&](const Problem& problem) {
      return problem.op == *named.id && problem.device == device_ &&
             (asked == KernelDtype::auto_select || wanted == promoted_dtype(problem));
    })));
  }
  if (times.count() == 0) return std::nullopt;
  return KernelPerformanceStats{std::string(named.name), asked,          times.mean_us(),
                                times.min_us(),          times.max_us(), times.count()};
}

}  // namespace xpuruntime
