/* SPDX-License-Identifier: MIT */
/* What may be wished of a pool's workers, and places that come and go; no process is started. */

#include "common/files/rundir.h"
#include "supervisor/wishes.h"
#include "tests/unit/run.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static struct options options;
static struct places places;
static char rundir[RUNDIR_PATH_MAX + 1];
static int rundir_fd;

static void set_up(void)
{
    struct error err;
    ck_assert_int_eq(rundir_temporary(rundir, NULL), 0);
    rundir_fd = open(rundir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    options = (struct options){.workers = 3};
    places = (struct places){.options = &options, .rundir_fd = rundir_fd, .store_fd = -1, .proven_fd = -1};
    for (uint32_t i = 0; i < SUPERVISION_PLACES_MAX; i++) {
        places.places[i].record.index = i;
        places.places[i].slot_fd = places.places[i].log.fd = -1;
    }
    ck_assert_msg(places_resize(&places, 3, &err) == 0, "%s", err.text);
    for (uint32_t i = 0; i < 3; i++)
        places.places[i].record.state = PLACE_READY;
}

static void tear_down(void)
{
    places_deinit(&places);
    close(rundir_fd);
    rundir_remove(rundir);
}

static void expect(int r, const struct error *err, const char *reason)
{
    ck_assert_int_eq(r, reason ? -EINVAL : 0);
    ck_assert_msg(!reason || strstr(err->text, reason), "%s", err->text);
}

#define EXPECT_SCALE(n, reason)  expect(wishes_check_scale(&places, n, &err), &err, reason)
#define EXPECT_DRAIN(i, reason)  expect(wishes_check_worker(&places, i, true, &err), &err, reason)
#define EXPECT_RETURN(i, reason) expect(wishes_check_worker(&places, i, false, &err), &err, reason)

START_TEST(one_that_serves_is_always_left)
{
    struct error err = {{0}};
    EXPECT_SCALE(0, "out of range 1..64");
    EXPECT_SCALE(SUPERVISION_PLACES_MAX + 1, "out of range 1..64");
    EXPECT_SCALE(1, NULL);
    EXPECT_SCALE(SUPERVISION_PLACES_MAX, NULL);
    EXPECT_DRAIN(3, "unknown worker-3: the pool has 3");
    EXPECT_DRAIN(UINT32_MAX, "the pool has 3");
    EXPECT_RETURN(0, "worker-0 is not drained");
    EXPECT_DRAIN(0, NULL);
    places_take_out(&places, 0, 1, 1);
    EXPECT_DRAIN(0, "worker-0 is drained already");
    EXPECT_SCALE(1, "none of the remaining 1 workers is serving");
    EXPECT_SCALE(2, NULL);
    places.places[1].record.state = PLACE_STARTING; /* it does not serve yet */
    EXPECT_DRAIN(2, "no other worker serves");
    EXPECT_SCALE(2, "none of the remaining 2 workers is serving");
    EXPECT_RETURN(0, NULL);
}
END_TEST

START_TEST(what_was_taken_out_is_not_started_until_it_is_put_back)
{
    places_take_out(&places, 1, 1, 1);
    ck_assert_int_eq(places.places[1].record.state, PLACE_GONE);
    ck_assert_ptr_nonnull(strstr(places.places[1].record.reason, "quern undrain worker-1"));
    places_replace(&places, 1, 1, 1); /* a reload passes it by */
    ck_assert_ptr_null(places_due(&places, UINT64_MAX - 1));
    ck_assert(!places_serves(&places, 1) && places_serves(&places, 2));
    places_put_back(&places, 1, 7);
    ck_assert_ptr_eq(places_due(&places, 7), &places.places[1]);
    ck_assert_str_eq(places.places[1].record.reason, "");
}
END_TEST

START_TEST(places_come_and_go_and_their_incarnations_go_on)
{
    struct error err = {{0}};
    for (uint32_t i = 0; i < 3; i++)
        places.places[i].record.incarnation = 5;
    for (uint32_t n = 3; n <= SUPERVISION_PLACES_MAX; n++)
        ck_assert_int_eq(places_resize(&places, n, &err), 0);
    for (uint32_t i = 3; i < SUPERVISION_PLACES_MAX; i++) {
        ck_assert_ptr_nonnull(places.places[i].slot);
        ck_assert_int_ge(places.places[i].slot_fd, 0);
        ck_assert_int_eq(places.places[i].record.state, PLACE_WAITING);
        ck_assert_uint_eq(places.places[i].record.index, i);
    }
    ck_assert_int_eq(places.places[2].record.state, PLACE_READY); /* it was left alone */
    places_take_out(&places, 1, 1, 1);
    ck_assert_int_eq(places_resize(&places, 1, &err), 0);
    ck_assert_int_eq(places.places[1].slot_fd, -1);
    ck_assert_int_eq(places_resize(&places, 2, &err), 0);
    ck_assert(!places.places[1].drained);
    ck_assert_int_eq(places.places[1].record.state, PLACE_WAITING);
    ck_assert_uint_eq(places.places[1].record.incarnation, 5);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, one_that_serves_is_always_left);
    tcase_add_test(tests, what_was_taken_out_is_not_started_until_it_is_put_back);
    tcase_add_test(tests, places_come_and_go_and_their_incarnations_go_on);
}

int main(void)
{
    return run_tests("supervisor/wishes", add);
}
