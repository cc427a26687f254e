/* SPDX-License-Identifier: Apache-2.0 */
/* Each of our own codes has a text (status.def); all codes of the driver share three texts. */
#include "base/status.h"

static const char *const texts[] = {
#define STATUS(name, text) text,
#include "base/status.def"
};

const char *gpc_status_text(enum gpc_status st)
{
	if ((unsigned)st < GPC_STATUS_COUNT)
		return texts[st];
	if (st == GPC_DEVICE_NO_MEMORY)
		return "the device has no such room";
	if (st == GPC_DEVICE_NOT_READY)
		return "the device is still at work";
	return "the driver reported an error";
}
