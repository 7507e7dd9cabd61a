/* SPDX-License-Identifier: MIT */
/* What stands in for epoll_wait(2), from where libzmq calls it. */

#include "tests/unit/run.h"

#include <pthread.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "broker/wire/reader.h"

static int polled; /* an epoll of nothing */

static void *look(void *reads)
{
    struct epoll_event event;
    if (reads)
        reader_is_here();
    ck_assert_int_eq(epoll_wait(polled, &event, 1, 0), 0);
    return NULL;
}

/* In a thread of its own, which is the one that reads or another. */
static void look_in_thread(bool reads)
{
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, look, reads ? &polled : NULL), 0);
    pthread_join(thread, NULL);
}

START_TEST(the_loop_knows_whether_all_connections_were_looked_at)
{
    ck_assert_int_ge(polled = epoll_create1(EPOLL_CLOEXEC), 0);
    uint32_t stamp = reader_stamp();
    ck_assert(!reader_looked_since(stamp));
    look_in_thread(false);
    ck_assert(!reader_looked_since(stamp));
    look_in_thread(true);
    ck_assert(reader_looked_since(stamp));
    ck_assert(!reader_looked_since(reader_stamp()));
    close(polled);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, the_loop_knows_whether_all_connections_were_looked_at);
}

int main(void)
{
    return run_tests("broker/reader", add);
}
