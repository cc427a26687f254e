/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the headers of 64-bit ELF files with pread: were they mapped, a load would raise SIGBUS after another process
 * shortens the file.
 *
 * Threads   Any.
 * Failure   False: the file ends before, is no 64-bit ELF, or has more than GPC_ELF_MAX_SECTIONS.
 */
#ifndef GPC_STACK_ELF_FILE_H
#define GPC_STACK_ELF_FILE_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GPC_ELF_MAX_SECTIONS 256

bool gpc_elf_read(int fd, void *buf, size_t size, uint64_t offset);
bool gpc_elf_read_header(int fd, Elf64_Ehdr *ret_header);
bool gpc_elf_read_section(int fd, const Elf64_Ehdr *header, uint32_t i, Elf64_Shdr *ret_section);

#endif
