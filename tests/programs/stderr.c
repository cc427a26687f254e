/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program with an unusual standard error that requests more memory than the GPU has, and continues.  Prints the
 * result of the request, and its end, on standard output.
 *
 *   stderr asis      as it was started
 *   stderr data      closes descriptor 2 and opens a data file, which gets the number
 *   stderr output    the same, with a file that is only written
 *   stderr append    the same, with a log that is appended to
 *   stderr dup2      puts a new log over descriptor 2, as a daemon does
 *   stderr freopen   the same, by freopen
 *
 * The file is "file", in the current directory.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cuda_runtime.h>

/* Sets up descriptor 2 as the mode says; returns 0 on failure. */
static int set_up(const char *mode)
{
	const char *file = "file";
	int fd;

	if (strcmp(mode, "asis") == 0)
		return 1;
	if (strcmp(mode, "freopen") == 0)
		return freopen(file, "a", stderr) != NULL;
	if (strcmp(mode, "dup2") == 0) {
		fd = open(file, O_WRONLY | O_CREAT | O_TRUNC, 0600);
		return dup2(fd, 2) == 2;
	}
	(void)close(2);
	if (strcmp(mode, "append") == 0)
		return open(file, O_WRONLY | O_CREAT | O_APPEND, 0600) == 2;
	if (strcmp(mode, "output") == 0)
		return open(file, O_WRONLY | O_CREAT | O_TRUNC, 0600) == 2;
	return open(file, O_RDWR | O_CREAT | O_TRUNC, 0600) == 2 &&
	       pwrite(2, "0123456789", 10, 0) == 10;
}

int main(int argc, char **argv)
{
	void *ptr = NULL;

	if (argc < 2 || !set_up(argv[1])) {
		puts("not set up");
		return 2;
	}
	printf("malloc: %d\n", (int)cudaMalloc(&ptr, (size_t)1 << 46));
	printf("malloc: %d\n", (int)cudaMalloc(&ptr, 1000));
	puts("end");
	return 0;
}
