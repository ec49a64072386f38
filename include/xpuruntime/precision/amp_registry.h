#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "xpuruntime/core/mutex.h"
#include "xpuruntime/precision/op_precision_rule.h"

namespace xpuruntime {

/// Who a rule comes from, strongest first.
enum class RuleSource : std::uint8_t { user, defaults, category };
std::string_view to_string(RuleSource source);

/// Rules packed into one word each, so that a lookup is one load. Shared by AmpRegistry and its snapshots.
struct PackedRule {
  std::uint64_t bits = 0;  // 0: none

  static PackedRule pack(const OpPrecisionRule& rule, RuleSource source);
  OpPrecisionRule unpack(OpId op) const;
  RuleSource source() const;
  int priority() const { return static_cast<std::int32_t>(bits >> 32); }
  explicit operator bool() const { return bits != 0; }
};

/// The rules of a registry at one moment. Immutable: its holders always see the same rules.
class AmpRules {
 public:
  AmpRules(const AmpConfig& config, std::uint64_t version, std::vector<PackedRule> rules)
      : config_(config), version_(version), rules_(std::move(rules)) {}

  const AmpConfig& config() const { return config_; }
  /// Differs between any two snapshots of any registries with different rules.
  std::uint64_t version() const { return version_; }
  /// The rule in force for an op: the user's, the default, or that of the op's category.
  OpPrecisionRule rule(OpId op) const;
  RuleSource source(OpId op) const;

 private:
  PackedRule packed(OpId op) const;

  AmpConfig config_;
  std::uint64_t version_;
  std::vector<PackedRule> rules_;
};

/// Which op runs in which precision, forward and backward. Lookups take no lock and never wait for a writer; all
/// functions are safe to call from many threads. Ops are named by id or by any name that parse_op knows.
class AmpRegistry {
 public:
  /// Starts with the default rules. A config that makes no sense is an error.
  explicit AmpRegistry(const AmpConfig& config = {});
  ~AmpRegistry();
  AmpRegistry(const AmpRegistry&) = delete;
  AmpRegistry& operator=(const AmpRegistry&) = delete;

  const AmpConfig& config() const { return config_; }

  /// Lower precision, backward as forward.
  void register_whitelist(OpId op, int priority = 0);
  /// Higher precision, backward as forward.
  void register_blacklist(OpId op, int priority = 0);
  void register_custom_op(OpId op, DataType forward, DataType backward, int priority = 0);
  /// Replaces the user's rule for the op unless that has a higher priority; false if it has. Every rule of a user
  /// is stronger than every default.
  bool register_rule(const OpPrecisionRule& rule);
  /// Removes the user's rule, which brings the default back. False if there is none.
  bool unregister(OpId op);
  /// Removes all rules, the defaults too: then each op's category decides.
  void clear();

  /// A user's rule or the default; nothing where only the category decides.
  std::optional<OpPrecisionRule> get_rule(OpId op) const;
  /// The rule in force, the category's included, and who it comes from.
  OpPrecisionRule rule_in_force(OpId op) const;
  RuleSource source(OpId op) const;
  DataType get_forward_dtype(OpId op, DataType input) const;
  DataType get_backward_dtype(OpId op, DataType input) const;
  /// Lower precision by a rule.
  bool is_whitelisted(OpId op) const;
  /// Higher precision by a rule.
  bool is_blacklisted(OpId op) const;
  std::map<OpId, OpPrecisionRule> get_all_rules() const;

  /// The rules as they are now; the same object as long as they stay.
  std::shared_ptr<const AmpRules> snapshot() const;

  void register_whitelist(std::string_view op, int priority = 0) { register_whitelist(parse_op(op), priority); }
  void register_blacklist(std::string_view op, int priority = 0) { register_blacklist(parse_op(op), priority); }
  void register_custom_op(std::string_view op, DataType forward, DataType backward, int priority = 0) {
    register_custom_op(parse_op(op), forward, backward, priority);
  }
  bool unregister(std::string_view op) { return unregister(parse_op(op)); }
  std::optional<OpPrecisionRule> get_rule(std::string_view op) const { return get_rule(parse_op(op)); }
  DataType get_forward_dtype(std::string_view op, DataType input) const {
    return get_forward_dtype(parse_op(op), input);
  }
  DataType get_backward_dtype(std::string_view op, DataType input) const {
    return get_backward_dtype(parse_op(op), input);
  }
  bool is_whitelisted(std::string_view op) const { return is_whitelisted(parse_op(op)); }
  bool is_blacklisted(std::string_view op) const { return is_blacklisted(parse_op(op)); }

 private:
  friend class DefaultAmpRules;
  // Ops that programs register have numbers after the built-in ones: room for them comes in chunks, which stay where
  // they are.
  static constexpr std::size_t chunk_size = 256;
  using Words = std::array<std::atomic<std::uint64_t>, chunk_size>;
  struct Chunk {
    Words user = {}, defaults = {};  // packed rules
    // What lookups read: four bits for each dtype that an input may have. 0: the op was not looked up yet.
    Words forward_dtypes = {}, backward_dtypes = {};
  };

  PackedRule find(OpId op) const;
  template <Words Chunk::*dtypes>
  DataType lookup(OpId op, DataType input) const;
  void refresh(OpId op);
  Chunk& chunk_for(OpId op);
  void add_default(OpId op, OpPrecision forward);
  void changed();
  std::vector<PackedRule> all_packed() const;

  const AmpConfig config_;
  std::array<std::atomic<Chunk*>, 65536 / chunk_size> chunks_ = {};
  mutable Mutex mutex_;  // of writers
  mutable std::shared_ptr<const AmpRules> snapshot_;
};

/// The rules that a registry starts with.
class DefaultAmpRules {
 public:
  /// Ops that are safe in low precision, and those that need the higher one, by name.
  static std::span<const std::string_view> default_whitelist();
  static std::span<const std::string_view> default_blacklist();
  /// Puts the defaults in their tier below every rule of the user's, which stay.
  static void apply_default_rules(AmpRegistry& registry);
};

}  // namespace xpuruntime
