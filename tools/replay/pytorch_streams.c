/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks that streams besides their own use (record_stream).  When such a block is freed, an event is recorded on each
 * of these streams and appended to the stream's queue.  The block becomes free when all its events have passed.
 */
#include <stdlib.h>

#include "format/memory.h"
#include "tools/replay/pytorch_model.h"

/* Returns a queue element with an event; NULL if the driver creates no event. */
static struct awaited *new_awaited(struct pytorch *self)
{
	struct awaited *awaited = self->spare;

	if (awaited) {
		self->spare = awaited->next;
		return awaited;
	}
	awaited = gpc_new(1, sizeof *awaited);
	if (self->driver->ops->event_create(self->driver, &awaited->event)) {
		free(awaited);
		return NULL;
	}
	return awaited;
}

enum gpc_status gpc_pytorch_await_users(struct pytorch *self, struct gpc_block *block)
{
	enum gpc_status st = GPC_OK;

	block->state = GPC_BLOCK_PENDING;
	for (uint32_t stream = 0; stream < MAX_USERS && !st; stream++) {
		struct stream_pools *pools = &self->streams[stream];
		struct awaited *awaited;

		if (!(block->requested >> stream & 1))
			continue;
		awaited = new_awaited(self);
		if (!awaited)
			return GPC_NO_METADATA;
		awaited->block = block;
		awaited->next = NULL;
		*pools->end = awaited;
		pools->end = &awaited->next;
		block->fence++;
		st = gpc_machine_record(self->machine, stream, awaited->event);
	}
	self->pending_bytes += block->size;
	if (self->pending_bytes > self->peak_pending_bytes)
		self->peak_pending_bytes = self->pending_bytes;
	return st;
}

static void take_first(struct pytorch *self, struct stream_pools *pools)
{
	struct awaited *awaited = pools->first;
	struct gpc_block *block = awaited->block;

	pools->first = awaited->next;
	if (!pools->first)
		pools->end = &pools->first;
	awaited->next = self->spare;
	self->spare = awaited;
	if (--block->fence > 0)
		return;
	self->pending_bytes -= block->size;
	(void)gpc_pytorch_make_free(self, block);
}

void gpc_pytorch_process_events(struct pytorch *self, bool waits)
{
	const struct gpc_driver_ops *ops = self->driver->ops;

	for (uint32_t i = 0; i < self->n_streams && self->pending_bytes; i++) {
		while (self->streams[i].first) {
			gpc_event event = self->streams[i].first->event;

			if (waits)
				(void)!ops->event_wait(self->driver, event);
			else if (ops->event_query(self->driver, event))
				break;
			take_first(self, &self->streams[i]);
		}
	}
}

void gpc_pytorch_end_streams(struct pytorch *self)
{
	while (self->spare) {
		struct awaited *awaited = self->spare;

		self->spare = awaited->next;
		self->driver->ops->event_destroy(self->driver, awaited->event);
		free(awaited);
	}
}
