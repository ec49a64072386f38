#pragma once

#include "xpuruntime/core/problem.h"

namespace xpuruntime::cpu {

/// The attributes of a function of one element; 0 where it has none.
struct Parameters {
  double first = 0;
  double second = 0;
};

inline Parameters parameters_of(const Problem& problem) {
  const Attributes& given = problem.attributes;
  switch (problem.op) {
    case OpId::clip:
      return {given.real("min"), given.real("max")};
    case OpId::leaky_relu:
      return {given.real("negative_slope")};
    case OpId::elu:
      return {given.real("alpha")};
    case OpId::hard_sigmoid:
      return {given.real("alpha"), given.real("beta")};
    default:
      return {};
  }
}

}  // namespace xpuruntime::cpu
