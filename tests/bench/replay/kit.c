/* SPDX-License-Identifier: Apache-2.0 */
/* For developers: gpucache in each order of frees, and without any; generated workloads; traces saved as logs of RMM. */
#include <stdio.h>

#include "tests/bench/replay/save.h"
#include "tests/bench/replay/workload.h"
#include "tools/gpumem-replay/kit.h"

static struct gpc_policy_ops fence, host, unsafe;

static const struct gpc_policy_ops *const policies[] = {
	&gpc_policy_gpucache,
	&gpc_policy_gpucache_on,
	&fence,
	&host,
	&gpc_policy_pytorch,
	&gpc_policy_pytorch_expandable,
	&gpc_policy_vmm,
	&gpc_policy_vmm_auto,
	&gpc_policy_none,
	&unsafe,
};

__attribute__((constructor)) static void make_policies(void)
{
	fence = gpc_policy_gpucache;
	fence.name = "fence";
	fence.help = "gpucache with free_order:fence";
	fence.is_late = false;
	fence.submits = NULL;
	host = unsafe = fence;
	host.name = "host";
	host.help = "gpucache with free_order:host";
	host.variant = GPC_POLICY_HOST_ORDER;
	unsafe.name = "unsafe";
	unsafe.help = "gpucache without fences: shows what races they prevent";
	unsafe.variant = GPC_POLICY_UNSAFE;
}

static void print_help(void)
{
	puts("\n"
	     "  -g, --generate NAME[:KEY=VALUE[,KEY=VALUE...]]\n"
	     "                       a workload in place of a trace\n"
	     "      --save FILE      write the trace as an RMM log: FILE.csv or FILE.csv.gz\n"
	     "\n"
	     "Workloads, with their keys and defaults:");
	gpc_workload_print_help();
	puts("\n"
	     "The kernels of a workload run on the simulated clock, and use most freed memory for\n"
	     "a while longer.  So its table has more rows: the peak of pending bytes; how often\n"
	     "and how long the allocator made the host wait for the device; the time that the\n"
	     "program took; and races, memory that got a new owner while work of the old one\n"
	     "could still run, which must be 0.");
}

const struct gpc_kit gpc_kit = {
	.policies = policies,
	.n_policies = sizeof policies / sizeof policies[0],
	.generate = gpc_workload_make,
	.save = gpc_trace_save,
	.print_help = print_help,
};
