// A user's whole program, built against the installed package.
#include <iostream>

#include "xpuruntime/core/problem.h"

int main() {
  const xpuruntime::Problem problem = xpuruntime::parse_problem("MatMul(float32[2,3], fp32[3,4]) @cpu:0");
  std::cout << to_string(problem) << '\n';
}
