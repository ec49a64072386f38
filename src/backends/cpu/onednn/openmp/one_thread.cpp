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
}
