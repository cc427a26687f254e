/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A daemon without descriptors 0, 1 and 2, which prints to all of them, and has a child read memory by handle.
 *
 *   daemon early     closes them before the first CUDA call
 *   daemon late      closes them after it
 *
 * Its answers, a line each, are in the file "said" of the current directory.
 */
#include <fcntl.h>
#include <spawn.h>
#include <stdarg.h>
#include <sys/wait.h>
#include <unistd.h>

#include "simulated.h"

#define BYTE   77
#define PIECES 1000

static __attribute__((format(printf, 1, 2))) void say(const char *format, ...)
{
	FILE *said = fopen("said", "ae");
	va_list args;

	va_start(args, format);
	vfprintf(said, format, args);
	va_end(args);
	fclose(said);
}

static void close_standard(void)
{
	for (int fd = 0; fd < 3; fd++)
		(void)close(fd);
}

static void print(void)
{
	static const char text[100] = "what a daemon prints";

	for (int i = 0; i < PIECES; i++)
		for (int fd = 0; fd < 3; fd++)
			(void)!write(fd, text, sizeof text);
}

static int is_closed(int fd)
{
	return fcntl(fd, F_GETFD) < 0;
}

/* What the child finds in the parent's memory. */
static int import(const char *hex)
{
	cudaIpcMemHandle_t handle;
	char bytes[100] = "";
	void *ptr = NULL;

	for (size_t i = 0; i < sizeof handle; i++)
		sscanf(hex + 2 * i, "%2hhx", (unsigned char *)&handle + i);
	say("open: %d\n", (int)cudaIpcOpenMemHandle(&ptr, handle, cudaIpcMemLazyEnablePeerAccess));
	say("copy: %d\n", (int)cudaMemcpy(bytes, ptr, sizeof bytes, cudaMemcpyDeviceToHost));
	say("data: %s\n", is_all(bytes, sizeof bytes, BYTE) ? "right" : "wrong");
	return 0;
}

static void export_to_child(char *program, void *ptr)
{
	char hex[2 * sizeof(cudaIpcMemHandle_t) + 1];
	char *words[] = { program, (char[]){ "import" }, hex, NULL };
	cudaIpcMemHandle_t handle;
	pid_t child;

	say("export: %d\n", (int)cudaIpcGetMemHandle(&handle, ptr));
	for (size_t i = 0; i < sizeof handle; i++)
		snprintf(hex + 2 * i, 3, "%02x", ((unsigned char *)&handle)[i]);
	print();
	if (posix_spawn(&child, program, NULL, NULL, words, environ) == 0)
		waitpid(child, NULL, 0);
}

int main(int argc, char **argv)
{
	void *first = NULL, *ptr = NULL, *large = NULL;

	if (argc < 2)
		return 2;
	if (!strcmp(argv[1], "import"))
		return import(argv[2]);
	if (!strcmp(argv[1], "early"))
		close_standard();
	/* The handle of a block that begins its segment would be the driver's own. */
	say("malloc: %d\n", (int)cudaMalloc(&first, 100000));
	say("malloc: %d\n", (int)cudaMalloc(&ptr, 100000));
	if (!strcmp(argv[1], "late"))
		close_standard();
	print();
	say("set: %d\n", (int)cudaMemset(ptr, BYTE, 100000));
	export_to_child(argv[0], ptr);
	say("too much: %d\n", (int)cudaMalloc(&large, (size_t)1 << 46));
	print();
	say("closed: %d %d %d\n", is_closed(0), is_closed(1), is_closed(2));
	say("free: %d\n", (int)cudaFree(ptr));
	return 0;
}
