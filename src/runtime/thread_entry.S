/*
 * Where a thread starts, void *runtime_thread_entry(struct start *). It frees its argument and calls
 * start->function(start->argument). It is in assembly, so that a walk up the stack knows where this
 * function begins and ends. Only libc's frames are above it (heap.h).
 */
    .text
    .globl pm__thread_begin, pm__thread_end, runtime_thread_entry
    .hidden pm__thread_begin, pm__thread_end, runtime_thread_entry
    .type runtime_thread_entry, @function
    .p2align 4
pm__thread_begin:
runtime_thread_entry:
    .cfi_startproc
    push %rbp
    .cfi_def_cfa_offset 16
    .cfi_offset %rbp, -16
    mov %rsp, %rbp
    .cfi_def_cfa_register %rbp
    push %rbx
    push %r12
    .cfi_offset %rbx, -24
    .cfi_offset %r12, -32
    mov (%rdi), %rbx /* function */
    mov 8(%rdi), %r12 /* argument */
    call free@PLT
    mov %r12, %rdi
    xor %r12d, %r12d /* otherwise the thread would seem to hold it for its whole life */
    call *%rbx
    pop %r12
    pop %rbx
    pop %rbp
    .cfi_def_cfa %rsp, 8
    ret
    .cfi_endproc
pm__thread_end:
    .size runtime_thread_entry, . - runtime_thread_entry

    .section .note.GNU-stack, "", @progbits
