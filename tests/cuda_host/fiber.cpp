/* A switch saves the registers that a call must keep, on x86-64 by hand: swapcontext makes a system call each time,
 * which is a hundred times slower. The address sanitizer is told of every switch, since it watches one stack at a time.
 */
#include "fiber.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
constexpr int STACK_BYTES = 256 << 10;
#else
constexpr int STACK_BYTES = 64 << 10;
#endif
constexpr int GUARD_BYTES = 4096;

#ifndef __x86_64__
#include <ucontext.h>
#endif

struct fiber {
    char *stack; /* NULL = the thread's own */
    void (*body)(void);
#ifdef __x86_64__
    void *sp;
#else
    ucontext_t context;
#endif
#ifdef __SANITIZE_ADDRESS__
    void *shadow;
    const void *bottom;
    size_t size;
#endif
};

/* Who was left last: the one arriving tells the sanitizer. */
static fiber *leaving;

static void arrived(fiber *me) {
#ifdef __SANITIZE_ADDRESS__
    const void *bottom;
    size_t size;
    __sanitizer_finish_switch_fiber(me->shadow, &bottom, &size);
    if (!leaving->stack) { /* the thread's stack becomes known here */
        leaving->bottom = bottom;
        leaving->size = size;
    }
#else
    (void)me;
#endif
}

static fiber *arriving;

__attribute__((noinline, no_sanitize("address"))) static void run_body(void) {
    fiber *me = arriving;
    arrived(me);
    me->body();
    abort();
}

fiber *fiber_of_thread(void) {
    static fiber thread;
    return &thread;
}

fiber *fiber_new(void) {
    fiber *f = (fiber *)calloc(1, sizeof *f);
    char *room = (char *)mmap(NULL, STACK_BYTES + GUARD_BYTES, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (!f || room == MAP_FAILED || mprotect(room, GUARD_BYTES, PROT_NONE) != 0) {
        fprintf(stderr, "emulator: no memory for a fiber\n");
        abort();
    }
    f->stack = room + GUARD_BYTES;
#ifdef __SANITIZE_ADDRESS__
    f->bottom = f->stack;
    f->size = STACK_BYTES;
#endif
    return f;
}

#ifdef __x86_64__
/* Push what a function must keep, leave the stack in *save, take the other and pop. */
__attribute__((naked, noinline)) static void swap(void **, void *) { /* save, load */
    __asm__ volatile("pushq %rbp\n pushq %rbx\n pushq %r12\n pushq %r13\n pushq %r14\n pushq %r15\n"
                     "movq %rsp, (%rdi)\n movq %rsi, %rsp\n"
                     "popq %r15\n popq %r14\n popq %r13\n popq %r12\n popq %rbx\n popq %rbp\n ret\n");
}

void fiber_begin(fiber *f, void (*body)(void)) {
    void **top = (void **)(f->stack + STACK_BYTES);
    f->body = body;
    *--top = NULL; /* keeps the stack aligned as a call would, and ends a walk along it */
    *--top = (void *)run_body;
    for (int i = 0; i < 6; ++i) *--top = NULL;
    f->sp = top;
}

static void swap_to(fiber *from, fiber *to) {
    swap(&from->sp, to->sp);
}
#else
void fiber_begin(fiber *f, void (*body)(void)) {
    f->body = body;
    getcontext(&f->context);
    f->context.uc_stack.ss_sp = f->stack;
    f->context.uc_stack.ss_size = STACK_BYTES;
    f->context.uc_link = NULL;
    makecontext(&f->context, run_body, 0);
}

static void swap_to(fiber *from, fiber *to) {
    swapcontext(&from->context, &to->context);
}
#endif

void fiber_switch(fiber *from, fiber *to, bool ends) {
    leaving = from;
    arriving = to;
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_start_switch_fiber(ends ? NULL : &from->shadow, to->bottom, to->size);
#else
    (void)ends;
#endif
    swap_to(from, to);
    arrived(from);
}
