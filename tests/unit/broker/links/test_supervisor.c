/* SPDX-License-Identifier: MIT */
/* The supervisor as the broker sees it: the test is the supervisor. */

#include "broker/links/supervisor.h"
#include "tests/unit/run.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define N 3 /* places */

static int above; /* the supervisor's end */
static struct supervisor supervisor;
static struct board_slot *turns, *slots[WORKER_MAX + 1];
static struct error err;

static void say(const struct news *news)
{
    ck_assert_int_eq(supervision_send(above, news, sizeof *news), 0);
}

/* A welcome, with descriptors that are the receiver's from then on. */
static struct news welcome_of(uint32_t n)
{
    struct news news = {.kind = NEWS_WELCOME, .version = SUPERVISION_VERSION};
    ck_assert_int_eq(board_create(&news.welcome.turns_fd, &turns), 0);
    for (uint32_t i = 0; i < n; i++)
        ck_assert_int_eq(board_create(&news.welcome.slot_fds[i], &slots[i]), 0);
    news.welcome.boot = 42;
    news.welcome.n_places = n;
    news.welcome.board_version = BOARD_VERSION;
    news.welcome.rundir_fd = open("/", O_RDONLY | O_DIRECTORY);
    news.welcome.vault_fd = open("/", O_RDONLY | O_DIRECTORY);
    return news;
}

static struct news welcome(void)
{
    return welcome_of(N);
}

static int connect_to(int *ret_fd)
{
    int ends[2];
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
    above = ends[0];
    *ret_fd = ends[1];
    return ends[1];
}

static void set_up(void)
{
    int fd = connect_to(&fd);
    struct news news = welcome();
    say(&news);
    ck_assert_int_eq(supervisor_init(&supervisor, fd, N, &err), 0);
}

static void tear_down(void)
{
    close(above);
    close(supervisor.fd);
    supervisor_deinit(&supervisor);
}

/* ---- the welcome ---- */

static int init_with(const struct news *news, size_t size, uint32_t n)
{
    int fd = connect_to(&fd);
    ck_assert_int_eq(supervision_send(above, news, size), 0);
    int r = supervisor_init(&supervisor, fd, n, &err);
    tear_down();
    return r;
}

START_TEST(the_welcome_says_what_is_inherited)
{
    set_up();
    ck_assert_uint_eq(supervisor.boot, 42);
    ck_assert_uint_eq(supervisor.n, N);
    const int fds[] = {supervisor.fd, supervisor.rundir_fd, supervisor.vault_fd};
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(fcntl(fds[i], F_GETFD), FD_CLOEXEC);
    int rundir = supervisor.rundir_fd, vault = supervisor.vault_fd;
    tear_down();
    ck_assert_int_eq(fcntl(rundir, F_GETFD), -1);
    ck_assert_int_eq(fcntl(vault, F_GETFD), -1);
}
END_TEST

START_TEST(another_version_is_refused_in_words)
{
    static const char text[] = "the supervisor is of a different version: restart the pool";
    struct news news = welcome();
    news.version++;
    ck_assert_int_eq(init_with(&news, sizeof news, N), -EBADMSG);
    ck_assert_str_eq(err.text, text);
    news = welcome();
    news.welcome.board_version++;
    err.text[0] = 0;
    ck_assert_int_eq(init_with(&news, sizeof news, N), -EBADMSG);
    ck_assert_str_eq(err.text, text);
    news = welcome();
    news.kind = NEWS_PLACE;
    err.text[0] = 0;
    ck_assert_int_eq(init_with(&news, sizeof news, N), -EBADMSG);
    ck_assert_str_eq(err.text, text);
    news = welcome();
    err.text[0] = 0;
    ck_assert_int_eq(init_with(&news, sizeof news - 8, N), -EBADMSG);
    ck_assert_str_eq(err.text, text);
}
END_TEST

