/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime_calls.h"

int main(int argc, char **argv)
{
	OK(cudaFree(NULL));
	if (stack_has(argc, argv, "plain"))
		runtime_plain();
	if (stack_has(argc, argv, "async"))
		runtime_async();
	stack_hold();
}
