// A driver that crashes or hangs as soon as a loader asks it for its platforms.

#include <unistd.h>

#include <cstdlib>

extern "C" void* clGetExtensionFunctionAddress(const char*) {
#ifdef XRT_HANGS
  for (;;) pause();
#else
  std::abort();
#endif
}
