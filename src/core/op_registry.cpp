#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <deque>
#include <memory>

#include "core/names.h"
#include "core/op_table.h"
#include "core/printable.h"
#include "xpuruntime/core/error.h"
#include "xpuruntime/core/mutex.h"

namespace xpuruntime {
namespace {

constexpr std::size_t builtin_count = static_cast<std::size_t>(OpId::builtin_count);
constexpr std::size_t max_registered = 1024;
constexpr std::size_t max_name_length = 64;

// Readers take no lock: a slot is written once, before the count that makes it visible.
std::array<std::atomic<const OpInfo*>, max_registered> registered = {};
std::atomic<std::size_t> registered_count = 0;
Mutex registration;

using Comparison = bool (*)(std::string_view given, std::string_view name);

bool has_name(const OpInfo& info, std::string_view given, Comparison same) {
  if (same(given, info.name)) return true;
  bool found = false;
  for_each_part(info.aliases, [&](std::string_view alias) { return !(found = same(given, alias)); });
  return found;
}

// Letters, digits and underscores with at least one letter in front: what a problem text can hold.
bool is_name(std::string_view name) {
  if (name.empty() || name.size() > max_name_length || lowered(name[0]) < 'a' || lowered(name[0]) > 'z') return false;
  for (char c : name) {
    if (c != '_' && (c < '0' || c > '9') && (lowered(c) < 'a' || lowered(c) > 'z')) return false;
  }
  return true;
}

[[noreturn]] void refuse(const std::string& message) { fail(ErrorCode::invalid_argument, "register_op", message); }

void check_free_name(std::string_view name) {
  if (!is_name(name)) {
    refuse("'" + shown(name) + "' is not a name; use a letter, then letters, digits and underscores, at most 64");
  }
  if (const auto taken = find_op_like(name)) {
    refuse("'" + std::string(name) + "' already means the op " + std::string(to_string(*taken)) +
           ", or differs from one of its names in underscores alone; choose another name");
  }
}

void check_choices(const AttributeSpec& spec) {
  std::int64_t count = 0;
  for_each_part(spec.choices, [&](std::string_view part) {
    if (!is_name(part)) refuse("attribute " + std::string(spec.name) + " has a choice that is not a name; rename it");
    return ++count > 0;
  });
  if (spec.default_value < 0 || spec.default_value >= count) {
    refuse("the default of attribute " + std::string(spec.name) + " is not one of its choices; give the index of one");
  }
}

void check_attribute(const AttributeSpec& spec) {
  const std::string name(spec.name);
  if (!is_name(spec.name)) refuse("attribute name '" + name + "' is not a name; use letters, digits and underscores");
  if (spec.kind > AttributeKind::dtype) refuse("attribute " + name + " has no known kind; use one of AttributeKind");
  if (spec.kind == AttributeKind::choice) check_choices(spec);
  const bool bad_boolean = spec.kind == AttributeKind::boolean && (spec.default_value & ~std::int64_t{1}) != 0;
  const bool bad_dtype =
      spec.kind == AttributeKind::dtype && (spec.default_value < 0 || spec.default_value >= data_type_count);
  const bool bad_real = spec.kind == AttributeKind::real && !std::isfinite(std::bit_cast<double>(spec.default_value));
  if (bad_boolean || bad_dtype || bad_real) refuse("the default of attribute " + name + " is out of range; correct it");
}

void check_attributes(std::span<const AttributeSpec> specs) {
  for (std::size_t i = 0; i < specs.size(); ++i) {
    check_attribute(specs[i]);
    for (std::size_t j = 0; j < i; ++j) {
      if (specs[j].name == specs[i].name)
        refuse("attribute " + std::string(specs[i].name) + " is given twice; drop one");
    }
  }
  if (word_count(specs) > Attributes::max_words) {
    refuse("the attributes take " + std::to_string(word_count(specs)) + " words and 16 are there; use fewer");
  }
}

void check_input(const OpInfo& info, std::size_t i) {
  const InputSpec& input = info.inputs[i];
  const std::string name(input.name.substr(0, max_name_length));
  const bool last = i + 1 == info.inputs.size();
  if ((input.optional && !last && !info.inputs[i + 1].optional) || (input.repeated && !last)) {
    refuse("input " + name + " is optional or repeated and comes before one that is not; put it last");
  }
  const auto flag = [&](const AttributeSpec& spec) {
    return spec.name == input.logarithm && spec.kind == AttributeKind::boolean;
  };
  if (!input.logarithm.empty() && std::none_of(info.attributes.begin(), info.attributes.end(), flag)) {
    refuse("'" + std::string(input.logarithm) + "' of input " + name + " is not a boolean attribute; add that");
  }
}

void check_size(const SizeSpec& size) {
  const bool known = size.kind == AttributeKind::integer || size.kind == AttributeKind::boolean ||
                     (size.kind == AttributeKind::integers && size.length > 0);
  if (is_name(size.name) && known && size.read != nullptr) return;
  refuse("size '" + std::string(size.name.substr(0, max_name_length)) +
         "' lacks a name, a known kind or its function; correct it");
}

void check_info(const OpInfo& info) {
  check_free_name(info.name);
  for_each_part(info.aliases, [](std::string_view alias) {
    check_free_name(alias);
    return true;
  });
  if (info.category > OpCategory::movement) refuse("the category is not one of OpCategory; correct it");
  if (info.min_inputs > info.max_inputs || info.max_inputs > max_inputs) {
    refuse("inputs from " + std::to_string(info.min_inputs) + " to " + std::to_string(info.max_inputs) +
           " is not a valid range; give min_inputs <= max_inputs <= 64");
  }
  if (info.infer == nullptr) refuse("infer is missing; give the function that infers the outputs");
  check_attributes(info.attributes);
  for (std::size_t i = 0; i < info.inputs.size(); ++i) check_input(info, i);
  for (const SizeSpec& size : info.sizes) check_size(size);
}

// Keeps every text that an OpInfo points to.
struct StoredOp {
  OpInfo info = {};
  std::deque<std::string> texts = {};  // a deque, so that views into it stay good
  std::vector<AttributeSpec> attributes = {};
  std::vector<InputSpec> inputs = {};
  std::vector<SizeSpec> sizes = {};

