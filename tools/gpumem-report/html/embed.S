/* SPDX-License-Identifier: Apache-2.0 */
/* The page of `gpumem-report html` before and after the data, as assembled by html/rules.mk. */
	.section .rodata
	.global gpc_html_head, gpc_html_head_end, gpc_html_tail, gpc_html_tail_end
gpc_html_head:
	.incbin HEAD
gpc_html_head_end:
	.byte 0
gpc_html_tail:
	.incbin TAIL
gpc_html_tail_end:
	.byte 0

	.section .note.GNU-stack, "", %progbits
