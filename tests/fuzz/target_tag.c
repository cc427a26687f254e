/* SPDX-License-Identifier: Apache-2.0 */
/* Handles of CUDA IPC, which another process may fill with any bytes, and the registry's file that a handle names. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "runtime/export/ipc_registry.h"
#include "tests/fuzz/fuzz.h"

static struct gpc_ipc_registry registry;
static CUipcMemHandle true_tag;
static char places[GPC_IPC_N_PLACES][160];
static const char *const place_names[GPC_IPC_N_PLACES] = { places[0], places[1] };

static const struct gpc_ipc_target target = { .offset = 512, .size = 1024 };

static void open_registry(void)
{
	for (unsigned i = 0; i < GPC_IPC_N_PLACES; i++)
		snprintf(places[i], sizeof places[i], "%s-ipc%u-%d", fuzz_folder(), i,
			(int)getpid());
	gpc_ipc_registry_places = place_names;
	FUZZ_EXPECT(gpc_ipc_registry_add(&registry, 3, &target, &true_tag) == GPC_OK);
}

static void close_registry(void)
{
	gpc_ipc_registry_fini(&registry, false);
	for (unsigned i = 0; i < GPC_IPC_N_PLACES; i++)
		rmdir(places[i]);
}

/*
 * The first 64 bytes of the input are combined with a valid tag by exclusive or.  Then each three bytes change the file
 * that the tag names: the new byte, and its offset in two bytes.
 */
static void run_tag(const unsigned char *data, size_t size)
{
	struct gpc_ipc_target found = { 0 };
	CUipcMemHandle tag;
	bool is_true = true;

	open_registry();
	tag = true_tag;
	for (size_t i = 0; i < size && i < sizeof tag; i++) {
		((unsigned char *)&tag)[i] ^= data[i];
		is_true &= data[i] == 0;
	}
	for (size_t i = sizeof tag; i + 3 <= size; i += 3) {
		(void)!pwrite(registry.fd, data + i, 1, data[i + 1] | data[i + 2] << 8);
		is_true = false;
	}
	if (gpc_ipc_registry_find(&tag, &found) == GPC_OK && size <= sizeof tag)
		FUZZ_EXPECT(memcmp(&found, &target, sizeof found) == 0);
	else
		FUZZ_EXPECT(!is_true);
	close_registry();
}

static void mutate_tag(
	struct fuzz_random *random, struct fuzz_input *input, const struct fuzz_input *other)
{
	unsigned width = 1u << fuzz_draw(random, 4);
	unsigned char bytes[8] = { 0 };

	(void)other;
	if (fuzz_draw(random, 3) == 0) {
		for (unsigned i = 0; i < 3; i++)
			bytes[i] = (unsigned char)fuzz_draw(random, 256);
		fuzz_replace(input, input->size, 0, bytes, 3);
	} else {
		fuzz_poke(random, input, fuzz_draw(random, sizeof true_tag) / width * width, width);
	}
}

const struct fuzz_target fuzz_tag = {
	.name = "tag", .share = 2, .run = run_tag, .mutate = mutate_tag
};
