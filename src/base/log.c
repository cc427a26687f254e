/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include <errno.h>
#include <stdatomic.h>

#include "base/io.h"
#include "base/text.h"

static struct {
	int fd;
	atomic_uint n_lines;
} log_state = { .fd = 2 };

void gpc_log_to(int fd)
{
	log_state.fd = fd;
	atomic_store(&log_state.n_lines, 0);
}

void gpc_log_block(const char *text, size_t len)
{
	int saved_errno = errno;

	if (!gpc_io_write(log_state.fd, text, len))
		errno = 0; /* nobody is left to tell */
	errno = saved_errno;
}

void gpc_log(const char *format, ...)
{
	unsigned n = atomic_fetch_add_explicit(&log_state.n_lines, 1, memory_order_relaxed);
	char buf[1024];
	struct gpc_text text = gpc_text_init(buf, sizeof buf - 1);
	va_list args;

	if (n >= GPC_LOG_MAX_LINES)
		return;
	gpc_text_add(&text, "gpucache: ");
	if (n == GPC_LOG_MAX_LINES - 1) {
		gpc_text_add(&text, "further lines of this process are not shown");
	} else {
		va_start(args, format);
		gpc_text_vadd(&text, format, args);
		va_end(args);
	}
	buf[text.len++] = '\n';
	gpc_log_block(buf, text.len);
}
