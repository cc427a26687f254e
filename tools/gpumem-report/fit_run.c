/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/gpumem-report/fit.h"
enum gpc_exit gpc_fit_run(struct gpc_report *report)
{
	(void)report;
	return GPC_EXIT_USAGE;
}