  std::string_view keep(std::string_view text) { return texts.emplace_back(text); }
};

std::unique_ptr<StoredOp> stored_copy(const OpInfo& info, OpId id) {
  auto stored = std::make_unique<StoredOp>();
  stored->info = info;
  stored->info.id = id;
  OpInfo& own = stored->info;
  for (std::string_view* text :
       {&own.name, &own.aliases, &own.summary, &own.sample, &own.autocast_names, &own.parameters, &own.functions}) {
    *text = stored->keep(*text);
  }
  for (AttributeSpec spec : info.attributes) {
    for (std::string_view* text : {&spec.name, &spec.choices, &spec.note, &spec.python_name}) {
      *text = stored->keep(*text);
    }
    stored->attributes.push_back(spec);
  }
  for (InputSpec spec : info.inputs) {
    for (std::string_view* text : {&spec.name, &spec.logarithm}) *text = stored->keep(*text);
    stored->inputs.push_back(spec);
  }
  for (SizeSpec spec : info.sizes) {
    for (std::string_view* text : {&spec.name, &spec.summary}) *text = stored->keep(*text);
    stored->sizes.push_back(spec);
  }
  own.attributes = stored->attributes;
  own.inputs = stored->inputs;
  own.sizes = stored->sizes;
  return stored;
}

const OpInfo* info_at(std::size_t index) {
  if (index < builtin_count) return &builtin_ops()[index];
  if (index - builtin_count >= registered_count.load(std::memory_order_acquire)) return nullptr;
  return registered[index - builtin_count].load(std::memory_order_relaxed);
}

std::optional<OpId> find_by(Comparison same, std::string_view name) {
  if (!is_name(name)) return {};
  for (std::size_t i = 0; const OpInfo* info = info_at(i); ++i) {
    if (has_name(*info, name, same)) return info->id;
  }
  return {};
}

[[noreturn]] void fail_no_op(std::size_t number) {
  fail(ErrorCode::invalid_argument, "op_info",
       "there is no op of number " + std::to_string(number) + "; use an OpId that find_op or register_op gave");
}

}  // namespace

const OpInfo& op_info(OpId id) {
  const OpInfo* info = info_at(static_cast<std::size_t>(id));
  if (info == nullptr) fail_no_op(static_cast<std::size_t>(id));
  return *info;
}

std::optional<OpId> find_op(std::string_view name) { return find_by(is_spelling_of, name); }
std::optional<OpId> find_op_like(std::string_view name) { return find_by(same_letters, name); }

OpId parse_op(std::string_view name) {
  if (const auto id = find_op(name)) return *id;
  std::vector<std::string_view> known;
  for (OpId id : all_ops()) known.push_back(to_string(id));
  fail_unknown("parse_op", "op", name, known);
}

std::vector<OpId> all_ops() {
  std::vector<OpId> ids;
  for (std::size_t i = 0; const OpInfo* info = info_at(i); ++i) ids.push_back(info->id);
  return ids;
}

OpId register_op(const OpInfo& given) {
  const std::lock_guard lock(registration);
  if (given.inputs.size() > max_inputs) refuse("more than 64 inputs are named; name fewer");
  const OpInfo info = with_input_counts(given);
  check_info(info);
  const std::size_t slot = registered_count.load(std::memory_order_relaxed);
  if (slot == max_registered) refuse("1024 ops have been registered and there is no room for more; register fewer");
  const OpId id = static_cast<OpId>(builtin_count + slot);
  // Never freed: others may hold references to an op's info as long as the process lives.
  registered[slot].store(&stored_copy(info, id).release()->info, std::memory_order_relaxed);
  registered_count.store(slot + 1, std::memory_order_release);
  return id;
}

}  // namespace xpuruntime
