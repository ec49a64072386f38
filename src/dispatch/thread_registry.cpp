#include "dispatch/thread_registry.h"

#ifdef __linux__
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <algorithm>
#include <atomic>

namespace xpuruntime {
namespace {

std::atomic<std::uint64_t> next_thread{1};

/// The number of this thread in logs.
std::uint64_t thread_number() {
  static thread_local const std::uint64_t number = next_thread.fetch_add(1);
  return number;
}

// Set when this thread's holder is gone but other thread-local destructors may still dispatch.
constinit thread_local bool holder_is_gone = false;

/// What this thread has for each dispatcher it has used; tells them when it ends. Dispatcher ids are never reused, so
/// what belongs to a dead one is never found again.
struct Holder {
  struct Item {
    std::uint64_t id;
    std::shared_ptr<ThreadState> state;
    std::weak_ptr<ThreadRegistry> registry;
  };

  ~Holder() {
    last_state = {};
    holder_is_gone = true;
    for (const Item& item : items) {
      if (const auto registry = item.registry.lock()) registry->remove(item.state);
    }
  }

  std::vector<Item> items = {};
};

Holder& holder_of_this_thread() {
  static thread_local Holder holder;
  return holder;
}

/// Has every running thread of this process pass a full memory barrier before it returns; false where the kernel has
/// none to give.
bool barrier_on_all_threads() {
#ifdef __linux__
  const auto ask = [](int command) { return syscall(SYS_membarrier, command, 0, 0) == 0; };
  if (ask(MEMBARRIER_CMD_PRIVATE_EXPEDITED)) return true;  // an error for a process that is not registered
  return ask(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) && ask(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
#else
  return false;
#endif
}

}  // namespace

constinit thread_local LastState last_state;

std::shared_ptr<ThreadState> ThreadRegistry::add() {
  auto state = std::make_shared<ThreadState>(thread_number());
  const std::lock_guard lock(mutex_);
  states_.push_back(state);
  return state;
}

void ThreadRegistry::remove(const std::shared_ptr<ThreadState>& state) {
  const std::lock_guard lock(mutex_);
  if (std::erase(states_, state) != 0) state->drop_table();
}

void ThreadRegistry::clear() {
  const std::lock_guard lock(mutex_);
  for (const auto& state : states_) state->drop_table();
  states_.clear();
}

// A call stores its depth and then looks whether it was asked; this asks and then looks at the depth. With a barrier
// between the two on either side, one of them sees the other. Calls have none: the one here is passed by all threads.
// A thread that has been asked takes its own lock before it calls again, so that until then nobody uses its table.
void ThreadRegistry::release_idle() {
  const std::lock_guard one_at_a_time(release_mutex_);
  std::vector<std::shared_ptr<ThreadState>> states;
  {
    const std::lock_guard lock(mutex_);
    states = states_;
  }
  // Of the barrier of the last time: who was asked then and has not answered since.
  for (const auto& state : states) state->release_if_idle();
  constexpr std::uint8_t question = ThreadState::asks_if_idle;
  const auto ask = [](const auto& state) { return (state->asked.fetch_or(question) & question) == 0; };
  std::erase_if(states, [&](const auto& state) { return !ask(state); });
  if (barrier_on_all_threads()) return;
  for (const auto& state : states) state->asked.fetch_and(static_cast<std::uint8_t>(~question));
}

void ThreadRegistry::retire(const Kernel* kernel) {
  const std::lock_guard lock(mutex_);
  for (const auto& state : states_) state->retire(kernel);
}

ThreadState& state_of_this_thread(std::uint64_t id, const std::shared_ptr<ThreadRegistry>& registry) {
  if (holder_is_gone) {  // a last call of an ending thread: its state lives as long as the dispatcher
    last_state = {id, registry->add().get()};
    return *last_state.state;
  }
  auto& items = holder_of_this_thread().items;
  auto found = std::find_if(items.begin(), items.end(), [&](const auto& item) { return item.id == id; });
  if (found == items.end()) {
    std::erase_if(items, [](const auto& item) { return item.registry.expired(); });
    items.push_back({id, registry->add(), registry});
    found = std::prev(items.end());
  }
  last_state = {id, found->state.get()};
  return *found->state;
}

}  // namespace xpuruntime
