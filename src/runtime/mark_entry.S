/*
 * pm__mark() and similar functions (base/marks.h), as compiled code calls them: by clang's calling
 * convention preserve_most, so that every general register but r11 keeps its value. The call stands in a
 * cold branch beside a store. If the call lost registers, every function that stores would have to save
 * its own on entry, on the hot path.
 *
 * The work itself is in marks.c.
 */
.macro entry name, target, result=0
    .globl \name
    .type \name, @function
    .p2align 4
\name:
    .cfi_startproc
    .irp register, rax, rcx, rdx, rsi, rdi, r8, r9, r10 /* rax is saved in any case, for the alignment */
    push %\register
    .cfi_adjust_cfa_offset 8
    .endr
    sub $8, %rsp /* the stack is aligned to 16 at a call */
    .cfi_adjust_cfa_offset 8
    call \target
    add $8, %rsp
    .cfi_adjust_cfa_offset -8
    .irp register, r10, r9, r8, rdi, rsi, rdx, rcx
    pop %\register
    .cfi_adjust_cfa_offset -8
    .endr
    .if \result
    add $8, %rsp
    .else
    pop %rax
    .endif
    .cfi_adjust_cfa_offset -8
    ret
    .cfi_endproc
    .size \name, . - \name
.endm

    .text
    .hidden runtime_mark
    .hidden runtime_mark_range
    .hidden runtime_mark_data
    .hidden runtime_mark_pieces
    .hidden runtime_mark_copy
    .hidden runtime_kinds
    entry pm__mark, runtime_mark
    entry pm__mark_range, runtime_mark_range
    entry pm__mark_data, runtime_mark_data
    entry pm__mark_pieces, runtime_mark_pieces
    entry pm__mark_copy, runtime_mark_copy
    entry pm__kinds, runtime_kinds, result=1

    .section .note.GNU-stack, "", @progbits
