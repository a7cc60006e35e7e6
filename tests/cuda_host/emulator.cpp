/* Runs kernels on the processor. Blocks one after the other, the threads of a block as fibers that yield at barriers
 * and shuffles only. */
#include "emulator.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <vector>

#include "cuda_runtime.h"
#include "fiber.h"
#include "stream.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(p, n)   ((void)(p), (void)(n))
#define ASAN_UNPOISON_MEMORY_REGION(p, n) ((void)(p), (void)(n))
#endif

emulated_place emulated;

enum { LANES = 32, MOST_THREADS = 1024, SHARED_BYTES = 227 << 10 }; /* that of an H100; sm_80 has 163 */
enum state { RUNNING, AT_BARRIER, AT_SHUFFLE, DONE };

struct cuda_thread {
    fiber *f;
    state where;
    int line; /* of the barrier or shuffle it waits at */
};

struct warp {
    uint64_t value[2][LANES]; /* of this meeting and the one before, which a slow lane may still read */
    int meeting, arrived;
};

static cuda_thread threads[MOST_THREADS];
static warp warps[MOST_THREADS / LANES];
static int n_threads, n_done, at_barrier, barrier_line;
static bool barrier_any[2];
static int barrier_meeting;
static cuda_thread *current;
static emulated_kernel kernel;
static const char *kernel_name = "";
static bool reversed;
static int64_t launches, waits;
alignas(128) static unsigned char shared[SHARED_BYTES + 128];

static void die(const char *what) {
    static const char *const NAMES[] = {"running", "at the barrier", "at the shuffle", "done"};
    const dim3 at = emulated.block, of = emulated.blocks;
    fprintf(stderr, "emulator: %s: %s, block (%u,%u,%u) of (%u,%u,%u), thread %d\n", kernel_name, what, at.x, at.y, at.z,
            of.x, of.y, of.z, current ? (int)(current - threads) : -1);
    for (int i = 0; i < n_threads; ++i)
        if (i == 0 || threads[i].where != threads[i - 1].where || threads[i].line != threads[i - 1].line)
            fprintf(stderr, "  from thread %d on: %s of line %d\n", i, NAMES[threads[i].where], threads[i].line);
    abort();
}

/* --- meeting points */

static void yield(void) {
    fiber_switch(current->f, fiber_of_thread(), false);
}

bool emulated_barrier(bool any, int line) {
    const int meeting = barrier_meeting % 2;
    if (at_barrier == 0) {
        barrier_line = line;
        barrier_any[meeting] = false;
    }
    current->where = AT_BARRIER;
    current->line = line;
    if (line != barrier_line) die("threads meet at barriers of different lines");
    barrier_any[meeting] |= any;
    if (++at_barrier < n_threads) {
        yield();
    } else {
        at_barrier = 0;
        barrier_meeting++;
        for (int i = 0; i < n_threads; ++i) threads[i].where = RUNNING;
        yield(); /* so that the order of the threads holds after each barrier */
    }
    return barrier_any[meeting];
}

int emulated_lane(void) {
    return (int)emulated.thread.x % LANES;
}

const uint64_t *emulated_exchange(unsigned mask, uint64_t value, int line) {
    const int first = (int)emulated.thread.x / LANES * LANES;
    warp *w = &warps[first / LANES];
    const int meeting = w->meeting % 2;
    current->where = AT_SHUFFLE;
    current->line = line;
    if (mask != 0xffffffffu || first + LANES > n_threads) die("a shuffle of less than a warp");
    if (w->arrived > 0)
        for (int i = first; i < first + LANES; ++i)
            if (threads[i].where == AT_SHUFFLE && threads[i].line != line)
                die("lanes meet at shuffles of different lines");
    w->value[meeting][emulated.thread.x % LANES] = value;
    if (++w->arrived == LANES) {
        w->arrived = 0;
        w->meeting++;
        for (int i = first; i < first + LANES; ++i) threads[i].where = RUNNING;
    }
    yield();
    return w->value[meeting];
}

unsigned char *emulated_shared(void) {
    return shared;
}

/* --- a launch */

