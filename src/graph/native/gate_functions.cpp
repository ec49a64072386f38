#include "graph/native/gate_functions.h"

#include "graph/native/calls.h"

namespace xpuruntime::native {
namespace {

/// The functions that have numbers, with their defaults; those without a beta ignore it.
struct FunctionNumbers {
  std::string_view name;
  double alpha;
  std::optional<double> beta;
};
constexpr FunctionNumbers with_numbers[] = {{"Affine", 1, 0},     {"LeakyRelu", 0.01, {}},   {"ThresholdedRelu", 1, {}},
                                            {"ScaledTanh", 1, 1}, {"HardSigmoid", 0.2, 0.5}, {"Elu", 1, {}}};

/// The attribute's numbers go to the functions that have one, in their order.
class GivenNumbers {
 public:
  GivenNumbers(const NodeCall& call, std::string_view name) {
    const auto* value = call.attribute(name);
    const auto* floats = value == nullptr ? nullptr : std::get_if<std::vector<float>>(value);
    if (floats != nullptr) numbers_ = *floats;
  }
  double next(double otherwise) { return next_ < numbers_.size() ? static_cast<double>(numbers_[next_++]) : otherwise; }

 private:
  std::vector<float> numbers_ = {};
  std::size_t next_ = 0;
};

int clipped(const Calls& calls, int x, double most) {
  const int below = calls.extreme(OpId::minimum, x, calls.number(most, x));
  return calls.extreme(OpId::maximum, below, calls.number(-most, x));
}

}  // namespace

Functions functions_of(const NodeCall& call, const Names& defaults, std::int64_t directions) {
  const auto* given = call.attribute("activations");
  const auto* list = given == nullptr ? nullptr : std::get_if<Names>(given);
  Names names;
  for (std::int64_t d = 0; d < directions; ++d) names.insert(names.end(), defaults.begin(), defaults.end());
  if (list != nullptr && !list->empty()) {
    if (list->size() != names.size()) call.refuse("another number of activations than " + std::to_string(names.size()));
    names = *list;
  }
  const double clip = call.real("clip", 0);
  if (!(clip >= 0)) call.refuse("a clip that is not positive");
  GivenNumbers alphas(call, "activation_alpha"), betas(call, "activation_beta");
  Functions functions;
  for (const std::string& name : names) {
    Function& function = functions.emplace_back(Function{name, 1, 0, clip});
    for (const FunctionNumbers& one : with_numbers) {
      if (one.name != name) continue;
      function.alpha = alphas.next(one.alpha);
      if (one.beta) function.beta = betas.next(*one.beta);
    }
  }
  return functions;
}

int applied(const NodeCall& call, const Function& function, int x) {
  const Calls calls{call.builder};
  const auto number = [&](double value) { return calls.number(value, x); };
  const auto& [name, alpha, beta, clip] = function;
  if (clip > 0) x = clipped(calls, x, clip);
  const auto positive = [&](int of) { return calls.one(OpId::relu, of); };
  if (name == "Tanh") return calls.one(OpId::tanh, x);
  if (name == "Relu") return positive(x);
  if (name == "Sigmoid") return calls.one(OpId::sigmoid, x);
  if (name == "Affine") return calls.add(calls.mul(x, number(alpha)), number(beta));
  if (name == "LeakyRelu") return calls.sub(positive(x), calls.mul(positive(calls.negative(x)), number(alpha)));
  if (name == "ThresholdedRelu") {  // the number itself, or 0
    const int above = calls.one(OpId::relu, calls.sub(x, number(alpha)));
    return calls.mul(x, calls.cast(calls.cast(above, DataType::boolean), call.builder.spec(x).dtype));
  }
  if (name == "ScaledTanh") return calls.mul(calls.one(OpId::tanh, calls.mul(x, number(beta))), number(alpha));
  if (name == "Softsign") return calls.div(x, calls.add(calls.absolute(x), number(1)));
  if (name == "HardSigmoid") {
    const int line = calls.add(calls.mul(x, number(alpha)), number(beta));
    return calls.extreme(OpId::minimum, positive(line), number(1));
  }
  if (name == "Elu") {  // exp of what is not positive only
    const int below = calls.sub(calls.one(OpId::exp, calls.negative(positive(calls.negative(x)))), number(1));
    return calls.add(positive(x), calls.mul(below, number(alpha)));
  }
  if (name == "Softplus") {  // without an exp that overflows
    const int rest = calls.one(OpId::exp, calls.negative(calls.absolute(x)));
    return calls.add(positive(x), calls.one(OpId::log, calls.add(rest, number(1))));
  }
  call.lacks("the activation " + name);
}

}  // namespace xpuruntime::native
