#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "select/op_name.h"
#include "xpuruntime/core/mutex.h"
#include "xpuruntime/core/op.h"
#include "xpuruntime/registry/kernel_capability.h"
#include "xpuruntime/select/kernel_selector.h"

namespace xpuruntime {

/// What an OpRef stands for.
struct NamedOp {
  std::string_view name = {};             // canonical
  std::optional<OpId> id = {};            // none: an op of the caller's own
  std::optional<KernelDtype> dtype = {};  // the one that the name ends in
};

/// The dtype meant by a name and an argument; an error of `function` if they contradict each other.
KernelDtype agreed_dtype(const char* function, const NamedOp& op, KernelDtype dtype);

/// A device's capabilities by op and dtype, and the names of ops that only capabilities know.
class CapabilityTable {
 public:
  struct Row {
    KernelCapability capability = {};
    bool by_default = false;
  };

  /// An unknown name is an error of `function`.
  NamedOp resolve(const char* function, const OpRef& op) const;
  /// The same, but a new name becomes an op of the caller's own.
  NamedOp resolve_or_add(const char* function, const OpRef& op);

  void set(OpKey key, const Row& row);
  std::optional<Row> find(OpKey key) const;

 private:
  std::optional<NamedOp> find_op_named(std::string_view name) const;
  std::optional<NamedOp> find_named(std::string_view name) const;
  [[noreturn]] void fail_unknown_op(const char* function, std::string_view name) const;

  mutable Mutex mutex_;
  std::set<std::string, NameLess> own_ops_;  // never shrinks: keys point into it
  std::map<OpKey, Row, OpKeyLess> rows_;
};

}  // namespace xpuruntime
