#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "xpuruntime/core/mutex.h"
#include "xpuruntime/dispatch/dispatcher.h"

namespace xpuruntime::python {

/// Never gives the same number twice.
std::uint64_t new_scope_number();

/// What `autocast` asks for. The rules are taken when the scope is entered.
struct RequestedAutocast {
  bool enabled = true;
  std::optional<DataType> dtype = {};
  const AmpRegistry* registry = nullptr;  // null: the runtime's
};

/// One thing that a scope changes, or with a ScopePtr all of it.
using Layer = std::variant<KernelPolicy, Autocast, LockUse, ScopePtr>;

/// What a context manager stands for: it can be entered any number of times, on many threads at once.
class ScopeLayer {
 public:
  explicit ScopeLayer(Layer layer) : layer_(std::make_shared<const Layer>(std::move(layer))) {}
  explicit ScopeLayer(const RequestedAutocast& requested) : requested_(requested) {}

  std::uint64_t number() const { return number_; }
  /// The layer as it is now.
  std::shared_ptr<const Layer> layer() const;
  /// The layer over a scope.
  ScopePtr over(const std::shared_ptr<const Layer>& layer, const ScopePtr& below);

  void count_enter();
  /// False where it was left as often as it was entered, all contexts together.
  bool count_leave();

 private:
  const std::uint64_t number_ = new_scope_number();
  std::shared_ptr<const Layer> layer_ = {};
  std::optional<RequestedAutocast> requested_ = {};
  Mutex mutex_;
  std::uint64_t entered_ = 0;
  // Of a lock, from the first enter to the last leave: a block may outlive the context that entered it, as in a
  // generator whose steps run on several threads.
  std::optional<LockHold> hold_ = {};
  // The last answer: making a scope costs microseconds, and loops enter the same one over the same one.
  ScopePtr last_below_ = {};
  ScopePtr last_ = {};
};

/// One layer in force in a context.
struct ScopeEntry {
  std::uint64_t id = 0;
  std::uint64_t owner = 0;  // number of the ScopeLayer that it came from
  std::shared_ptr<const Layer> layer = {};
  ScopePtr below = {};
  ScopePtr scope = {};  // the layer over what is below
  // Of a lock, for as long as any context has it, beside that of its ScopeLayer: a task may outlive the block that it
  // was made in, and its workers are at work.
  std::shared_ptr<const LockHold> hold = {};
};

/// The layers of one context, innermost last. Never changed once a context variable holds it.
struct ScopeStack {
  std::uint64_t serial = 0;  // no two stacks have the same
  std::vector<ScopeEntry> entries = {};
};

ScopeStack with_layer(const ScopeStack* stack, ScopeLayer& layer);
/// Without the innermost layer of that owner; what was above it now stands over what was below. Nothing where the owner
/// has no layer here.
std::optional<ScopeStack> without_layer(const ScopeStack& stack, const ScopeLayer& owner);

/// Makes the scopes that this thread's dispatcher has from Python those of the stack; null: none.
void mirror(const ScopeStack* stack);
/// The serial of the stack that this thread mirrors; 0: none.
std::uint64_t mirrored_serial();

}  // namespace xpuruntime::python
