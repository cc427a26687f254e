/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of C++ for the stack of make_symbols.c: a template, and one that is inlined into it. */

namespace shop
{

struct basket {
	__attribute__((always_inline)) void add(void (*next)(void *), void *arg)
	{
		next(arg);
		__asm__ volatile("");
	}

	template <typename Item>
	__attribute__((noinline)) void grow(void (*next)(Item), Item item)
	{
		add(next, item);
		__asm__ volatile("");
	}
};

} /* namespace shop */

extern "C" void call_through_cxx(void (*next)(void *), void *arg)
{
	shop::basket basket;

	basket.grow<void *>(next, arg);
	__asm__ volatile("");
}
