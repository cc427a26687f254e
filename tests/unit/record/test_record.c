/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/metamem.h"
#include "block.h"
#include "record/store.h"
#include "verify.h"

static char directory[] = "/tmp/gpc-record-XXXXXX";

static char *path_in(const char *name)
{
	static char path[256];

	snprintf(path, sizeof path, "%s/%s", directory, name);
	return path;
}

static int set_up(void **state)
{
	return mkdtemp(directory) ? 0 : -1;
}

static int tear_down(void **state)
{
	char command[256];

	snprintf(command, sizeof command, "rm -rf %s", directory);
	return system(command);
}

GROUP(set_up, tear_down);

TEST(a_new_recording_is_laid_out_as_the_format_says)
{
	struct gpc_record rec;
	struct gpc_record_params params = { .pattern = path_in("new"),
		.version = "0.1",
		.n_devices = 2,
		.rank = 5,
		.driver_version = 12080 };
	struct image image;
	struct stat st;

	assert_int_equal(gpc_record_open(&rec, &params), GPC_OK);
	assert_string_equal(rec.path, path_in("new"));
	assert_true(load_image(&image, rec.path));
	assert_true(verify_image(&image));
	assert_int_equal(image.size, GPC_RECORD_DEFAULT_SIZE);
	assert_int_equal(image.header->state, GPUCACHE_STATE_OPENED);
	assert_int_equal(image.header->pid, getpid());
	assert_int_equal(image.header->rank, 5);
	assert_int_equal(image.header->driver_version, 12080);
	assert_string_equal(image.header->version, "0.1");
	assert_int_equal(image.regions[GPUCACHE_REGION_DEVICES]->count, 2);
	assert_true(image.regions[GPUCACHE_REGION_BLOCKS]->count >= 30000);
	assert_int_equal(image.regions[GPUCACHE_REGION_EVENTS]->count, 32768);
	/* Every page is there: as many blocks as the size needs. */
	assert_int_equal(stat(rec.path, &st), 0);
	assert_true((uint64_t)st.st_blocks * 512 >= image.size);
	assert_int_equal(st.st_mode & 07777, 0600);
	drop_image(&image);
	gpc_record_close(&rec);
}

TEST(a_clean_end_is_marked_and_later_calls_still_record)
{
	struct gpc_record rec;
	struct gpc_record_params params = { .pattern = path_in("end"), .rank = -1 };
	struct gpucache_event event = fill_event(7);
	struct image image;

	assert_int_equal(gpc_record_open(&rec, &params), GPC_OK);
	gpc_record_end(&rec, 99);
	gpc_record_event(&rec, &event);
	gpc_record_close(&rec);
	assert_true(load_image(&image, path_in("end")));
	assert_true(verify_image(&image));
	assert_int_equal(image.header->state, GPUCACHE_STATE_OPENED | GPUCACHE_STATE_CLEAN_EXIT);
	assert_int_equal(image.header->end_ns, 99);
	assert_int_equal(image.n_events, 1);
	drop_image(&image);
}

TEST(an_end_without_handlers_is_marked_where_there_was_no_other)
{
	const uint32_t exited = GPUCACHE_STATE_OPENED | GPUCACHE_STATE_EXITED;
	const uint32_t ended = GPUCACHE_STATE_OPENED | GPUCACHE_STATE_CLEAN_EXIT;
	struct gpc_record rec;
	struct gpc_record_params params = { .pattern = path_in("exited"), .rank = -1 };

	assert_int_equal(gpc_record_open(&rec, &params), GPC_OK);
	gpc_record_end_without_handlers(&rec, 98);
	assert_int_equal(rec.header->state, exited);
	assert_int_equal(rec.header->end_ns, 98);
	gpc_record_close(&rec);
	gpc_record_end_without_handlers(&rec, 98);
	params.pattern = path_in("exited-later");
	assert_int_equal(gpc_record_open(&rec, &params), GPC_OK);
	gpc_record_end(&rec, 99);
	gpc_record_end_without_handlers(&rec, 100);
	assert_int_equal(rec.header->state, ended);
	assert_int_equal(rec.header->end_ns, 99);
	gpc_record_close(&rec);
}

