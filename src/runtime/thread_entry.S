/*
 * Where a thread starts, void *runtime_thread_entry(struct start *): it frees its argument and calls
 * start->function(start->argument). In assembly, so that its ends are known to who walks up the
 * stack: beyond is only libc (heap.h).
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
    xor %r12d, %r12d /* or it would seem to be held all the time that the thread runs */
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