static void thread_body(void) {
    kernel.thread(kernel.call);
    current->where = DONE;
    n_done++;
    fiber_switch(current->f, fiber_of_thread(), true);
}

static void run_block(size_t shared_bytes) {
    memset(shared, 0xff, shared_bytes); /* NaN, -1: nothing may be read before it is written */
    n_done = at_barrier = 0;
    for (int i = 0; i < n_threads; ++i) {
        threads[i].where = RUNNING;
        threads[i].line = 0;
        fiber_begin(threads[i].f, thread_body);
    }
    for (int i = 0; i < (n_threads + LANES - 1) / LANES; ++i) warps[i].arrived = 0;
    while (n_done < n_threads) {
        bool moved = false;
        for (int i = 0; i < n_threads; ++i) {
            current = &threads[reversed ? n_threads - 1 - i : i];
            if (current->where != RUNNING) continue;
            emulated.thread.x = (unsigned)(current - threads);
            moved = true;
            fiber_switch(fiber_of_thread(), current->f, false);
        }
        if (!moved) die("a barrier or shuffle that not all threads reach");
    }
    current = NULL;
}

static void memory_open(bool open);

void emulated_run(const char *name, dim3 blocks, unsigned n, size_t shared_bytes, emulated_kernel k) {
    kernel = k;
    kernel_name = name;
    n_threads = (int)n;
    emulated.blocks = blocks;
    emulated.threads = dim3(n);
    if (n < 1 || n > MOST_THREADS || blocks.y > 65535 || blocks.z > 65535 || shared_bytes > SHARED_BYTES)
        die("a launch that no GPU can make");
    for (unsigned i = 0; i < n; ++i)
        if (!threads[i].f) threads[i].f = fiber_new();
    ASAN_UNPOISON_MEMORY_REGION(shared, sizeof shared);
    ASAN_POISON_MEMORY_REGION(shared + (shared_bytes + 7) / 8 * 8, sizeof shared - (shared_bytes + 7) / 8 * 8);
    memory_open(true);
    for (emulated.block.z = 0; emulated.block.z < blocks.z; ++emulated.block.z)
        for (emulated.block.y = 0; emulated.block.y < blocks.y; ++emulated.block.y)
            for (emulated.block.x = 0; emulated.block.x < blocks.x; ++emulated.block.x) run_block(shared_bytes);
    memory_open(false);
    launches++;
}

/* --- recorded work */

static std::vector<std::function<void()>> *record; /* NULL = work is done as it comes */

void emulated_submit(std::function<void()> work) {
    if (record)
        record->push_back(std::move(work));
    else
        work();
}
void emulated_record(std::vector<std::function<void()>> *to) {
    record = to;
}

void emulator_reverse(int on) {
    reversed = on != 0;
}

int64_t emulator_launches(void) {
    return launches;
}
void emulated_product(void) {
    launches++;
}
int64_t emulator_waits(void) {
    return waits;
}

/* --- device memory: one reserved stretch of addresses, accessible inside kernels and copies only */

static const size_t RESERVED = (size_t)16 << 30, GRAIN = 256, HUGE_PAGE = (size_t)2 << 20;

struct allocation {
    size_t at, bytes; /* in the stretch; the gap of GRAIN bytes behind it is poisoned */
};
static char *memory;
static size_t accessible;                   /* bytes from the start that have ever been given out, in huge pages */
static std::vector<allocation> allocations; /* by place */

static void memory_open(bool open) {
    if (accessible && mprotect(memory, accessible, open ? PROT_READ | PROT_WRITE : PROT_NONE) != 0)
        die("device memory cannot be protected");
}