TEST(a_live_recording_holds_its_lock_and_a_closed_one_does_not)
{
	struct gpc_record rec;
	struct gpc_record_params params = { .pattern = path_in("lock"), .rank = -1 };
	int fd;

	assert_int_equal(gpc_record_open(&rec, &params), GPC_OK);
	fd = open(rec.path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(flock(fd, LOCK_SH | LOCK_NB), -1);
	assert_int_equal(errno, EWOULDBLOCK);
	gpc_record_close(&rec);
	assert_int_equal(flock(fd, LOCK_SH | LOCK_NB), 0);
	close(fd);
}

static void use_everything(struct gpc_record *rec)
{
	struct gpucache_block block = fill_block(3);
	struct gpucache_event event = fill_event(4);
	struct gpucache_segment segment = { .state = 1 };
	struct gpucache_device device = { .total_bytes = 1 };
	struct gpucache_holder holders[4];
	struct gpucache_oom *oom;
	uint32_t n_sites;
	uint64_t rest;
	uint32_t index;
	volatile uint32_t beyond = 99; /* the compiler need not know that it is too much */

	record_block(rec, 1, &block);
	record_block(rec, UINT32_MAX, &block);
	gpc_record_event(rec, &event);
	gpc_record_site_add(rec, 0, 1, (struct gpc_share){ 100, 1 }, 1);
	gpc_record_site_add(rec, 0, 0, (struct gpc_share){ 100, 1 }, 1);
	gpc_record_site_add(rec, 0, UINT32_MAX, (struct gpc_share){ 100, 1 }, 1);
	gpc_record_site_add(rec, beyond, 1, (struct gpc_share){ 100, 1 }, 1);
	gpc_record_site_remove(rec, 0, 1, (struct gpc_share){ 100, 1 });
	gpc_record_stacks_dropped(rec, 1, 1);
	gpc_record_state_add(rec, GPUCACHE_STATE_PASS);
	gpc_record_append(rec, GPUCACHE_REGION_STACKS, &event, 24);
	gpc_record_append(rec, GPUCACHE_REGION_EVENTS, &event, 24);
	gpc_record_append_line(rec, "line");
	gpc_record_segment(rec, 0, &segment);
	gpc_record_segment(rec, UINT32_MAX, &segment);
	gpc_record_counters_take(rec, 1, 1, 0, &index);
	gpc_record_counters_retire(rec, index);
	gpc_record_device(rec, 0, &device);
	gpc_record_device(rec, beyond, &device);
	gpc_record_history(rec, 0, 1, 1, 1, 0, 1);
	gpc_record_history(rec, beyond, 1, 1, 1, 0, 1);
	gpc_record_peak(rec, 0, 1, 1, 1, 1);
	gpc_record_peak(rec, beyond, 1, 1, 1, 1);
	gpc_record_peak_take(rec, 0, 1, 1, 1, 1);
	gpc_record_top_holders(rec, 0, holders, 4, &n_sites, &rest);
	oom = gpc_record_oom_begin(rec);
	gpc_record_oom_commit(rec, oom);
	gpc_record_oom_recover(rec, 1, 0);
	gpc_record_oom_say(rec, 1);
	gpc_record_end(rec, 1);
}

TEST(a_closed_recording_takes_every_call_and_does_nothing)
{
	struct gpc_record rec;
	struct gpc_record_params params = { .is_private = true, .rank = -1 };

	memset(&rec, 0, sizeof rec);
	use_everything(&rec);
	gpc_record_detach(&rec);
	gpc_record_close(&rec);
	gpc_metamem_fail_at(1);
	assert_int_equal(gpc_record_open(&rec, &params), GPC_NO_METADATA);
	gpc_metamem_fail_at(0);
	use_everything(&rec);
	gpc_record_close(&rec);
}

TEST(a_private_recording_works_without_a_file)
{
	struct gpc_record rec;
	struct gpc_record_params params = { .is_private = true, .rank = -1 };
	size_t before = gpc_metamem_total();

	assert_int_equal(gpc_record_open(&rec, &params), GPC_OK);
	assert_int_equal(rec.fd, -1);
	assert_string_equal(rec.path, "");
	use_everything(&rec);
	assert_int_equal(rec.header->dropped_blocks, 1);
	assert_int_equal(rec.header->dropped_segments, 1);
	assert_int_equal(rec.header->dropped_stacks, 1);
	assert_int_equal(rec.blocks[1].state, GPUCACHE_BLOCK_LIVE);
	assert_int_equal(rec.blocks[1].address, 3 * 512);
	gpc_record_close(&rec);
	assert_int_equal(gpc_metamem_total(), before);
}

TEST(a_muted_recording_keeps_counters_and_sites_and_nothing_else)
{
	struct gpc_record rec;
	struct gpc_record_params params = { .is_private = true, .rank = -1 };
	struct gpucache_block block = fill_block(3);
	struct gpucache_event event = fill_event(4);

	assert_int_equal(gpc_record_open(&rec, &params), GPC_OK);
	gpc_record_mute(&rec);
	record_block(&rec, 1, &block);
	gpc_record_event(&rec, &event);
	gpc_record_site_add(&rec, 0, 1, (struct gpc_share){ 100, 1 }, 1);
	assert_int_equal(rec.header->dropped_blocks, 0);
	assert_int_equal(rec.blocks[1].state, GPUCACHE_BLOCK_UNUSED);
	assert_int_equal(rec.sites[1].live_bytes, 100);
	gpc_record_close(&rec);
}

TEST(a_size_out_of_range_is_brought_into_it)
{
	struct gpc_record rec;
	struct gpc_record_params params = { .is_private = true, .rank = -1, .size = 1 };

	assert_int_equal(gpc_record_open(&rec, &params), GPC_OK);
	assert_int_equal(rec.size, GPC_RECORD_MIN_SIZE);
	gpc_record_close(&rec);
	params.size = SIZE_MAX;
	assert_int_equal(gpc_record_open(&rec, &params), GPC_OK);
	assert_int_equal(rec.size, GPC_RECORD_MAX_SIZE);
	gpc_record_close(&rec);
}

/* --- fork ------------------------------------------------------------------------------------- */

static bool run_child_of_fork(struct gpc_record *rec, char *child_path)
{
	struct gpc_record_params params = { .pattern = child_path, .rank = -1 };
	struct gpucache_block *old_blocks = rec->blocks;
	int fd = rec->fd;

	gpc_record_detach(rec);
	EXPECT(fcntl(fd, F_GETFD) == -1);
	/* A pointer of the parent's life hits zeroes of our own. */
	EXPECT(old_blocks[5].address == 0);
	memset(old_blocks, 0xff, 4096);
	use_everything(rec);
	EXPECT(gpc_record_open(rec, &params) == GPC_OK);
	EXPECT(strcmp(rec->path, child_path) == 0);
	EXPECT(rec->header->pid == (uint32_t)getpid());
	gpc_record_close(rec);
	return true;
}

TEST(a_fork_child_that_detaches_leaves_the_parents_file_alone)
{
	struct gpc_record rec;
	struct gpc_record_params params = { .pattern = path_in("parent"), .rank = -1 };
	struct gpucache_block block = fill_block(9);
	struct image image;
	char child_path[256];
	int status;
	pid_t pid;
	int fd;

	assert_int_equal(gpc_record_open(&rec, &params), GPC_OK);
	record_block(&rec, 5, &block);
	snprintf(child_path, sizeof child_path, "%s", path_in("child"));
	pid = fork();
	if (pid == 0)
		_exit(run_child_of_fork(&rec, child_path) ? 0 : 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	/* The parent's lock outlives the child that had a share in it. */
	fd = open(rec.path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(flock(fd, LOCK_SH | LOCK_NB), -1);
	close(fd);
	gpc_record_close(&rec);
	assert_true(load_image(&image, path_in("parent")));
	assert_true(verify_image(&image));
	assert_int_equal(image.n_blocks, 1);
	assert_int_equal(image.n_events, 0);
	drop_image(&image);
}

TEST(a_descriptor_that_the_program_closed_and_reused_is_not_closed)
{
	struct gpc_record rec;
	struct gpc_record_params params = { .pattern = path_in("reused"), .rank = -1 };
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	int reused;

	assert_int_equal(gpc_record_open(&rec, &params), GPC_OK);
	reused = rec.fd;
	assert_int_equal(dup2(fd, reused), reused);
	gpc_record_close(&rec);
	assert_true(fcntl(reused, F_GETFD) >= 0);
	close(reused);
	close(fd);
}

/* --- SIGKILL ---------------------------------------------------------------------------------- */

struct stack_record {
	struct gpucache_stack head;
	uint64_t frames[6];
};

static void write_for_ever(struct gpc_record *rec)
{
	uint32_t n_stacks = 0;

	for (uint64_t n = 1;; n++) {
		struct gpucache_block block = fill_block(n);
		struct gpucache_event event = fill_event(n);
		struct stack_record stack = { .head = { .n_native = (uint16_t)(n % 7) } };
		struct gpucache_oom *oom;

		record_block(rec, (uint32_t)(n * 2654435761u) % rec->n_blocks, &block);
		gpc_record_event(rec, &event);
		gpc_record_site_add(rec, 0, 1 + (uint32_t)n % 100, (struct gpc_share){ n, 1 }, n);
		stack.head.size = (uint32_t)sizeof stack.head + 8u * stack.head.n_native;
		stack.head.id = n_stacks + 1;
		n_stacks += gpc_record_append(rec, GPUCACHE_REGION_STACKS, &stack, stack.head.size);
		gpc_record_history(
			rec, 0, rec->header->start_monotonic_ns + n * 300000, n, n, 0, n);
		gpc_record_peak(rec, 0, n, n * 100, n * 100, n * 100);
		oom = gpc_record_oom_begin(rec);
		oom->requested = n;
		oom->rounded = n * 2;
		gpc_record_oom_commit(rec, oom);
	}
}

static void write_until_killed(const char *path, unsigned microseconds)
{
	struct gpc_record_params params = { .pattern = path, .rank = -1, .size = GPC_MIB };
	struct gpc_record rec;
	int ready[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		if (gpc_record_open(&rec, &params))
			_exit(1);
		if (write(ready[1], "x", 1) != 1)
			_exit(1);
		write_for_ever(&rec);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	usleep(microseconds);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	close(ready[0]);
	close(ready[1]);
}

TEST(a_recording_of_a_killed_process_reads_as_the_format_says)
{
	unsigned seed = (unsigned)time(NULL);
	unsigned n_torn = 0;
	unsigned n_holes = 0;

	print_message("seed %u\n", seed);
	srand(seed);
	for (int i = 0; i < 50; i++) {
		struct image image;
		char path[256];

		snprintf(path, sizeof path, "%s/kill-%d", directory, i);
		write_until_killed(path, 1 + (unsigned)rand() % 3000);
		assert_true(load_image(&image, path));
		assert_true(verify_image(&image));
		/* One thread can leave at most one thing half done. */
		assert_true(image.n_torn + image.n_holes <= 1);
		assert_int_equal(image.header->state & GPUCACHE_STATE_CLEAN_EXIT, 0);
		n_torn += image.n_torn;
		n_holes += image.n_holes;
		drop_image(&image);
		unlink(path);
	}
	print_message("50 kills: %u torn slots, %u holes\n", n_torn, n_holes);
}

/* --- Threads ---------------------------------------------------------------------------------- */

#define N_THREADS 4
#define N_ROUNDS  20000

struct worker {
	struct gpc_record *rec;
	unsigned number;
};

static void *work(void *arg)
{
	const struct worker *worker = arg;
	struct gpc_record *rec = worker->rec;

	for (unsigned i = 0; i < N_ROUNDS; i++) {
		uint64_t n = (uint64_t)worker->number * N_ROUNDS + i;
		struct gpucache_event event = fill_event(n);

		gpc_record_event(rec, &event);
		gpc_record_site_add(
			rec, worker->number % 2, 1 + i % 3, (struct gpc_share){ 10, 1 }, n);
		if (i % 2)
			gpc_record_site_remove(rec, worker->number % 2, 1 + (i - 1) % 3,
				(struct gpc_share){ 10, 1 });
		if (i % 64 == 0) {
			gpc_record_peak(rec, 0, n, n, n, n);
			gpc_record_history(rec, 0, n * 1000, n, n, 0, n);
			gpc_record_append(rec, GPUCACHE_REGION_CODES, &event, 24);
		}
	}
	return NULL;
}

TEST(threads_lose_no_event_and_no_byte_of_a_site)
{
	struct gpc_record_params params = { .pattern = path_in("threads"), .rank = -1 };
	struct worker workers[N_THREADS];
	pthread_t threads[N_THREADS];
	struct gpc_record rec;
	struct image image;
	uint64_t total = 0;
	uint64_t live = 0;

	assert_int_equal(gpc_record_open(&rec, &params), GPC_OK);
	for (unsigned i = 0; i < N_THREADS; i++) {
		workers[i] = (struct worker){ .rec = &rec, .number = i + 1 };
		assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
	}
	for (unsigned i = 0; i < N_THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(atomic_load(&rec.next_event), N_THREADS * N_ROUNDS);
	assert_int_equal(gpc_record_site_end(&rec), 1 + 2 * 3);
	for (unsigned i = 1; i <= 6; i++) {
		total += rec.sites[i].total_blocks;
		live += rec.sites[i].live_bytes;
		assert_true(rec.sites[i].peak_bytes >= rec.sites[i].live_bytes);
		assert_true(rec.sites[i].first_ns > 0);
	}
	assert_int_equal(total, N_THREADS * N_ROUNDS);
	assert_int_equal(live, N_THREADS * N_ROUNDS / 2 * 10);
	gpc_record_close(&rec);
	assert_true(load_image(&image, path_in("threads")));
	assert_true(verify_image(&image));
	assert_int_equal(image.n_events, image.regions[GPUCACHE_REGION_EVENTS]->count);
	drop_image(&image);
}

/* A live reader in the same process: a slot with an even sequence number must be whole. */
struct live_reader {
	struct gpc_record *rec;
	atomic_bool stop;
	atomic_uint n_whole;
	unsigned n_mixed;
};

static void *read_block(void *arg)
{
	struct live_reader *reader = arg;
	struct gpucache_block *slot = &reader->rec->blocks[0];
	const gpc_word *words = (const void *)slot;

	while (!atomic_load(&reader->stop)) {
		struct gpucache_block copy;
		gpc_word *to = (void *)&copy;
		uint32_t seq = __atomic_load_n(&slot->seq, __ATOMIC_ACQUIRE);

		for (size_t i = 0; i < sizeof copy / 8; i++)
			to[i] = __atomic_load_n(words + i, __ATOMIC_ACQUIRE);
		if (seq & 1 || seq == 0 || __atomic_load_n(&slot->seq, __ATOMIC_RELAXED) != seq)
			continue;
		atomic_fetch_add(&reader->n_whole, 1);
		reader->n_mixed += !is_whole_block(&copy);
	}
	return NULL;
}

TEST(a_live_reader_never_takes_a_mixed_block_for_a_whole_one)
{
	struct gpc_record_params params = { .is_private = true, .rank = -1 };
	struct live_reader reader = { 0 };
	struct gpc_record rec;
	pthread_t thread;

	assert_int_equal(gpc_record_open(&rec, &params), GPC_OK);
	reader.rec = &rec;
	assert_int_equal(pthread_create(&thread, NULL, read_block, &reader), 0);
	for (uint64_t n = 1; n < 200000; n++) {
		struct gpucache_block block = fill_block(n);

		record_block(&rec, 0, &block);
	}
	/* However late it comes to run: what lies there now is whole. */
	while (atomic_load(&reader.n_whole) == 0)
		usleep(100);
	atomic_store(&reader.stop, true);
	pthread_join(thread, NULL);
	assert_int_equal(reader.n_mixed, 0);
	gpc_record_close(&rec);
}
