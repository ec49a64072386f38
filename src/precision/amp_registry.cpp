#include "xpuruntime/precision/amp_registry.h"

#include "xpuruntime/core/error.h"

namespace xpuruntime {
namespace {

// A packed rule, from the low end: present, source, forward and backward precision, their custom dtypes; the priority
// in the upper half.
constexpr int source_at = 1, forward_at = 3, backward_at = 5, forward_dtype_at = 8, backward_dtype_at = 16;

std::uint64_t field(std::uint64_t bits, int at, int width) { return bits >> at & ((1ull << width) - 1); }

RequestedPrecision requested_at(std::uint64_t bits, int precision_at, int dtype_at) {
  return {static_cast<OpPrecision>(field(bits, precision_at, 2)), static_cast<DataType>(field(bits, dtype_at, 8))};
}

OpPrecision of_category(OpCategory category) {
  switch (category) {
    case OpCategory::matrix:
      return OpPrecision::lower;
    case OpCategory::reduction:
    case OpCategory::loss:
    case OpCategory::normalization:
      return OpPrecision::higher;
    default:
      return OpPrecision::keep;
  }
}

/// What holds where no rule does. An op that a program registers may have a side of its own: no default list has it.
PackedRule category_rule(OpId op) {
  const OpInfo& info = op_info(op);
  OpPrecision precision = of_category(info.category);
  if (op >= OpId::builtin_count) {
    if (info.autocast == AutocastSide::lower) precision = OpPrecision::lower;
    if (info.autocast == AutocastSide::higher) precision = OpPrecision::higher;
  }
  return PackedRule::pack({.op = op, .forward_precision = precision}, RuleSource::category);
}

constexpr int dtype_bits = 4;
static_assert(data_type_count <= 1 << dtype_bits && data_type_count * dtype_bits <= 64);

DataType dtype_in(std::uint64_t dtypes, DataType input) {
  return static_cast<DataType>(dtypes >> static_cast<int>(input) * dtype_bits & ((1u << dtype_bits) - 1));
}

/// What each input dtype becomes, as dtype_in reads it.
template <class Resolve>
std::uint64_t dtypes_of(const Resolve& resolve_input) {
  std::uint64_t dtypes = 0;
  for (int i = 0; i < data_type_count; ++i) {
    dtypes |= static_cast<std::uint64_t>(resolve_input(static_cast<DataType>(i))) << i * dtype_bits;
  }
  return dtypes;
}

std::uint64_t next_version() {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1) + 1;
}

std::size_t index_of(OpId op) { return static_cast<std::size_t>(op); }

}  // namespace

std::string_view to_string(RuleSource source) {
  constexpr std::string_view names[] = {"user", "default", "category"};
  return names[static_cast<std::size_t>(source)];
}

PackedRule PackedRule::pack(const OpPrecisionRule& rule, RuleSource source) {
  const auto dtype = [](const std::optional<DataType>& custom) {
    return static_cast<std::uint64_t>(custom.value_or(DataType::float32));
  };
  return {1 | static_cast<std::uint64_t>(source) << source_at |
          static_cast<std::uint64_t>(rule.forward_precision) << forward_at |
          static_cast<std::uint64_t>(rule.backward_precision) << backward_at |
          dtype(rule.custom_forward_dtype) << forward_dtype_at |
          dtype(rule.custom_backward_dtype) << backward_dtype_at |
          static_cast<std::uint64_t>(static_cast<std::uint32_t>(rule.priority)) << 32};
}

OpPrecisionRule PackedRule::unpack(OpId op) const {
  return OpPrecisionRule::make(op, requested_at(bits, forward_at, forward_dtype_at),
                               requested_at(bits, backward_at, backward_dtype_at), priority());
}

RuleSource PackedRule::source() const { return static_cast<RuleSource>(field(bits, source_at, 2)); }

PackedRule AmpRules::packed(OpId op) const {
  const PackedRule rule = index_of(op) < rules_.size() ? rules_[index_of(op)] : PackedRule{};
  return rule ? rule : category_rule(op);
}

OpPrecisionRule AmpRules::rule(OpId op) const { return packed(op).unpack(op); }
RuleSource AmpRules::source(OpId op) const { return packed(op).source(); }

AmpRegistry::AmpRegistry(const AmpConfig& config) : config_(config) {
  config.check();
  DefaultAmpRules::apply_default_rules(*this);
  const std::lock_guard lock(mutex_);
  for (const OpId op : all_ops()) refresh(op);
}

AmpRegistry::~AmpRegistry() {
  for (const auto& chunk : chunks_) delete chunk.load();
}

PackedRule AmpRegistry::find(OpId op) const {
  const Chunk* chunk = chunks_[index_of(op) / chunk_size].load(std::memory_order_acquire);
  if (chunk == nullptr) return {};
  const std::uint64_t user = chunk->user[index_of(op) % chunk_size].load(std::memory_order_acquire);
  return {user != 0 ? user : chunk->defaults[index_of(op) % chunk_size].load(std::memory_order_acquire)};
}

AmpRegistry::Chunk& AmpRegistry::chunk_for(OpId op) {
  op_info(op);  // an unknown op is an error
  auto& chunk = chunks_[index_of(op) / chunk_size];
  if (chunk.load() == nullptr) chunk.store(new Chunk, std::memory_order_release);
  return *chunk.load();
}

void AmpRegistry::add_default(OpId op, OpPrecision forward) {
  const PackedRule rule = PackedRule::pack({.op = op, .forward_precision = forward}, RuleSource::defaults);
  chunk_for(op).defaults[index_of(op) % chunk_size].store(rule.bits, std::memory_order_release);
  refresh(op);
}