START_TEST(another_number_of_places_is_refused)
{
    struct news news = welcome();
    ck_assert_int_eq(init_with(&news, sizeof news, N + 1), -EINVAL);
    ck_assert_str_eq(err.text, "the supervisor reports an invalid number of places for workers: 3");
    news = welcome_of(WORKER_MAX);
    ck_assert_int_eq(init_with(&news, sizeof news, WORKER_MAX), 0);
    news = welcome();
    news.welcome.n_places = WORKER_MAX + 1;
    ck_assert_int_eq(init_with(&news, sizeof news, WORKER_MAX + 1), -EINVAL);
    ck_assert_str_eq(err.text, "the supervisor reports an invalid number of places for workers: 65");
}
END_TEST

START_TEST(a_board_that_is_none_is_refused)
{
    struct news news = welcome();
    turns->magic++;
    ck_assert_int_eq(init_with(&news, sizeof news, N), -EINVAL);
    ck_assert_str_eq(err.text, "the board: Invalid argument");
    news = welcome();
    close(news.welcome.slot_fds[N - 1]);
    news.welcome.slot_fds[N - 1] = -1;
    ck_assert_int_eq(init_with(&news, sizeof news, N), -EBADF);
    ck_assert_str_eq(err.text, "the board: Bad file descriptor");
}
END_TEST

/* A worker that was taken over writes to its slot what it likes, and lives on when the broker does not. */
START_TEST(no_worker_keeps_the_next_broker_from_coming_up)
{
    struct news news = welcome();
    for (uint32_t i = 0; i < N; i++)
        memset(slots[i], 0xff, sizeof *slots[i]);
    ck_assert_int_eq(init_with(&news, sizeof news, N), 0);
}
END_TEST

START_TEST(of_the_board_no_descriptor_is_kept)
{
    struct news news = welcome();
    ck_assert_int_eq(init_with(&news, sizeof news, N), 0);
    ck_assert_int_eq(fcntl(news.welcome.turns_fd, F_GETFD), -1);
    for (uint32_t i = 0; i < N; i++)
        ck_assert_int_eq(fcntl(news.welcome.slot_fds[i], F_GETFD), -1);
}
END_TEST

START_TEST(a_supervisor_that_has_ended_is_told)
{
    int fd = connect_to(&fd);
    close(above);
    ck_assert_int_eq(supervisor_init(&supervisor, fd, N, &err), -EPIPE);
    ck_assert_str_eq(err.text, "the supervisor: Broken pipe");
    close(fd);
}
END_TEST

static void *say_late(void *news)
{
    usleep(50000);
    supervision_send(above, news, sizeof(struct news));
    return NULL;
}

START_TEST(the_welcome_is_waited_for)
{
    pthread_t thread;
    struct news news = welcome();
    int fd = connect_to(&fd);
    ck_assert_int_eq(pthread_create(&thread, NULL, say_late, &news), 0);
    ck_assert_int_eq(supervisor_init(&supervisor, fd, N, &err), 0);
    pthread_join(thread, NULL);
    tear_down();
}
END_TEST

/* ---- news ---- */

/* What the broker makes of a place's being like this: "", "died", "born", "died and born". */
static const char *told(uint32_t index, enum place_state state, uint32_t incarnation)
{
    static char text[32];
    struct supervisor_change change;
    struct news news = {.kind = NEWS_PLACE,
                        .place = {.index = index, .state = state, .incarnation = incarnation}};
    say(&news);
    if (!supervisor_take(&supervisor, &change))
        return "";
    ck_assert_uint_eq(change.index, index);
    ck_assert_uint_eq(supervisor.places[index].record.incarnation, incarnation);
    ck_assert_uint_eq(supervisor.places[index].record.state, state);
    snprintf(text, sizeof text, "%s%s%s", change.died ? "died" : "",
             change.died && change.born ? " and " : "", change.born ? "born" : "");
    return text;
}

START_TEST(a_place_lives_and_dies)
{
    ck_assert_str_eq(told(1, PLACE_WAITING, 0), "");
    ck_assert_str_eq(told(1, PLACE_STARTING, 1), "born");
    ck_assert_str_eq(told(1, PLACE_STARTING, 1), "");
    ck_assert_str_eq(told(1, PLACE_READY, 1), "");
    ck_assert_str_eq(told(1, PLACE_WAITING, 1), "died");
    ck_assert_str_eq(told(1, PLACE_WAITING, 1), "");
    ck_assert_str_eq(told(1, PLACE_STARTING, 2), "born");
    ck_assert_str_eq(told(1, PLACE_FAILED, 2), "died");
    ck_assert_str_eq(told(2, PLACE_STARTING, 1), "born");
    ck_assert_str_eq(told(2, PLACE_GONE, 1), "died");
}
END_TEST

