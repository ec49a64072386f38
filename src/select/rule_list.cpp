#include "xpuruntime/select/rule_list.h"

#include <atomic>
#include <utility>

#include "select/policy_rule_json.h"
#include "select/rule_index.h"

namespace xpuruntime {
namespace {

/// Made at the first call; of two at once, one's is dropped. There is no lock that a fork could leave held.
template <class T>
class MadeOnce {
 public:
  MadeOnce() = default;
  ~MadeOnce() { delete made_.load(); }
  MadeOnce(const MadeOnce&) = delete;
  MadeOnce& operator=(const MadeOnce&) = delete;

  template <class Make>
  const T& get(Make make) {
    const T* made = made_.load(std::memory_order_acquire);
    if (made != nullptr) return *made;
    auto fresh = std::make_unique<const T>(make());
    return made_.compare_exchange_strong(made, fresh.get(), std::memory_order_acq_rel) ? *fresh.release() : *made;
  }

 private:
  std::atomic<const T*> made_ = nullptr;
};

std::string json_of(const std::vector<PolicyRule>& rules) {
  Json list = Json::array();
  for (const PolicyRule& rule : rules) list.push_back(write_value(rule));
  return dump_json(list);
}

}  // namespace

struct RuleList::Held {
  explicit Held(std::vector<PolicyRule> own) : rules(std::move(own)) {}

  std::vector<PolicyRule> rules;
  std::atomic<bool> shared = false;  // some other list had these too: they are never changed again
  std::atomic<bool> checked = false;
  std::atomic<bool> asked = false;  // text or index were made of these rules
  MadeOnce<std::string> text = {};
  MadeOnce<RuleIndex> index = {};
};

RuleList::RuleList(std::vector<PolicyRule> rules) {
  if (!rules.empty()) held_ = std::make_shared<Held>(std::move(rules));
}

RuleList::RuleList(const RuleList& other) : held_(other.held_) {
  if (held_ != nullptr) held_->shared = true;
}

RuleList& RuleList::operator=(const RuleList& other) {
  held_ = other.held_;
  if (held_ != nullptr) held_->shared = true;
  return *this;
}

const std::vector<PolicyRule>& RuleList::all() const {
  static const auto& none = *new std::vector<PolicyRule>;
  return held_ == nullptr ? none : held_->rules;
}

/// The rules to change: nobody else's, and nothing is known of them.
std::vector<PolicyRule>& RuleList::own() {
  if (held_ == nullptr || held_->shared) {
    held_ = std::make_shared<Held>(all());
  } else if (held_->asked) {
    held_ = std::make_shared<Held>(std::move(held_->rules));
  }
  held_->checked = false;
  return held_->rules;
}

void RuleList::push_back(PolicyRule rule) { own().push_back(std::move(rule)); }

void RuleList::prepend(const RuleList& rules) {
  if (rules.empty()) return;
  if (empty()) {
    *this = rules;
    return;
  }
  const RuleList held = rules;  // they may be our own
  own().insert(own().begin(), held.begin(), held.end());
}

bool RuleList::operator==(const RuleList& other) const { return held_ == other.held_ || all() == other.all(); }

void RuleList::check() const {
  if (held_ == nullptr || held_->checked) return;
  for (const PolicyRule& rule : held_->rules) rule.check();
  held_->checked = true;  // and so it stays: the catalogue of kernels only grows
}

const std::string& RuleList::text() const {
  static const auto& none = *new std::string("[]");
  if (held_ == nullptr) return none;
  held_->asked = true;
  return held_->text.get([&] { return json_of(held_->rules); });
}

const RuleIndex& RuleList::index() const {
  static const RuleIndex none({});
  if (held_ == nullptr) return none;
  held_->asked = true;
  return held_->index.get([&] { return RuleIndex(held_->rules); });
}

}  // namespace xpuruntime
