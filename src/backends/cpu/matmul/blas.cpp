#include "backends/cpu/matmul/blas.h"

#include <cblas.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>
#include <vector>

// What OpenBLAS exports where it chooses its code at run time.
extern "C" {
[[gnu::weak]] void gotoblas_dynamic_init(void);
[[gnu::weak]] void gotoblas_dynamic_quit(void);
}

namespace xpuruntime::cpu {
namespace {

#if defined(__x86_64__)

/// The CPU that OpenBLAS should take this one for; null where it has chosen well or was told by the user.
const char* better_core() {
  if (gotoblas_dynamic_init == nullptr || gotoblas_dynamic_quit == nullptr) return nullptr;
  if (std::getenv("OPENBLAS_CORETYPE") != nullptr) return nullptr;
  // A CPU newer than the library is taken for the oldest one: a sixth of the speed.
  if (std::string_view(openblas_get_corename()) != "Prescott") return nullptr;
  if (__builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq")) return "OPENBLAS_CORETYPE=SkylakeX";
  return __builtin_cpu_supports("avx2") ? "OPENBLAS_CORETYPE=Haswell" : nullptr;
}

void choose_core() {
  const char* core = better_core();
  if (core == nullptr) return;
  // OpenBLAS asks the environment alone. setenv may move the table under a reader, so for the moment of the choice a
  // copy with one more entry stands in its place; both stay whole.
  static std::vector<char*> entries;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) entries.push_back(*entry);
  entries.push_back(const_cast<char*>(core));
  entries.push_back(nullptr);
  char** const before = environ;
  environ = entries.data();
  gotoblas_dynamic_quit();
  gotoblas_dynamic_init();
  environ = before;
}

#else

void choose_core() {}

#endif

}  // namespace

void use_one_blas_thread() {
  [[maybe_unused]] static const bool done = (choose_core(), openblas_set_num_threads(1), true);
}

}  // namespace xpuruntime::cpu
