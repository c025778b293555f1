/*
 * pm__mark(address) and pm__mark_range(address, size), as compiled code calls them: by the convention
 * that clang calls preserve_most, so that every general register but r11 comes back as it was. The
 * call stands in a cold branch beside a store; were registers lost there, every function that stores
 * would have to save its own on the hot path, on entry.
 *
 * What they do is in marks.c.
 */
.macro entry name, target
    .globl \name
    .type \name, @function
    .p2align 4
\name:
    .cfi_startproc
    .irp register, rax, rcx, rdx, rsi, rdi, r8, r9, r10
    push %\register
    .cfi_adjust_cfa_offset 8
    .endr
    sub $8, %rsp /* the stack is aligned to 16 at a call */
    .cfi_adjust_cfa_offset 8
    call \target
    add $8, %rsp
    .cfi_adjust_cfa_offset -8
    .irp register, r10, r9, r8, rdi, rsi, rdx, rcx, rax
    pop %\register
    .cfi_adjust_cfa_offset -8
    .endr
    ret
    .cfi_endproc
    .size \name, . - \name
.endm

    .text
    .hidden runtime_mark
    .hidden runtime_mark_range
    entry pm__mark, runtime_mark
    entry pm__mark_range, runtime_mark_range

    .section .note.GNU-stack, "", @progbits
