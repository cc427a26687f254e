/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "base/bytes.h"
#include "sim/gpu/config.h"
#include "sim/gpu/model.h"

TEST(a_gpu_is_found_by_its_name)
{
	const struct gpc_sim_model *model = gpc_sim_model_find("a100-80");

	assert_non_null(model);
	assert_string_equal(model->name, "NVIDIA A100-SXM4-80GB");
	assert_int_equal(model->major * 10 + model->minor, 80);
	assert_int_equal(model->sms, 108);
	assert_int_equal(model->threads_per_sm, 2048);
	assert_int_equal(model->shared_per_block, 166912);
}

TEST(an_unknown_gpu_is_none)
{
	assert_null(gpc_sim_model_find("h1000"));
	assert_null(gpc_sim_model_find(""));
}

TEST(a_context_takes_what_people_measured)
{
	struct gpc_sim_model model = *gpc_sim_model_default();

	/* 107 MiB on a 4060 Ti, 555 MiB on an RTX PRO 6000: within a tenth of both. */
	model.threads_per_sm = 1536;
	model.sms = 34;
	assert_in_range(gpc_sim_model_context_bytes(&model) / GPC_MIB, 97, 117);
	model.sms = 188;
	assert_in_range(gpc_sim_model_context_bytes(&model) / GPC_MIB, 500, 610);
}

TEST(a_gpu_sets_memory_and_context_and_what_follows_wins)
{
	struct gpc_sim_config config = gpc_sim_config_default();

	assert_int_equal(gpc_sim_config_parse(&config, "gpu:t4"), 0);
	assert_int_equal(config.memory, config.model->memory);
	assert_int_equal(config.context_cost, gpc_sim_model_context_bytes(config.model));
	assert_int_equal(gpc_sim_config_parse(&config, "gpu:h100,memory:4GiB"), 0);
	assert_int_equal(config.memory, 4 * GPC_GIB);
	assert_int_equal(config.model->sms, 132);
	assert_true(config.has_code);
	assert_int_equal(gpc_sim_config_parse(&config, "code:none"), 0);
	assert_false(config.has_code);
	assert_int_equal(gpc_sim_config_parse(&config, "code:some"), 1);
	assert_int_equal(gpc_sim_config_parse(&config, "gpu:x100"), 1);
	assert_int_equal(config.model->sms, 132);
}
