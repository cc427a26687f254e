/* SPDX-License-Identifier: Apache-2.0 */
#include "stack/mangled.h"

#include "unit.h"

static const char *read(const char *symbol)
{
	static char buf[200];
	struct gpc_text text = gpc_text_init(buf, sizeof buf);

	return gpc_mangled_read(symbol, &text) ? buf : NULL;
}

TEST(scopes_and_name_are_read_and_the_rest_is_left_out)
{
	assert_string_equal(read("_Z3fooi"), "foo");
	assert_string_equal(read("_ZL6staticv"), "static");
	assert_string_equal(read("_ZNK2at6native4fillIfEEvPT_"), "at::native::fill");
	assert_string_equal(read("_ZN2ns3BufIfLj10ENS_1AIS1_EEE5allocEm"), "ns::Buf::alloc");
	assert_string_equal(read("_ZN3app12_GLOBAL__N_14loadEv"), "app::load");
	assert_string_equal(read("_ZN3app3BufC2Em"), "app::Buf::Buf");
	assert_string_equal(read("_ZN3app3BufD1Ev"), "app::Buf::~Buf");
	assert_string_equal(read("_ZNSt6vectorIiSaIiEE6resizeEm"), "std::vector::resize");
	assert_string_equal(read("_ZSt4movei"), "std::move");
	assert_string_equal(read("_ZN5torch8autograd9generated14AddmmBackward05applyEOSt6vectorIN2a"
				 "t6TensorESaIS4_EE"),
		"torch::autograd::generated::AddmmBackward0::apply");
}

TEST(what_is_no_such_name_or_is_cut_is_never_read_beyond_its_end)
{
	assert_null(read("main"));
	assert_null(read(""));
	assert_null(read("_Z"));
	assert_null(read("_ZN"));
	assert_null(read("_ZN99foo"));
	assert_null(read("_Z99999999999999999999foo"));
	assert_string_equal(read("_ZN2ns3BufI"), "ns::Buf");
	assert_string_equal(read("_ZN2ns3BufIL"), "ns::Buf");
	assert_string_equal(read("_ZN2ns3BufINS_9x"), "ns::Buf");
	assert_string_equal(read("_ZN2ns5alloc"), "ns::alloc");
}