void AmpRegistry::changed() { snapshot_ = nullptr; }

void AmpRegistry::refresh(OpId op) {
  Chunk& chunk = chunk_for(op);
  const std::size_t at = index_of(op) % chunk_size;
  const OpPrecisionRule rule = rule_in_force(op);
  const auto forward = [&](DataType input) { return rule.get_forward_dtype(config_, input); };
  const auto backward = [&](DataType input) { return rule.get_backward_dtype(config_, input); };
  chunk.forward_dtypes[at].store(dtypes_of(forward), std::memory_order_release);
  chunk.backward_dtypes[at].store(dtypes_of(backward), std::memory_order_release);
}

template <AmpRegistry::Words AmpRegistry::Chunk::*dtypes>
DataType AmpRegistry::lookup(OpId op, DataType input) const {
  if (static_cast<int>(input) >= data_type_count) return input;
  const Chunk* chunk = chunks_[index_of(op) / chunk_size].load(std::memory_order_acquire);
  const std::uint64_t known =
      chunk == nullptr ? 0 : (chunk->*dtypes)[index_of(op) % chunk_size].load(std::memory_order_acquire);
  if (known != 0) [[likely]]
    return dtype_in(known, input);
  const OpPrecisionRule rule = category_rule(op).unpack(op);  // backward as forward
  return rule.get_forward_dtype(config_, input);
}

void AmpRegistry::register_whitelist(OpId op, int priority) {
  register_rule({.op = op, .forward_precision = OpPrecision::lower, .priority = priority});
}

void AmpRegistry::register_blacklist(OpId op, int priority) {
  register_rule({.op = op, .forward_precision = OpPrecision::higher, .priority = priority});
}

void AmpRegistry::register_custom_op(OpId op, DataType forward, DataType backward, int priority) {
  register_rule(OpPrecisionRule::make(op, {OpPrecision::custom, forward}, {OpPrecision::custom, backward}, priority));
}

bool AmpRegistry::register_rule(const OpPrecisionRule& rule) {
  rule.check();
  const std::lock_guard lock(mutex_);
  auto& slot = chunk_for(rule.op).user[index_of(rule.op) % chunk_size];
  const PackedRule old{slot.load()};
  if (old && old.priority() > rule.priority) return false;
  slot.store(PackedRule::pack(rule, RuleSource::user).bits, std::memory_order_release);
  refresh(rule.op);
  changed();
  return true;
}

bool AmpRegistry::unregister(OpId op) {
  const std::lock_guard lock(mutex_);
  const bool had = chunk_for(op).user[index_of(op) % chunk_size].exchange(0) != 0;
  refresh(op);
  if (had) changed();
  return had;
}

void AmpRegistry::clear() {
  const std::lock_guard lock(mutex_);
  for (const auto& chunk : chunks_) {
    if (chunk.load() == nullptr) continue;
    for (auto& rule : chunk.load()->user) rule.store(0, std::memory_order_release);
    for (auto& rule : chunk.load()->defaults) rule.store(0, std::memory_order_release);
  }
  for (const OpId op : all_ops()) refresh(op);
  changed();
}

std::optional<OpPrecisionRule> AmpRegistry::get_rule(OpId op) const {
  op_info(op);
  const PackedRule rule = find(op);
  return rule ? std::optional(rule.unpack(op)) : std::nullopt;
}

OpPrecisionRule AmpRegistry::rule_in_force(OpId op) const {
  const PackedRule rule = find(op);
  return (rule ? rule : category_rule(op)).unpack(op);
}

RuleSource AmpRegistry::source(OpId op) const {
  op_info(op);
  const PackedRule rule = find(op);
  return rule ? rule.source() : RuleSource::category;
}

DataType AmpRegistry::get_forward_dtype(OpId op, DataType input) const {
  return lookup<&Chunk::forward_dtypes>(op, input);
}

DataType AmpRegistry::get_backward_dtype(OpId op, DataType input) const {
  return lookup<&Chunk::backward_dtypes>(op, input);
}

bool AmpRegistry::is_whitelisted(OpId op) const {
  const auto rule = get_rule(op);
  return rule && rule->forward_precision == OpPrecision::lower;
}

bool AmpRegistry::is_blacklisted(OpId op) const {
  const auto rule = get_rule(op);
  return rule && rule->forward_precision == OpPrecision::higher;
}

std::vector<PackedRule> AmpRegistry::all_packed() const {
  std::vector<PackedRule> rules;
  for (std::size_t c = 0; c < chunks_.size(); ++c) {
    if (chunks_[c].load() == nullptr) continue;
    rules.resize((c + 1) * chunk_size);
    for (std::size_t i = 0; i < chunk_size; ++i) {
      rules[c * chunk_size + i] = find(static_cast<OpId>(c * chunk_size + i));
    }
  }
  return rules;
}

std::map<OpId, OpPrecisionRule> AmpRegistry::get_all_rules() const {
  const std::lock_guard lock(mutex_);
  const std::vector<PackedRule> packed = all_packed();
  std::map<OpId, OpPrecisionRule> rules;
  for (std::size_t i = 0; i < packed.size(); ++i) {
    const auto op = static_cast<OpId>(i);
    if (packed[i]) rules.emplace(op, packed[i].unpack(op));
  }
  return rules;
}

std::shared_ptr<const AmpRules> AmpRegistry::snapshot() const {
  const std::lock_guard lock(mutex_);
  if (snapshot_ == nullptr) snapshot_ = std::make_shared<const AmpRules>(config_, next_version(), all_packed());
  return snapshot_;
}

}  // namespace xpuruntime