/* A record says how things are, not what happened. */
START_TEST(what_happened_between_two_records_is_seen)
{
    ck_assert_str_eq(told(0, PLACE_READY, 1), "born");
    ck_assert_str_eq(told(0, PLACE_STARTING, 2), "died and born");
    ck_assert_str_eq(told(0, PLACE_WAITING, 3), "died");
    ck_assert_str_eq(told(0, PLACE_WAITING, 4), "died"); /* one that came and went */
    ck_assert_str_eq(told(0, PLACE_STARTING, 4), "born");
}
END_TEST

START_TEST(who_was_expected_is_born_to_this_broker_too)
{
    supervisor_expect(&supervisor, 0, 7);
    ck_assert_uint_eq(supervisor_alive(&supervisor), 1);
    ck_assert_str_eq(told(0, PLACE_READY, 7), "born");
    ck_assert_str_eq(told(0, PLACE_READY, 7), "");
    supervisor_expect(&supervisor, 1, 7);
    ck_assert_str_eq(told(1, PLACE_STARTING, 8), "died and born");
    supervisor_expect(&supervisor, 2, 7);
    ck_assert_str_eq(told(2, PLACE_WAITING, 7), "died");
}
END_TEST

START_TEST(a_place_that_is_not_there_is_passed_over)
{
    struct supervisor_change change;
    struct news news = {.kind = NEWS_PLACE, .place = {.index = N, .state = PLACE_READY, .incarnation = 1}};
    say(&news);
    ck_assert(!supervisor_take(&supervisor, &change));
    ck_assert_uint_eq(supervisor.places[N].record.incarnation, 0);
    ck_assert_str_eq(told(N - 1, PLACE_READY, 1), "born");
}
END_TEST

START_TEST(a_record_whose_state_is_none_is_passed_over)
{
    ck_assert_str_eq(told(0, PLACE_READY, 1), "born");
    struct supervisor_change change;
    struct news news = {.kind = NEWS_PLACE, .place = {.state = PLACE_STATE_COUNT, .incarnation = 2}};
    say(&news);
    ck_assert(!supervisor_take(&supervisor, &change));
    ck_assert_uint_eq(supervisor.places[0].record.incarnation, 1);
    ck_assert_uint_eq(supervisor.places[0].record.state, PLACE_READY);
}
END_TEST

START_TEST(texts_of_a_record_end_and_can_be_told)
{
    struct supervisor_change change;
    struct news news = {.kind = NEWS_PLACE, .place = {.state = PLACE_WAITING, .incarnation = 1}};
    const struct place_record *record = &supervisor.places[0].record;
    memset(news.place.stream, 's', sizeof news.place.stream);
    memset(news.place.reason, 'r', sizeof news.place.reason);
    memcpy(news.place.reason, "/home/J\xf6rg/\n", 12);
    say(&news);
    ck_assert(supervisor_take(&supervisor, &change));
    ck_assert_uint_eq(strnlen(record->stream, sizeof record->stream), sizeof record->stream - 1);
    ck_assert_uint_eq(strnlen(record->reason, sizeof record->reason), sizeof record->reason - 1);
    ck_assert(strncmp(record->reason, "/home/J?rg/?r", 13) == 0);
}
END_TEST

START_TEST(it_says_when_the_pool_is_to_end)
{
    struct supervisor_change change;
    struct news end = {.kind = NEWS_END, .signals = 2}, leave = {.kind = NEWS_LEAVE};
    ck_assert(!supervisor_take(&supervisor, &change));
    ck_assert_uint_eq(supervisor.signals, 0);
    say(&end);
    ck_assert(!supervisor_take(&supervisor, &change));
    ck_assert_uint_eq(supervisor.signals, 2);
    ck_assert(!supervisor.leave);
    say(&leave);
    ck_assert(!supervisor_take(&supervisor, &change));
    ck_assert(supervisor.leave);
    ck_assert(!supervisor.gone);
    ck_assert_int_eq(shutdown(above, SHUT_RDWR), 0);
    ck_assert(!supervisor_take(&supervisor, &change));
    ck_assert(supervisor.gone);
}
END_TEST

