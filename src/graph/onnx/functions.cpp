#include "graph/onnx/functions.h"

#include <algorithm>
#include <utility>

#include "core/printable.h"

namespace xpuruntime::onnx {
namespace {

std::string domain_of(std::string_view text) { return text == "ai.onnx" ? "" : std::string(text); }

std::int64_t own_opset(const WireField& message) {
  std::string domain;
  std::int64_t version = 0;
  WireReader fields(message);
  while (const auto field = fields.next()) {
    if (field->number == 1) domain = domain_of(field->text());
    if (field->number == 2) version = field->integer();
  }
  return domain.empty() ? version : 0;
}

void check_names(const std::vector<std::string>& names, const Function& function, const char* what) {
  std::vector<std::string_view> sorted(names.begin(), names.end());
  std::sort(sorted.begin(), sorted.end());
  const bool twice = std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end();
  if (!twice && (sorted.empty() || !sorted.front().empty())) return;
  fail_at(function.message.offset,
          "function '" + shown(function.name) + "' has " + what + (twice ? " of one name" : " without a name"));
}

}  // namespace

void Functions::add(const WireField& message) {
  Function function{.message = message};
  std::string domain, name, overload;
  WireReader fields(message);
  while (const auto field = fields.next()) {
    if (field->number == 1) name = field->text();
    if (field->number == 4) function.inputs.emplace_back(field->text());
    if (field->number == 5) function.outputs.emplace_back(field->text());
    if (field->number == 9) function.opset = std::max(function.opset, own_opset(*field));
    if (field->number == 10) domain = domain_of(field->text());
    if (field->number == 11) function.defaults.push_back(*field);
    if (field->number == 13) overload = field->text();
  }
  if (name.empty()) fail_at(message.offset, "a function without a name");
  function.name = (domain.empty() ? "" : domain + "::") + name;
  check_names(function.inputs, function, "inputs");
  check_names(function.outputs, function, "outputs");
  const std::string text = shown(function.name);
  if (!functions_.emplace(Key{domain, name, overload}, std::move(function)).second) {
    fail_at(message.offset, "function '" + text + "' is there twice");
  }
}

const Function* Functions::find(std::string_view domain, std::string_view name, std::string_view overload) const {
  if (functions_.empty()) return nullptr;
  const auto found = functions_.find(Key{domain, name, overload});
  return found == functions_.end() ? nullptr : &found->second;
}

}  // namespace xpuruntime::onnx
