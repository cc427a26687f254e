/* SPDX-License-Identifier: Apache-2.0 */
#include <unistd.h>

#include "record/identity.h"
#include "unit.h"

/* In the order in which they are believed: rank, local rank, size. */
static const char *const launchers[][3] = {
	{ "RANK", "LOCAL_RANK", "WORLD_SIZE" }, /* torchrun */
	{ "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_SIZE" },
	{ "PMIX_RANK", "PMIX_LOCAL_RANK", "PMIX_SIZE" },
	{ "PMI_RANK", "MPI_LOCALRANKID", "PMI_SIZE" },
	{ "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_SIZE" },
	{ "FLUX_TASK_RANK", "FLUX_TASK_LOCAL_ID", "FLUX_JOB_SIZE" },
	{ "SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS" },
};

static const char *const jobs[] = { "TORCHELASTIC_RUN_ID", "SLURM_JOB_ID", "FLUX_JOB_ID",
	"PBS_JOBID", "LSB_JOBID" };

static int forget_launchers(void **state)
{
	for (size_t i = 0; i < N_OF(launchers); i++)
		for (size_t k = 0; k < 3; k++)
			unsetenv(launchers[i][k]);
	for (size_t i = 0; i < N_OF(jobs); i++)
		unsetenv(jobs[i]);
	unsetenv("TORCHELASTIC_RESTART_COUNT");
	unsetenv("SLURM_RESTART_COUNT");
	return 0;
}

FIXTURE(forget_launchers, NULL);

static struct gpucache_header identify(int64_t rank)
{
	struct gpucache_header identity;

	gpc_identity_read(&identity, rank);
	return identity;
}

TEST(the_kernel_knows_who_we_are)
{
	struct gpucache_header identity = identify(-1);

	assert_int_equal(identity.pid, getpid());
	assert_int_equal(identity.uid, geteuid());
	assert_true(identity.start_ticks > 0);
	assert_true(identity.pid_namespace > 0);
	assert_int_equal(strlen(identity.boot_id), 36);
	assert_true(strlen(identity.host) > 0);
	assert_non_null(strstr(identity.exe, "test_identity"));
	assert_non_null(strstr(identity.command, "test_identity"));
}

TEST(without_a_launcher_there_is_no_rank)
{
	struct gpucache_header identity = identify(-1);

	assert_int_equal(identity.rank, -1);
	assert_int_equal(identity.local_rank, -1);
	assert_int_equal(identity.world_size, 0);
	assert_string_equal(identity.job, "");
}

TEST(rank_alone_is_not_torchrun)
{
	setenv("RANK", "5", 1);
	assert_int_equal(identify(-1).rank, -1);
	setenv("LOCAL_RANK", "1", 1);
	setenv("WORLD_SIZE", "8", 1);
	assert_int_equal(identify(-1).rank, 5);
	assert_int_equal(identify(-1).local_rank, 1);
	assert_int_equal(identify(-1).world_size, 8);
}

TEST(slurm_is_believed_last)
{
	setenv("SLURM_PROCID", "9", 1);
	setenv("SLURM_LOCALID", "2", 1);
	assert_int_equal(identify(-1).rank, 9);
	assert_int_equal(identify(-1).local_rank, 2);
	setenv("OMPI_COMM_WORLD_RANK", "4", 1);
	assert_int_equal(identify(-1).rank, 4);
}

static void set_number(const char *name, size_t number)
{
	char text[16];

	snprintf(text, sizeof text, "%zu", number);
	setenv(name, text, 1);
}

TEST(every_launcher_is_believed_before_those_behind_it)
{
	for (size_t i = N_OF(launchers); i-- > 0;) {
		struct gpucache_header identity;

		for (size_t k = 0; k < 3; k++)
			set_number(launchers[i][k], 100 * k + i);
		identity = identify(-1);
		assert_int_equal(identity.rank, i);
		assert_int_equal(identity.local_rank, 100 + i);
		assert_int_equal(identity.world_size, 200 + i);
	}
}

TEST(a_rank_alone_is_enough_but_for_torchrun)
{
	for (size_t i = 1; i < N_OF(launchers); i++) {
		forget_launchers(NULL);
		set_number(launchers[i][0], i);
		assert_int_equal(identify(-1).rank, i);
		assert_int_equal(identify(-1).local_rank, -1);
		assert_int_equal(identify(-1).world_size, 0);
	}
}

TEST(jobs_have_an_order_too)
{
	for (size_t i = N_OF(jobs); i-- > 0;) {
		set_number(jobs[i], i);
		assert_int_equal(atoi(identify(-1).job), i);
	}
}

TEST(a_restart_is_torchruns_then_slurms)
{
	assert_int_equal(identify(-1).restart_count, 0);
	setenv("SLURM_RESTART_COUNT", "5", 1);
	assert_int_equal(identify(-1).restart_count, 5);
	setenv("TORCHELASTIC_RESTART_COUNT", "3", 1);
	assert_int_equal(identify(-1).restart_count, 3);
}

TEST(the_configured_rank_wins)
{
	setenv("PMI_RANK", "4", 1);
	assert_int_equal(identify(0).rank, 0);
	assert_int_equal(identify(INT64_MAX).rank, 4);
}

TEST(what_is_no_number_is_no_rank)
{
	setenv("PMI_RANK", "4x", 1);
	assert_int_equal(identify(-1).rank, -1);
	setenv("PMI_RANK", "99999999999", 1);
	assert_int_equal(identify(-1).rank, -1);
	setenv("PMI_RANK", "-1", 1);
	assert_int_equal(identify(-1).rank, -1);
}

TEST(the_job_is_torchruns_unless_it_says_none)
{
	setenv("SLURM_JOB_ID", "1234", 1);
	setenv("TORCHELASTIC_RUN_ID", "none", 1);
	setenv("TORCHELASTIC_RESTART_COUNT", "2", 1);
	assert_string_equal(identify(-1).job, "1234");
	assert_int_equal(identify(-1).restart_count, 2);
	setenv("TORCHELASTIC_RUN_ID", "abc", 1);
	assert_string_equal(identify(-1).job, "abc");
}

TEST(text_is_cut_between_characters)
{
	char field[8];

	memset(field, 'x', sizeof field);
	gpc_identity_copy_text(field, sizeof field, "ab", 2);
	assert_memory_equal(field, "ab\0\0\0\0\0", 8);
	gpc_identity_copy_text(field, sizeof field, "abcdefgh", 8);
	assert_string_equal(field, "abcdefg");
	/* Three bytes a character: the third does not fit. */
	gpc_identity_copy_text(field, sizeof field, "\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac", 9);
	assert_string_equal(field, "\xe2\x82\xac\xe2\x82\xac");
}

static void count_line(void *arg, const char *line)
{
	int *n = arg;

	assert_null(strstr(line, "GPC_SECRET"));
	assert_null(strchr(line, '\n'));
	*n += strcmp(line, "env RANK=1?2") == 0;
}

TEST(only_variables_of_the_list_are_told)
{
	int n = 0;

	setenv("GPC_SECRET", "GPC_SECRET", 1);
	setenv("RANK", "1\n2", 1);
	gpc_identity_each_variable(count_line, &n);
	assert_int_equal(n, 1);
}