/* ---- orders ---- */

/* The next order that was given, as text; "" when there is none. */
static const char *ordered(void)
{
    static const char *const names[] = {"serving", "ready", "kill", "stop"};
    static char text[64];
    struct order order;
    if (supervision_receive(above, &order, sizeof order) != 0)
        return "";
    ck_assert_uint_le(order.kind, ORDER_STOP);
    snprintf(text, sizeof text, "%s %u %u", names[order.kind], order.index, order.incarnation);
    return text;
}

START_TEST(orders_are_for_the_process_that_has_the_place)
{
    told(1, PLACE_STARTING, 5);
    supervisor_serving(&supervisor);
    ck_assert_str_eq(ordered(), "serving 0 0");
    supervisor_ready(&supervisor, 1);
    ck_assert_str_eq(ordered(), "ready 1 5");
    supervisor_kill(&supervisor, 1);
    ck_assert_str_eq(ordered(), "kill 1 5");
    told(1, PLACE_READY, 5);
    supervisor_ready(&supervisor, 1); /* it is known to be */
    ck_assert_str_eq(ordered(), "");
    supervisor_kill(&supervisor, 1);
    ck_assert_str_eq(ordered(), "kill 1 5");
    told(1, PLACE_WAITING, 5);
    supervisor_ready(&supervisor, 1);
    supervisor_kill(&supervisor, 1);
    supervisor_kill(&supervisor, 0);
    ck_assert_str_eq(ordered(), "");
    supervisor_stop(&supervisor);
    ck_assert_str_eq(ordered(), "stop 0 0");
    supervisor_flush(&supervisor); /* each is given once */
    ck_assert_str_eq(ordered(), "");
}
END_TEST

/* Until the connection takes no more. */
static void fill(void)
{
    const struct order order = {.kind = ORDER_SERVING};
    while (supervision_send(supervisor.fd, &order, sizeof order) == 0)
        ;
}

static void read_all(void)
{
    while (strcmp(ordered(), "serving 0 0") == 0)
        ;
}

START_TEST(an_order_that_cannot_be_given_is_given_later)
{
    told(0, PLACE_STARTING, 1);
    told(2, PLACE_READY, 3);
    fill();
    supervisor_ready(&supervisor, 0);
    supervisor_kill(&supervisor, 2);
    supervisor_stop(&supervisor);
    supervisor_serving(&supervisor);
    supervisor_flush(&supervisor);
    ck_assert(supervisor.serving_due && supervisor.stop_due && supervisor.places[0].ready_due &&
              supervisor.places[2].kill_due);
    read_all();
    supervisor_flush(&supervisor);
    ck_assert_str_eq(ordered(), "serving 0 0");
    ck_assert_str_eq(ordered(), "stop 0 0");
    ck_assert_str_eq(ordered(), "ready 0 1");
    ck_assert_str_eq(ordered(), "kill 2 3");
    supervisor_flush(&supervisor);
    ck_assert_str_eq(ordered(), "");
}
END_TEST

START_TEST(an_order_for_a_process_that_is_dead_is_not_given)
{
    told(0, PLACE_STARTING, 1);
    told(1, PLACE_STARTING, 1);
    told(2, PLACE_STARTING, 1);
    fill();
    supervisor_ready(&supervisor, 0);
    supervisor_kill(&supervisor, 1);
    supervisor_kill(&supervisor, 2);
    told(0, PLACE_STARTING, 2); /* another has its place */
    told(1, PLACE_WAITING, 1);
    told(2, PLACE_READY, 1); /* still the same */
    read_all();
    supervisor_flush(&supervisor);
    ck_assert_str_eq(ordered(), "kill 2 1");
    ck_assert_str_eq(ordered(), "");
}
END_TEST

/* ---- what is known ---- */

