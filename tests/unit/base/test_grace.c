/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/grace.h"
#include "base/thread.h"
#include "unit.h"

/* A thread that is inside from the moment that its creation returns until it is let go. */
struct visitor {
	pthread_t thread;
	uint32_t id;
	sem_t is_inside;
	sem_t may_go;
	bool leaves;
};

static void *visit(void *arg)
{
	struct visitor *visitor = arg;

	(void)gpc_thread_enter();
	visitor->id = gpc_thread_id();
	sem_post(&visitor->is_inside);
	sem_wait(&visitor->may_go);
	if (visitor->leaves)
		gpc_thread_leave();
	return NULL;
}

static void come(struct visitor *visitor, bool leaves)
{
	pthread_attr_t attr;

	visitor->leaves = leaves;
	assert_int_equal(sem_init(&visitor->is_inside, 0, 0), 0);
	assert_int_equal(sem_init(&visitor->may_go, 0, 0), 0);
	assert_int_equal(pthread_attr_init(&attr), 0);
	assert_int_equal(pthread_attr_setstacksize(&attr, 128 * 1024), 0);
	assert_int_equal(pthread_create(&visitor->thread, &attr, visit, visitor), 0);
	assert_int_equal(sem_wait(&visitor->is_inside), 0);
}

static void go(struct visitor *visitor)
{
	assert_int_equal(sem_post(&visitor->may_go), 0);
	assert_int_equal(pthread_join(visitor->thread, NULL), 0);
	/* The kernel may know the thread a moment longer. */
	while (syscall(SYS_tgkill, getpid(), visitor->id, 0) == 0)
		sched_yield();
}

TEST(it_is_over_when_all_have_left_that_were_inside)
{
	struct visitor early;
	struct visitor late;
	uint64_t number;

	assert_true(gpc_grace_is_over(gpc_grace_begin())); /* nobody is inside */
	come(&early, true);
	number = gpc_grace_begin();
	come(&late, true);
	assert_false(gpc_grace_is_over(number));
	go(&early);
	assert_true(gpc_grace_is_over(number));
	assert_false(gpc_grace_is_over(gpc_grace_begin()));
	go(&late);
	assert_true(gpc_grace_is_over(gpc_grace_begin()));
}

TEST(the_thread_that_asks_may_be_inside_since_then)
{
	uint64_t number = gpc_grace_begin();

	assert_true(gpc_thread_enter());
	assert_true(gpc_grace_is_over(number));
	assert_false(gpc_grace_is_over(gpc_grace_begin()));
	gpc_thread_leave();
}

TEST(a_thread_that_ended_inside_delays_nothing)
{
	struct visitor visitor;
	uint64_t number;

	come(&visitor, false);
	number = gpc_grace_begin();
	assert_false(gpc_grace_is_over(number));
	go(&visitor);
	assert_true(gpc_grace_is_over(number));
}

TEST(a_call_of_the_program_belongs_to_the_stay_that_it_interrupts)
{
	struct gpc_stay *stay;
	uint64_t number;

	assert_true(gpc_thread_enter());
	number = gpc_grace_begin();
	stay = gpc_thread_step_out();
	assert_true(gpc_thread_enter());
	gpc_thread_leave();
	assert_false(gpc_grace_is_over(number));
	gpc_thread_step_in(stay);
	assert_false(gpc_thread_enter());
	assert_false(gpc_grace_is_over(number));
	gpc_thread_leave();
	assert_true(gpc_grace_is_over(number));
}

/* One after the other, with ids that the kernel gives but once. */
TEST(threads_that_come_and_go_take_no_more_room)
{
	struct visitor visitor;

	for (unsigned i = 0; i < 2 * GPC_MAX_STAYS; i++) {
		come(&visitor, true);
		go(&visitor);
	}
	assert_true(gpc_grace_is_over(gpc_grace_begin()));
}

/* Last: from then on no grace period ends. */
TEST(with_more_threads_than_stays_it_is_never_over)
{
	static struct visitor visitors[GPC_MAX_STAYS + 1];

	for (unsigned i = 0; i <= GPC_MAX_STAYS; i++)
		come(&visitors[i], true);
	for (unsigned i = 0; i <= GPC_MAX_STAYS; i++)
		go(&visitors[i]);
	assert_false(gpc_grace_is_over(gpc_grace_begin()));
}
