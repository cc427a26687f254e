/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the conformance suite on the simulated GPU: a current driver, one without context events, a virtual clock. */
#include <stdio.h>

#include "conformance.h"
#include "sim/gpu/driver_sim.h"

static int run(const char *name, const struct gpc_sim_config *config)
{
	struct gpc_sim *sim = gpc_sim_create(config);
	struct gpc_sim_driver driver;
	int n_wrong = 1;

	if (!sim || gpc_sim_driver_init(&driver, sim, 0, NULL) != GPC_OK) {
		printf("not ok - %s: no simulated GPU\n", name);
	} else {
		n_wrong = gpc_conformance_run(&driver.base, name);
		gpc_sim_driver_fini(&driver);
	}
	gpc_sim_destroy(sim);
	return n_wrong;
}

int main(void)
{
	struct gpc_sim_config config = gpc_sim_config_default();
	int n_wrong = run("sim", &config);

	config.driver_version = 12040;
	n_wrong += run("sim, driver 12.4", &config);
	config.driver_version = 13000;
	config.virtual_clock = true;
	n_wrong += run("sim, virtual clock", &config);
	return n_wrong != 0;
}