static void memory_reserve(void) {
    if (memory) return;
    memory = (char *)mmap(NULL, RESERVED + HUGE_PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) die("no addresses for device memory");
    memory = (char *)(((uintptr_t)memory + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE);
    madvise(memory, RESERVED, MADV_HUGEPAGE); /* few pages to protect; without it, only slower */
}

cudaError_t cudaMalloc(void **out, size_t bytes) {
    if (record) return cudaErrorStreamCaptureUnsupported;
    memory_reserve();
    const size_t room = (bytes + GRAIN - 1) / GRAIN * GRAIN + GRAIN;
    size_t at = 0, i = 0;
    for (; i < allocations.size() && allocations[i].at - at < room; ++i)
        at = allocations[i].at + (allocations[i].bytes + GRAIN - 1) / GRAIN * GRAIN + GRAIN;
    if (at + room > RESERVED) return cudaErrorMemoryAllocation;
    allocations.insert(allocations.begin() + (long)i, allocation{at, bytes});
    if (at + room > accessible) accessible = (at + room + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    memory_open(true);
    ASAN_UNPOISON_MEMORY_REGION(memory + at, bytes);
    memset(memory + at, 0xff, bytes);
    ASAN_POISON_MEMORY_REGION(memory + at + (bytes + 7) / 8 * 8, at + room - (at + (bytes + 7) / 8 * 8));
    memory_open(false);
    *out = memory + at;
    return cudaSuccess;
}

cudaError_t cudaFree(void *p) {
    if (record) die("memory given back while a graph is recorded");
    for (size_t i = 0; i < allocations.size(); ++i)
        if (memory + allocations[i].at == p) {
            ASAN_POISON_MEMORY_REGION(p, allocations[i].bytes);
            allocations.erase(allocations.begin() + (long)i);
            return cudaSuccess;
        }
    return p ? cudaErrorInvalidValue : cudaSuccess;
}

size_t emulator_bytes_in_use(void) {
    size_t bytes = 0;
    for (const allocation &a : allocations) bytes += a.bytes;
    return bytes;
}

/* Whether [p, p + bytes) lies within one allocation. */
static bool on_device(const void *p, size_t bytes) {
    for (const allocation &a : allocations)
        if ((const char *)p >= memory + a.at && (const char *)p + bytes <= memory + a.at + a.bytes) return true;
    return false;
}

cudaError_t cudaMemsetAsync(void *p, int value, size_t bytes, cudaStream_t) {
    if (record) return cudaErrorStreamCaptureUnsupported;
    if (!on_device(p, bytes)) return cudaErrorInvalidValue;
    memory_open(true);
    memset(p, value, bytes);
    memory_open(false);
    return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t) {
    if (record) return cudaErrorStreamCaptureUnsupported;
    if (!on_device(kind == cudaMemcpyHostToDevice ? to : from, bytes)) return cudaErrorInvalidValue;
    memory_open(true);
    memcpy(to, from, bytes);
    memory_open(false);
    return cudaSuccess;
}

/* --- the rest of the runtime */

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned) {
    *out = (cudaStream_t)&kernel;
    return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t) {
    return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t) {
    if (record) return cudaErrorStreamCaptureUnsupported;
    waits++;
    return cudaSuccess;
}
/* GPUs of a node: one, or EMULATED_GPUS; the same ones in every process. */
static int gpus(void) {
    const char *n = getenv("EMULATED_GPUS");
    return n ? atoi(n) : 1;
}
cudaError_t cudaSetDevice(int device) {
    return device >= 0 && device < gpus() ? cudaSuccess : cudaErrorInvalidValue;
}
cudaError_t cudaGetDeviceCount(int *n) {
    *n = gpus();
    return *n > 0 ? cudaSuccess : cudaErrorNoDevice;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *p, int device) {
    *p = {"emulated on the processor", 8, 0, {"emulated"}};
    p->uuid.bytes[15] = (char)device;
    return cudaSuccess;
}
cudaError_t cudaGetLastError(void) {
    return cudaSuccess;
}
cudaError_t cudaFuncSetAttribute(const void *, cudaFuncAttribute, int value) {
    return value <= SHARED_BYTES ? cudaSuccess : cudaErrorInvalidValue;
}
const char *cudaGetErrorString(cudaError_t e) {
    switch (e) {
#define X(name, code, text)                                                                                            \
    case name:                                                                                                         \
        return text;
        EMULATED_ERRORS(X)
#undef X
    }
    return "unknown error";
}

/* --- products of cuBLASLt, see blaslt_host.cpp */
void emulated_memory_open(bool open) {
    memory_open(open);
}