START_TEST(processes_are_counted_and_failures_are_all_or_not)
{
    ck_assert_uint_eq(supervisor_alive(&supervisor), 0);
    ck_assert(!supervisor_all_failed(&supervisor));
    told(0, PLACE_STARTING, 1);
    told(1, PLACE_READY, 1);
    told(2, PLACE_WAITING, 1);
    ck_assert_uint_eq(supervisor_alive(&supervisor), 2);
    told(0, PLACE_FAILED, 1);
    told(1, PLACE_FAILED, 1);
    ck_assert_uint_eq(supervisor_alive(&supervisor), 0);
    ck_assert(!supervisor_all_failed(&supervisor));
    told(2, PLACE_FAILED, 1);
    ck_assert(supervisor_all_failed(&supervisor));
    told(0, PLACE_WAITING, 1);
    ck_assert(!supervisor_all_failed(&supervisor));
}
END_TEST

START_TEST(the_board_is_read_and_a_half_written_slot_is_zeros)
{
    struct board_snapshot snapshot = {.pid = 77, .tokens = 5}, seen;
    uint64_t steps = 0;
    board_write(slots[1], &snapshot);
    atomic_store(&slots[1]->steps, 9);
    supervisor_snapshot(&supervisor, 1, &seen, &steps);
    ck_assert_mem_eq(&seen, &snapshot, sizeof seen);
    ck_assert_uint_eq(steps, 9);
    supervisor_snapshot(&supervisor, 0, &seen, &steps);
    ck_assert_uint_eq(seen.pid, 0);
    ck_assert_uint_eq(steps, 0);
    atomic_store(&slots[1]->sequence, 1); /* its writer was killed */
    memset(&seen, 1, sizeof seen);
    supervisor_snapshot(&supervisor, 1, &seen, &steps);
    ck_assert_mem_eq(&seen, &(struct board_snapshot){0}, sizeof seen);
    ck_assert_uint_eq(steps, 9);
}
END_TEST

START_TEST(each_turn_of_the_loop_is_counted_on_the_board)
{
    for (uint64_t i = 0; i < 3; i++) {
        ck_assert_uint_eq(atomic_load(&turns->steps), i);
        supervisor_turn(&supervisor);
    }
}
END_TEST

static void add_welcome(TCase *tests)
{
    tcase_add_test(tests, the_welcome_says_what_is_inherited);
    tcase_add_test(tests, another_version_is_refused_in_words);
    tcase_add_test(tests, another_number_of_places_is_refused);
    tcase_add_test(tests, a_board_that_is_none_is_refused);
    tcase_add_test(tests, no_worker_keeps_the_next_broker_from_coming_up);
    tcase_add_test(tests, of_the_board_no_descriptor_is_kept);
    tcase_add_test(tests, a_supervisor_that_has_ended_is_told);
    tcase_add_test(tests, the_welcome_is_waited_for);
}

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, a_place_lives_and_dies);
    tcase_add_test(tests, what_happened_between_two_records_is_seen);
    tcase_add_test(tests, who_was_expected_is_born_to_this_broker_too);
    tcase_add_test(tests, a_place_that_is_not_there_is_passed_over);
    tcase_add_test(tests, a_record_whose_state_is_none_is_passed_over);
    tcase_add_test(tests, texts_of_a_record_end_and_can_be_told);
    tcase_add_test(tests, it_says_when_the_pool_is_to_end);
    tcase_add_test(tests, orders_are_for_the_process_that_has_the_place);
    tcase_add_test(tests, an_order_that_cannot_be_given_is_given_later);
    tcase_add_test(tests, an_order_for_a_process_that_is_dead_is_not_given);
    tcase_add_test(tests, processes_are_counted_and_failures_are_all_or_not);
    tcase_add_test(tests, the_board_is_read_and_a_half_written_slot_is_zeros);
    tcase_add_test(tests, each_turn_of_the_loop_is_counted_on_the_board);
}

int main(void)
{
    Suite *suite = suite_create("broker/supervisor");
    TCase *welcomes = tcase_create("welcome"), *others = tcase_create("supervisor");
    tcase_set_timeout(welcomes, 60); /* Check's own are four seconds */
    tcase_set_timeout(others, 60);
    add_welcome(welcomes);
    add(others);
    suite_add_tcase(suite, welcomes);
    suite_add_tcase(suite, others);
    return run_suite(suite);
}
