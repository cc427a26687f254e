/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lists of environment variables, in order of precedence.  Slurm's come last: if Slurm starts one torchrun per
 * node, SLURM_PROCID is the number of the node.  Job and restart count come from the first variable that is set.
 */
#include "record/identity.h"

#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/env.h"
#include "base/io.h"
#include "base/text.h"

static const struct {
	const char *rank;
	const char *local_rank;
	const char *world_size;
	bool needs_all; /* programs use the name RANK alone for other things */
} launchers[] = {
	{ "RANK", "LOCAL_RANK", "WORLD_SIZE", true }, /* torchrun */
	{ "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_SIZE", false },
	{ "PMIX_RANK", "PMIX_LOCAL_RANK", "PMIX_SIZE", false },
	{ "PMI_RANK", "MPI_LOCALRANKID", "PMI_SIZE", false },
	{ "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_SIZE", false },
	{ "FLUX_TASK_RANK", "FLUX_TASK_LOCAL_ID", "FLUX_JOB_SIZE", false },
	{ "SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS", false },
};

static const char *const job_variables[] = { "TORCHELASTIC_RUN_ID", "SLURM_JOB_ID", "FLUX_JOB_ID",
	"PBS_JOBID", "LSB_JOBID" };

static const char *const restart_variables[] = { "TORCHELASTIC_RESTART_COUNT",
	"SLURM_RESTART_COUNT" };

/* These are only recorded: they say how the run was started, and which devices it may see. */
static const char *const other_variables[] = { "LOCAL_WORLD_SIZE", "GROUP_RANK", "ROLE_RANK",
	"SLURM_STEP_ID", "SLURM_NODEID", "SLURM_ARRAY_TASK_ID", "CUDA_VISIBLE_DEVICES",
	"CUDA_DEVICE_ORDER", "CUDA_MODULE_LOADING", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF",
	"XLA_PYTHON_CLIENT_PREALLOCATE", "XLA_PYTHON_CLIENT_MEM_FRACTION",
	"XLA_PYTHON_CLIENT_ALLOCATOR", "TF_FORCE_GPU_ALLOW_GROWTH", "TF_GPU_ALLOCATOR",
	"GPUCACHE_CONF", "GPUCACHE_OUTPUT", "GPUCACHE_RUN" };

#define N_OF(array) (sizeof(array) / sizeof((array)[0]))

void gpc_identity_copy_text(char *field, size_t size, const char *text, size_t len)
{
	size_t n = len < size - 1 ? len : size - 1;

	/* 10xxxxxx continues a character: move back to the first byte of the character that is cut. */
	while (n < len && n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80)
		n--;
	memcpy(field, text, n);
	memset(field + n, 0, size - n);
}

/* The value of a variable, a number of at most 9 digits; -1 if it is not set, or is no such number. */
static int32_t read_number(const char *name)
{
	const char *value = gpc_env_get(name);
	int32_t number = 0;
	int n_digits = 0;

	for (; value && value[n_digits]; n_digits++) {
		if (value[n_digits] < '0' || value[n_digits] > '9' || n_digits == 9)
			return -1;
		number = number * 10 + (value[n_digits] - '0');
	}
	return n_digits ? number : -1;
}

static void read_ranks(struct gpucache_header *identity, int64_t rank)
{
	identity->rank = -1;
	identity->local_rank = -1;
	for (size_t i = 0; i < N_OF(launchers) && identity->rank < 0; i++) {
		int32_t global = read_number(launchers[i].rank);
		int32_t local = read_number(launchers[i].local_rank);
		int32_t world = read_number(launchers[i].world_size);

		if (global < 0 || (launchers[i].needs_all && (local < 0 || world < 0)))
			continue;
		identity->rank = global;
		identity->local_rank = local;
		identity->world_size = world < 0 ? 0 : world;
	}
	if (rank >= 0 && rank <= INT32_MAX)
		identity->rank = (int32_t)rank;
}

static void read_job(struct gpucache_header *identity)
{
	for (size_t i = 0; i < N_OF(job_variables) && !identity->job[0]; i++) {
		const char *value = gpc_env_get(job_variables[i]);

		/* torchrun sets "none" if the user gave no id. */
		if (value && strcmp(value, "none") != 0)
			gpc_identity_copy_text(
				identity->job, sizeof identity->job, value, strlen(value));
	}
	for (size_t i = 0; i < N_OF(restart_variables); i++) {
		int32_t count = read_number(restart_variables[i]);

		if (count >= 0) {
			identity->restart_count = count;
			break;
		}
	}
}

static void read_names(struct gpucache_header *identity)
{
	struct utsname name;
	char buf[1024];
	ssize_t n;

	if (uname(&name) == 0)
		gpc_identity_copy_text(identity->host, sizeof identity->host, name.nodename,
			strlen(name.nodename));
	n = readlink("/proc/self/exe", buf, sizeof buf);
	if (n > 0)
		gpc_identity_copy_text(identity->exe, sizeof identity->exe, buf, (size_t)n);
	n = gpc_io_read_file("/proc/self/cmdline", buf, sizeof buf);
	if (n > 0) {
		for (ssize_t i = 0; i < n - 1; i++)
			buf[i] = (char)(buf[i] ? buf[i] : ' ');
		gpc_identity_copy_text(
			identity->command, sizeof identity->command, buf, strlen(buf));
	}
	n = gpc_io_read_file("/proc/sys/kernel/random/boot_id", buf, sizeof buf);
	if (n > 0)
		gpc_identity_copy_text(
			identity->boot_id, sizeof identity->boot_id, buf, strcspn(buf, "\n"));
}

void gpc_identity_read(struct gpucache_header *identity, int64_t rank)
{
	struct stat st;

	memset(identity, 0, sizeof *identity);
	identity->pid = (uint32_t)getpid();
	identity->uid = (uint32_t)geteuid();
	(void)gpc_io_read_start("/proc/self/stat", &identity->start_ticks);
	if (stat("/proc/self/ns/pid", &st) == 0)
		identity->pid_namespace = (uint64_t)st.st_ino;
	read_names(identity);
	read_ranks(identity, rank);
	read_job(identity);
}

static void emit_variable(const char *name, void (*emit)(void *arg, const char *line), void *arg)
{
	const char *value = gpc_env_get(name);
	GPC_TEXT(text, 256);
	size_t start;

	if (!value)
		return;
	gpc_text_add(&text, "env %s=", name);
	start = text.len;
	gpc_text_add(&text, "%s", value);
	for (size_t i = start; i < text.len; i++)
		text.buf[i] = (char)((unsigned char)text.buf[i] < ' ' ? '?' : text.buf[i]);
	emit(arg, text.buf);
}

void gpc_identity_each_variable(void (*emit)(void *arg, const char *line), void *arg)
{
	for (size_t i = 0; i < N_OF(launchers); i++) {
		emit_variable(launchers[i].rank, emit, arg);
		emit_variable(launchers[i].local_rank, emit, arg);
		emit_variable(launchers[i].world_size, emit, arg);
	}
	for (size_t i = 0; i < N_OF(job_variables); i++)
		emit_variable(job_variables[i], emit, arg);
	for (size_t i = 0; i < N_OF(restart_variables); i++)
		emit_variable(restart_variables[i], emit, arg);
	for (size_t i = 0; i < N_OF(other_variables); i++)
		emit_variable(other_variables[i], emit, arg);
}
