/* SPDX-License-Identifier: Apache-2.0 */
#include "base/status.h"
#include "unit.h"

TEST(every_status_has_a_text)
{
	for (int st = 0; st < GPC_STATUS_COUNT; st++)
		assert_true(strlen(gpc_status_text((enum gpc_status)st)) > 0);
	assert_string_equal(gpc_status_text(GPC_OK), "no error");
	assert_non_null(gpc_status_text(GPC_DEVICE_NO_MEMORY));
	assert_non_null(gpc_status_text(GPC_DEVICE_NOT_READY));
	assert_non_null(gpc_status_text(gpc_status_from_device(700)));
	assert_non_null(gpc_status_text((enum gpc_status) - 1));
}

TEST(a_code_of_the_driver_survives_the_way_up)
{
	assert_int_equal(gpc_status_from_device(0), GPC_OK);
	assert_int_equal(gpc_status_from_device(2), GPC_DEVICE_NO_MEMORY);
	for (int code = 1; code < 1000; code++)
		assert_int_equal(gpc_status_to_device(gpc_status_from_device(code)), code);
	assert_int_equal(gpc_status_to_device(GPC_IO), 0);
	assert_int_equal(gpc_status_to_device(GPC_OK), 0);
}
