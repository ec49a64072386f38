#include <algorithm>
#include <limits>
#include <vector>

#include "core/json_text.h"
#include "precision/loss_scaler_check.h"

namespace xpuruntime {
namespace {

constexpr int format_version = 1;

void read_value(std::int64_t& to, const Json& value, std::string_view field, const JsonSource& source) {
  // Whole numbers from 0 up are `unsigned` to the parser; anything past 64 bits becomes a float there.
  constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > most) {
    source.refuse_field(field, "must be a whole number from 0 to " + std::to_string(most) + "; correct the value");
  }
  to = value.get<std::int64_t>();
}

void read_value(float& to, const Json& value, std::string_view field, const JsonSource& source) {
  const double number = value.is_number() ? value.get<double>() : 0;
  // Past f32 a conversion would not be defined; what the number must be beyond that is checked with all the others.
  if (!(number > 0) || number > double{std::numeric_limits<float>::max()}) {
    source.refuse_field(field, "must be a number over 0 that fits f32; correct the value");
  }
  to = static_cast<float>(number);
}

void read_value(bool& to, const Json& value, std::string_view field, const JsonSource& source) {
  if (!value.is_boolean()) source.refuse_field(field, "must be true or false; correct the value");
  to = value.get<bool>();
}

struct Field {
  std::string_view name = {};
  void (*read)(LossScalerState&, const Json&, std::string_view, const JsonSource&) = nullptr;
  Json (*write)(const LossScalerState&) = nullptr;
};

using State = LossScalerState;
template <class T>
State& part(State& state, T State::*) {
  return state;
}
template <class T>
LossScalerConfig& part(State& state, T LossScalerConfig::*) {
  return state.config;
}
template <class T>
LossScalerStatistics& part(State& state, T LossScalerStatistics::*) {
  return state.statistics;
}

template <auto member>
constexpr Field field(std::string_view name) {
  return {name,
          [](State& state, const Json& value, std::string_view field_name, const JsonSource& source) {
            read_value(part(state, member).*member, value, field_name, source);
          },
          [](const State& state) {
            State copy = state;
            return Json(part(copy, member).*member);
          }};
}

// Reading, writing and the list of known names are one table: a field cannot be in one and not in the others.
constexpr Field fields[] = {
    field<&LossScalerConfig::initial_scale>("initial_scale"),
    field<&LossScalerConfig::growth_factor>("growth_factor"),
    field<&LossScalerConfig::backoff_factor>("backoff_factor"),
    field<&LossScalerConfig::growth_interval>("growth_interval"),
    field<&LossScalerConfig::min_scale>("min_scale"),
    field<&LossScalerConfig::max_scale>("max_scale"),
    field<&LossScalerConfig::dynamic>("dynamic"),
    field<&State::scale>("scale"),
    field<&LossScalerStatistics::steps>("steps"),
    field<&LossScalerStatistics::skipped_steps>("skipped_steps"),
    field<&LossScalerStatistics::growths>("growths"),
    field<&LossScalerStatistics::backoffs>("backoffs"),
    field<&LossScalerStatistics::streak>("streak"),
    field<&LossScalerStatistics::min_scale_seen>("min_scale_seen"),
    field<&LossScalerStatistics::max_scale_seen>("max_scale_seen"),
};

void refuse_unknown_fields(const Json& json, const JsonSource& source) {
  std::vector<std::string_view> known = {"version"};
  for (const Field& f : fields) known.push_back(f.name);
  for (const auto& [name, value] : json.items()) {
    if (std::find(known.begin(), known.end(), name) == known.end()) source.refuse_unknown(name, known);
  }
}

const Json& needed(const Json& json, std::string_view name, const JsonSource& source) {
  const auto found = json.find(name);
  if (found == json.end()) source.refuse_field(name, "is missing; save the state anew");
  return *found;
}

}  // namespace

std::string LossScalerState::to_json() const {
  Json json = {{"version", format_version}};
  for (const Field& f : fields) json[std::string(f.name)] = f.write(*this);
  return dump_json(json, 2) + "\n";
}

LossScalerState LossScalerState::from_json(std::string_view json) {
  const JsonSource source = {"LossScalerState::from_json", "loss scaler text: ", "loss scaler", 1, json};
  const Json object = parse_json(json, source);
  if (!object.is_object()) {
    source.refuse(ErrorCode::invalid_argument, "a loss scaler's state is a JSON object; put its fields in braces");
  }
  refuse_unknown_fields(object, source);
  if (const Json& version = needed(object, "version", source); version != format_version) {
    source.refuse_field("version", "is " + shown(dump_json(version)) +
                                       ", and only 1 can be read here; save the state anew with this version");
  }
  LossScalerState state;
  for (const Field& f : fields) f.read(state, needed(object, f.name, source), f.name, source);
  if (const std::string wrong = what_is_wrong(state); !wrong.empty()) {
    source.refuse(ErrorCode::invalid_argument, wrong);
  }
  return state;
}

}  // namespace xpuruntime
