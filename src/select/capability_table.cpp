#include "select/capability_table.h"

#include <vector>

#include "core/names.h"
#include "core/op_table.h"
#include "core/printable.h"
#include "select/op_name.h"

namespace xpuruntime {

KernelDtype agreed_dtype(const char* function, const NamedOp& op, KernelDtype dtype) {
  const std::string_view asked = to_string(dtype);  // a value outside the enum is an error here
  if (!op.dtype || op.dtype == dtype) return dtype;
  if (dtype == KernelDtype::auto_select) return *op.dtype;
  const std::string named(to_string(*op.dtype));
  fail(ErrorCode::invalid_argument, function,
       "the name says " + std::string(op.name) + " in " + named + ", the dtype is " + std::string(asked) +
           "; use the op's plain name or the dtype " + named);
}

// Without the lock: ops are read without one, and the set of own ops under it.
std::optional<NamedOp> CapabilityTable::find_op_named(std::string_view name) const {
  if (const auto id = find_op(name)) return NamedOp{to_string(*id), id, {}};
  const std::lock_guard lock(mutex_);
  const auto own = own_ops_.find(name);
  const bool found = own != own_ops_.end() && is_spelling_of(name, *own);
  return found ? std::optional(NamedOp{*own, {}, {}}) : std::nullopt;
}

std::optional<NamedOp> CapabilityTable::find_named(std::string_view name) const {
  if (const auto whole = find_op_named(name)) return whole;
  const OpName split = split_name(name);
  if (!split.dtype) return std::nullopt;
  std::optional<NamedOp> op = find_op_named(split.op);
  if (op) op->dtype = split.dtype;
  return op;
}

void CapabilityTable::fail_unknown_op(const char* function, std::string_view name) const {
  std::vector<std::string_view> known;
  for (const OpId id : all_ops()) known.push_back(to_string(id));
  const std::lock_guard lock(mutex_);
  known.insert(known.end(), own_ops_.begin(), own_ops_.end());
  fail_unknown(function, "op", split_name(name).op, known);
}

NamedOp CapabilityTable::resolve(const char* function, const OpRef& op) const {
  if (op.id()) return {to_string(*op.id()), op.id(), {}};
  if (const auto found = find_named(op.name())) return *found;
  const std::string_view suffix = wrong_dtype_suffix(op.name());
  if (!suffix.empty() && find_op_named(op.name().substr(0, op.name().size() - suffix.size() - 1))) {
    parse_kernel_dtype(suffix);  // fails, with the dtypes that there are
  }
  fail_unknown_op(function, op.name());
}

NamedOp CapabilityTable::resolve_or_add(const char* function, const OpRef& op) {
  if (op.id()) return {to_string(*op.id()), op.id(), {}};
  if (const auto found = find_named(op.name())) return *found;
  const OpName split = split_name(op.name());
  // A misspelt dtype would make a new op that nobody asks for.
  if (const auto suffix = wrong_dtype_suffix(op.name()); !suffix.empty()) parse_kernel_dtype(suffix);
  if (!is_op_name(split.op) || split_name(split.op).dtype || !wrong_dtype_suffix(split.op).empty()) {
    fail(ErrorCode::invalid_argument, function,
         "'" + shown(op.name()) +
             "' is not a name; use a letter, then letters, digits and underscores, at most 64, and one dtype at most");
  }
  const auto refuse_like = [&](std::string_view known) {
    fail(ErrorCode::invalid_argument, function,
         "'" + std::string(split.op) + "' differs from '" + std::string(known) +
             "' in underscores alone; write that, or choose another name");
  };
  if (const auto taken = find_op_like(split.op)) refuse_like(to_string(*taken));
  const std::lock_guard lock(mutex_);
  const auto [own, added] = own_ops_.emplace(split.op);
  if (!added && !is_spelling_of(split.op, *own)) refuse_like(*own);
  return {*own, {}, split.dtype};
}

void CapabilityTable::set(OpKey key, const Row& row) {
  const std::lock_guard lock(mutex_);
  rows_[key] = row;
}

std::optional<CapabilityTable::Row> CapabilityTable::find(OpKey key) const {
  const std::lock_guard lock(mutex_);
  const auto found = rows_.find(key);
  return found == rows_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace xpuruntime
