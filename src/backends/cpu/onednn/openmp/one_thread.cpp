// As much of GCC's OpenMP as oneDNN asks for, with one thread: the tasks that call it are the threads. It has no
// settings and no thread-local storage that could be short when a process loads us late. If another oneDNN asks for
// more, it does not open, and its kernels say so.
extern "C" {

int omp_get_max_threads() { return 1; }
int omp_get_num_threads() { return 1; }
int omp_get_thread_num() { return 0; }
int omp_in_parallel() { return 0; }
void GOMP_barrier() {}
void GOMP_parallel(void (*body)(void*), void* data, unsigned, unsigned) { body(data); }

// What oneDNN has in the place of __cxa_atexit, under the version that the C library gives it on each architecture: its
// statics live until the process ends, as other threads may still be in calls when main returns.
int on_x86_64(void (*)(void*), void*, void*) { return 0; }
int on_aarch64(void (*)(void*), void*, void*) { return 0; }
__asm__(".symver on_x86_64, __xrt_atexit@GLIBC_2.2.5");
__asm__(".symver on_aarch64, __xrt_atexit@GLIBC_2.17");
}
