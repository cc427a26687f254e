/* SPDX-License-Identifier: Apache-2.0 */
/* write(2) copies the bytes into a pipe or fails with EFAULT; read(2) takes them out again. */
#include "stack/probe.h"

#include <errno.h>
#include <unistd.h>

#include "base/io.h"

bool gpc_probe_init(struct gpc_probe *probe)
{
	return gpc_io_pipe(probe->ends);
}

void gpc_probe_fini(struct gpc_probe *probe)
{
	gpc_io_drop(probe->ends[0]);
	gpc_io_drop(probe->ends[1]);
}

/* Empties the pipe after a failure: the next read would begin with the bytes of a partial write. */
static void drain(const struct gpc_probe *probe)
{
	char rest[256];

	while (read(probe->ends[0], rest, sizeof(rest)) > 0)
		;
}

bool gpc_probe_read(const struct gpc_probe *probe, uintptr_t address, void *ret_data, size_t size)
{
	int saved = errno;
	ssize_t n;
	bool ok;

	if (!size || size > GPC_PROBE_MAX)
		return size == 0;
	n = write(probe->ends[1], (const void *)address, size);
	ok = n == (ssize_t)size && read(probe->ends[0], ret_data, size) == n;
	if (!ok)
		drain(probe);
	errno = saved;
	return ok;
}
