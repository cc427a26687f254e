/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One end of an exchange of memory between processes: obeys the commands of standard input, one a
 * line, and answers each in a line, "ok ..." or "error CODE".
 *
 *   alloc NAME SIZE         free NAME               fill NAME BYTE [SIZE]
 *   export NAME [OFFSET]    the handle, in hex      range NAME [OFFSET]   offset of the base, size
 *   open NAME HANDLE        close NAME              look NAME SIZE        the byte that all of it is
 *   kernel NAME MS          runs and writes         wait                  for the device
 *   used                    bytes of the device
 *   child COMMAND           the command in a child made by fork
 *   daemon NUMBER           closes all descriptors and opens files of its own: own-3 is descriptor 3, ...
 */
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "simulated.h"

#define MAX_NAMES 64

static struct {
	char name[32];
	char *ptr;
	size_t size;
} table[MAX_NAMES];

static int find(const char *name)
{
	int i = 0;

	while (i < MAX_NAMES - 1 && table[i].name[0] && strcmp(table[i].name, name) != 0)
		i++;
	snprintf(table[i].name, sizeof table[i].name, "%s", name);
	return i;
}

static void answer(cudaError_t status)
{
	if (status == cudaSuccess)
		printf("ok\n");
	else
		printf("error %d\n", (int)status);
	(void)cudaGetLastError();
}

static void export_it(char *ptr)
{
	cudaIpcMemHandle_t handle;
	unsigned char bytes[sizeof handle];
	cudaError_t status = cudaIpcGetMemHandle(&handle, ptr);

	if (status != cudaSuccess) {
		answer(status);
		return;
	}
	memcpy(bytes, &handle, sizeof bytes);
	printf("ok ");
	for (size_t i = 0; i < sizeof bytes; i++)
		printf("%02x", bytes[i]);
	printf("\n");
}

static void open_it(int i, const char *hex)
{
	cudaIpcMemHandle_t handle;
	unsigned char bytes[sizeof handle] = { 0 };
	void *ptr = NULL;

	for (size_t k = 0; k < sizeof bytes; k++)
		sscanf(hex + 2 * k, "%2hhx", &bytes[k]);
	memcpy(&handle, bytes, sizeof handle);
	cudaError_t status = cudaIpcOpenMemHandle(&ptr, handle, cudaIpcMemLazyEnablePeerAccess);
	if (status == cudaSuccess)
		table[i].ptr = ptr;
	answer(status);
}

static void look(const char *ptr, size_t size)
{
	char *bytes = malloc(size);
	cudaError_t status = cudaMemcpy(bytes, ptr, size, cudaMemcpyDeviceToHost);

	if (status != cudaSuccess)
		answer(status);
	else if (is_all(bytes, size, bytes[0]))
		printf("ok %d\n", (unsigned char)bytes[0]);
	else
		printf("ok mixed\n");
	free(bytes);
}

static void range(const char *ptr)
{
	int (*ask)(unsigned long long *, size_t *, unsigned long long);
	int (*ask_one)(void *, int, unsigned long long);
	int (*ask_all)(unsigned, int *, void **, unsigned long long);
	unsigned long long at = (uintptr_t)ptr, base = 0, start = 0, same = 0;
	size_t size = 0, extent = 0;
	int attributes[] = { 11, 12 }; /* RANGE_START_ADDR, RANGE_SIZE */
	void *data[] = { &same, &extent };

	find_in_driver("cuMemGetAddressRange_v2", &ask);
	find_in_driver("cuPointerGetAttribute", &ask_one);
	find_in_driver("cuPointerGetAttributes", &ask_all);
	int status = ask(&base, &size, at);
	if (status == 0)
		status = ask_one(&start, 11, at);
	if (status == 0)
		status = ask_all(2, attributes, data, at);
	if (status != 0)
		printf("error %d\n", status);
	else if (start != base || same != base || extent != size)
		printf("ok the three do not agree\n");
	else
		printf("ok %llu %zu\n", at - base, size);
}

/* Closes all descriptors and reuses their numbers, as a daemon does. */
static void become_a_daemon(int n_files)
{
	for (int fd = 3; fd < 1024; fd++)
		(void)close(fd);
	for (int fd = 3; fd < 3 + n_files; fd++) {
		char name[32];

		snprintf(name, sizeof name, "own-%d", fd);
		if (open(name, O_RDWR | O_CREAT | O_EXCL, 0600) != fd) {
			printf("error: no descriptor %d\n", fd);
			return;
		}
	}
	printf("ok\n");
}

static void obey(const char *line)
{
	char word[16] = "", name[32] = "", rest[256] = "";
	size_t size = 0;
	int n = sscanf(line, "%15s %31s %255s %zu", word, name, rest, &size);
	int i = n > 1 ? find(name) : 0;
	size_t number = strtoull(rest, NULL, 10);
	char *ptr = table[i].ptr;

	if (!strcmp(word, "alloc")) {
		table[i].size = number;
		answer(cudaMalloc((void **)&table[i].ptr, number));
	} else if (!strcmp(word, "fill")) {
		answer(cudaMemset(ptr, (int)number, size ? size : table[i].size));
	} else if (!strcmp(word, "free")) {
		answer(cudaFree(ptr));
	} else if (!strcmp(word, "export")) {
		export_it(ptr + number);
	} else if (!strcmp(word, "range")) {
		range(ptr + number);
	} else if (!strcmp(word, "open")) {
		open_it(i, rest);
	} else if (!strcmp(word, "close")) {
		answer(cudaIpcCloseMemHandle(ptr));
	} else if (!strcmp(word, "look")) {
		look(ptr, number);
	} else if (!strcmp(word, "kernel")) {
		answer(launch(make_stream(), number * MS, ptr, table[i].size, 99));
	} else if (!strcmp(word, "wait")) {
		answer(cudaDeviceSynchronize());
	} else if (!strcmp(word, "daemon")) {
		become_a_daemon(atoi(name));
	} else if (!strcmp(word, "used")) {
		printf("ok %llu\n", (unsigned long long)used_bytes());
	} else {
		printf("error: what is '%s'?\n", word);
	}
	fflush(stdout);
}

int main(void)
{
	char line[512];

	while (fgets(line, sizeof line, stdin)) {
		pid_t child;

		if (strncmp(line, "child ", 6) != 0) {
			obey(line);
			continue;
		}
		child = fork();
		if (child == 0) {
			obey(line + 6);
			exit(0);
		}
		waitpid(child, NULL, 0);
	}
	return 0;
}
