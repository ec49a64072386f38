#include <nanobind/operators.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "core/printable.h"
#include "python/arguments.h"
#include "python/gil.h"
#include "python/policy_values.h"
#include "python/scopes.h"
#include "python/types.h"
#include "xpuruntime/runtime/replay.h"
#include "xpuruntime/select/range_rule.h"

namespace xpuruntime::python {
namespace {

ProblemRange parsed_range(nb::handle text, nb::handle device) {
  if (nb::isinstance<ProblemRange>(text)) return nb::cast<ProblemRange>(text);
  const Device where = device.is_none() ? Device{} : device_from(device);
  return parse_problem_range(text_from(text, "ProblemRange", "text"), where);
}

/// The problem of sizes that are given by name: at(m=17).
Problem problem_at(const ProblemRange& self, const nb::kwargs& given) {
  std::vector<std::int64_t> sizes;
  std::vector<std::string_view> known;
  for (const SizeRange& name : self.names()) {
    known.push_back(name.name);
    const nb::object key = to_python(std::string_view(name.name));
    if (!given.contains(key)) {
      fail(ErrorCode::invalid_argument, "ProblemRange.at", name.name + " is missing; pass a size for each name");
    }
    sizes.push_back(integer_from(given[key], "ProblemRange.at", name.name.c_str()));
  }
  for (const auto& [key, value] : given) {
    const std::string name = text_from(key, "ProblemRange.at", "a name");
    if (std::find(known.begin(), known.end(), name) == known.end())
      fail_unknown("ProblemRange.at", "name", name, known);
  }
  return self.at(sizes);
}

nb::dict names_of(const ProblemRange& self) {
  nb::dict names;
  for (const SizeRange& name : self.names()) {
    names[to_python(std::string_view(name.name))] = nb::make_tuple(name.low, name.high);
  }
  return names;
}

nb::object rules_of(const RangeResult& self) {
  KernelPolicy policy;
  policy.rules = range_rules(self);
  const nb::object document = from_json_text(policy.to_json());
  return document.attr("get")("rules", nb::list());
}

KernelPolicy policy_of(const RangeResult& self, nb::handle base) {
  return with_range_rules(base.is_none() ? KernelPolicy{} : policy_from(base, "RangeResult.policy"), self.range,
                          range_rules(self));
}

void bind_range(nb::module_& module) {
  nb::class_<ProblemRange>(module, "ProblemRange", "Problems that are alike but for some extents.")
      .def(
          "__init__",
          [](ProblemRange* self, nb::handle text, nb::handle device) {
            new (self) ProblemRange(parsed_range(text, device));
          },
          nb::arg("text").none(), nb::arg("device") = nb::none(),
          nb::sig("def __init__(self, text: str | ProblemRange, device: object = None) -> None"),
          "Reads a text such as \"matmul(f32[m,768], f32[768,768]) where m=1..512\".")
      .def_prop_ro("names", names_of, nb::sig("def names(self) -> dict[str, tuple[int, int]]"),
                   "The least and the largest size of each name.")
      .def("at", problem_at, nb::sig("def at(self, **sizes: int) -> Problem"), "The problem of these sizes.")
      .def("__len__", &ProblemRange::count)
      .def(
          "__contains__", [](const ProblemRange& self, const Problem& problem) { return self.contains(problem); },
          nb::arg("problem"))
      .def(nb::self == nb::self, nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__hash__", [](const ProblemRange& self) { return nb::hash(to_python(to_string(self))); })
      .def("__reduce__",
           [](const ProblemRange& self) {
             return nb::make_tuple(nb::type<ProblemRange>(), nb::make_tuple(to_string(self)));
           })
      .def("__str__", [](const ProblemRange& self) { return to_string(self); })
      .def("__repr__", [](const ProblemRange& self) { return "ProblemRange('" + to_string(self) + "')"; });
  module.def("record_ranges", [](KernelLock& lock, const std::vector<ProblemRange>& ranges) {
    sync_scope();
    const WithoutGil release;
    record_ranges(lock, Runtime::global(), ranges);
  });
  module.def("has_ranges", [](const std::string& text) { return has_ranges(text); });
}

}  // namespace

void bind_ranges(nb::module_& module) {
  bind_range(module);
  nb::class_<TunedPart>(module, "TunedPart", "A part of a range, and the kernel that runs all of it.")
      .def_ro("range", &TunedPart::range)
      .def_ro("kernel", &TunedPart::kernel)
      .def("__repr__", [](const TunedPart& self) {
        return printable("TunedPart('" + to_string(self.range) + "': " + self.kernel + ")");
      });
  nb::class_<RangeResult>(module, "RangeResult", "What tuning a range ended with.")
      .def_ro("range", &RangeResult::range)
      .def_ro("parts", &RangeResult::parts)
      .def_ro("measured", &RangeResult::measured,
              "The last race of each size that was measured, in the order of these.")
      .def_ro("problems", &RangeResult::problems, "How many the range holds.")
      .def_ro("covered", &RangeResult::covered, "How many of them the parts hold.")
      .def_ro("guessed", &RangeResult::guessed,
              "How many have the kernel of the measured sizes around them, as points ran out.")
      .def_ro("undecided", &RangeResult::undecided, "How many stay with the default, as points or time ran out.")
      .def_ro("too_large", &RangeResult::too_large, "How many were left out, as their tensors do not fit in memory.")
      .def_ro("named_by_policy", &RangeResult::named_by_policy,
              "How many the policy names a kernel for; they were left alone.")
      .def_ro("named_because", &RangeResult::named_because, "How it does that: \"the policy prefers openblas\".")
      .def_ro("complete", &RangeResult::complete,
              "False where it was stopped, or nothing was timed, or nothing of sizes that other kernels can run.")
      .def_ro("cut_short", &RangeResult::cut_short, "The total budget ended it before it was sure of all.")
      .def_ro("cut_by", &RangeResult::cut_by, "Which budget did: total_budget_s; else empty.")
      .def_ro("spent_s", &RangeResult::spent_s)
      .def("rules", rules_of, nb::sig("def rules(self) -> list[dict[str, object]]"),
           "A rule of a policy for each part.")
      .def("policy", policy_of, nb::arg("base") = nb::none(),
           nb::sig("def policy(self, base: object = None) -> KernelPolicy"),
           "A policy with these rules before those of `base`; ranges of `base` that they hold are replaced.")
      .def("__str__", [](const RangeResult& self) { return self.summary("total_budget_s", "budget_s"); })
      .def("__repr__", [](const RangeResult& self) {
        return printable("RangeResult('" + to_string(self.range) + "': " + self.summary("total_budget_s", "budget_s") +
                         ")");
      });
}

}  // namespace xpuruntime::python
