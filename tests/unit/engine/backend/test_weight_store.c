/* SPDX-License-Identifier: MIT */
/* Segments of several processes: who packs, who finds, and what is left of those who are killed. */

#include "engine/backend/weight_store.h"
#include "tests/unit/child.h"
#include "tests/unit/run.h"
#include "tests/unit/engine/backend/weight_store_opening.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/system/shm.h"

#define SIZE ((size_t)5 << 20)

static const uint8_t other_digest[16] = "digest of file 2";

/* As a worker does: finds the segment or makes it. True: it was found. */
static bool get(struct weight_store *store, const uint8_t **ret_weights)
{
    void *memory;
    const uint8_t *known = weight_store_digest(store);
    weight_store_know(store, known ? known : digest);
    *ret_weights = weight_store_find(store, LAYOUT, SIZE);
    if (*ret_weights)
        return true;
    must(weight_store_make(store, LAYOUT, SIZE, NULL, NULL, &memory) == 0, "a segment can be made");
    for (size_t i = 0; i < SIZE; i += 4096) {
        memset((uint8_t *)memory + i, (int)(i / 4096 % 251), 4096);
        weight_store_progress(store);
    }
    must(weight_store_publish(store, NULL) == 0, "it can be published");
    *ret_weights = memory;
    return false;
}

static void check_weights(const uint8_t *weights)
{
    size_t n_wrong = 0;
    for (size_t i = 0; i < SIZE; i++)
        n_wrong += weights[i] != i / 4096 % 251;
    must(n_wrong == 0, "the weights are what was packed");
}

/* Another process that did its part and waits to be killed. */
struct other {
    pid_t pid;
    char said; /* what `part` returned */
};

static void end_with_parent(void)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
}

static struct other start(char (*part)(const struct weight_store_file *file),
                          const struct weight_store_file *file)
{
    struct other other;
    int pipe_fds[2];
    ck_assert_int_eq(pipe(pipe_fds), 0);
    other.pid = fork_child();
    if (other.pid == 0) {
        end_with_parent();
        char said = part(file);
        if (write(pipe_fds[1], &said, 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    close(pipe_fds[1]);
    ck_assert_int_eq(read(pipe_fds[0], &other.said, 1), 1);
    close(pipe_fds[0]);
    return other;
}

static void stop(const struct other *other)
{
    kill(other->pid, SIGKILL);
    waitpid(other->pid, NULL, 0);
}

static char pack(const struct weight_store_file *file)
{
    const uint8_t *weights;
    return get(open_store(file), &weights) ? 'f' : 'm';
}

static char begin_to_pack(const struct weight_store_file *file)
{
    void *memory;
    struct weight_store *store = open_store(file);
    weight_store_know(store, digest);
    must(weight_store_make(store, LAYOUT, SIZE, NULL, NULL, &memory) == 0, "a segment can be made");
    return 'b';
}

START_TEST(what_one_worker_packed_others_map_and_cannot_change)
{
    const struct weight_store_file file = file_of_test(true);
    struct other packer = start(pack, &file), reader = start(pack, &file);
    ck_assert_int_eq(packer.said, 'm');
    ck_assert_int_eq(reader.said, 'f');
    stop(&packer);
    struct weight_store *store = open_store(&file);
    const uint8_t *weights;
    ck_assert_mem_eq(weight_store_digest(store), digest, 16);
    ck_assert(get(store, &weights));
    ck_assert(weight_store_is_found(store));
    ck_assert_uint_ge(weight_store_bytes(store), SIZE);
    stop(&reader);
    check_weights(weights);
    ck_assert_int_eq(mprotect((void *)((uintptr_t)weights / 4096 * 4096), 4096, PROT_READ | PROT_WRITE), -1);
    weight_store_progress(store); /* of no effect */
    weight_store_free(store);

    /* With the last who had it open, it is gone. */
    store = open_store(&file);
    ck_assert_ptr_null(weight_store_digest(store));
    weight_store_know(store, digest);
    ck_assert_ptr_null(weight_store_find(store, LAYOUT, SIZE));
    weight_store_free(store);
}
END_TEST

START_TEST(who_packed_reads_on_from_the_same_address_and_writes_no_more)
{
    const struct weight_store_file file = file_of_test(true);
    struct weight_store *store = open_store(&file);
    const uint8_t *weights;
    ck_assert(!get(store, &weights));
    ck_assert(!weight_store_is_found(store));
    check_weights(weights);
    ck_assert_int_eq(mprotect((void *)weights, 4096, PROT_READ | PROT_WRITE), -1);
    weight_store_progress(store);
    ck_assert_int_eq(weight_store_publish(store, NULL), 0);
    weight_store_free(store);
}
END_TEST

START_TEST(other_models_layouts_and_packings_are_not_taken)
{
    const struct weight_store_file file = file_of_test(true);
    struct weight_store_file copy = file, repacked = file;
    struct other packer = start(pack, &file);
    copy.key[0] ^= 1; /* the same content elsewhere */
    repacked.packing++;
    const struct {
        const struct weight_store_file *file;
        const uint8_t *digest;
        uint64_t layout;
        size_t size;
        bool known, found;
    } cases[] = {
        {&file, digest, LAYOUT, SIZE, true, true},         {&copy, digest, LAYOUT, SIZE, false, true},
        {&copy, other_digest, LAYOUT, SIZE, false, false}, {&file, digest, LAYOUT + 1, SIZE, true, false},
        {&file, digest, LAYOUT, SIZE - 1, true, false},    {&file, digest, LAYOUT, SIZE_MAX - 1, true, false},
        {&repacked, digest, LAYOUT, SIZE, false, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct weight_store *store = open_store(cases[i].file);
        ck_assert_int_eq(weight_store_digest(store) != NULL, cases[i].known);
        weight_store_know(store, cases[i].digest);
        ck_assert_int_eq(weight_store_find(store, cases[i].layout, cases[i].size) != NULL, cases[i].found);
        weight_store_free(store);
    }
    stop(&packer);
}
END_TEST

START_TEST(of_a_file_that_is_new_the_digest_has_to_be_read)
{
    const struct weight_store_file file = file_of_test(false);
    struct other packer = start(pack, &file);
    struct weight_store *store = open_store(&file);
    ck_assert_ptr_null(weight_store_digest(store));
    weight_store_know(store, digest);
    ck_assert_ptr_nonnull(weight_store_find(store, LAYOUT, SIZE));
    weight_store_free(store);
    stop(&packer);
}
END_TEST

static char pack_another_layout(const struct weight_store_file *file)
{
    struct weight_store *store = open_store(file);
    void *memory;
    weight_store_know(store, digest);
    must(weight_store_make(store, LAYOUT + 1, SIZE, NULL, NULL, &memory) == 0, "a segment can be made");
    must(weight_store_publish(store, NULL) == 0, "it can be published");
    return 'm';
}

/* Whoever came when the file was new, and stays, must not hide it. */
START_TEST(a_later_segment_says_the_digest_that_the_first_could_not)
{
    const struct weight_store_file file = file_of_test(true);
    struct weight_store_file new = file;
    new.settled = false;
    struct other first = start(pack, &new), later = start(pack_another_layout, &file);
    struct weight_store *store = open_store(&file);
    const uint8_t *known = weight_store_digest(store);
    ck_assert_ptr_nonnull(known);
    ck_assert_mem_eq(known, digest, sizeof digest);
    weight_store_know(store, known);
    ck_assert_ptr_nonnull(weight_store_find(store, LAYOUT, SIZE));
    weight_store_free(store);
    stop(&later);
    stop(&first);
}
END_TEST

static pid_t to_kill;
static volatile sig_atomic_t killed;

static void kill_it(int signal)
{
    killed = 1;
    kill(to_kill, SIGKILL);
}

static void kill_soon(const struct other *other)
{
    to_kill = other->pid;
    killed = 0;
    signal(SIGALRM, kill_it);
    ck_assert_int_eq(setitimer(ITIMER_REAL, &(struct itimerval){.it_value.tv_usec = 200000}, NULL), 0);
}

START_TEST(when_a_worker_dies_while_it_packs_the_next_one_does)
{
    const struct weight_store_file file = file_of_test(true);
    struct other packer = start(begin_to_pack, &file);
    kill_soon(&packer);
    struct weight_store *store = open_store(&file);
    ck_assert(killed); /* it waited for him until then */
    const uint8_t *weights;
    ck_assert(!get(store, &weights));
    weight_store_free(store);
    stop(&packer);
}
END_TEST

static char look(const struct weight_store_file *file)
{
    struct weight_store *store;
    return weight_store_open(file, &store, NULL) == 0 ? 'l' : 'f';
}

static void *pack_after_a_while(void *store)
{
    const uint8_t *weights;
    usleep(200000);
    get(store, &weights);
    return NULL;
}

static void *give_up_after_a_while(void *store)
{
    void *memory;
    usleep(200000);
    must(weight_store_make(store, LAYOUT, SIZE_MAX / 2, NULL, NULL, &memory) < 0, "no such memory");
    return NULL;
}

static char begin(const struct weight_store_file *file, void *(*go_on)(void *store))
{
    pthread_t thread;
    return pthread_create(&thread, NULL, go_on, open_store(file)) == 0 ? 'b' : 'f';
}

static char begin_and_pack(const struct weight_store_file *file)
{
    return begin(file, pack_after_a_while);
}

static char begin_and_give_up(const struct weight_store_file *file)
{
    return begin(file, give_up_after_a_while);
}

/* Waiting comes after the look, when other processes may be out of sight. */
START_TEST(whoever_was_seen_is_waited_for_and_no_longer_than_there_is_hope)
{
    enum { BEFORE, WHILE, NEVER };
    static const struct {
        char (*part)(const struct weight_store_file *file);
        int dies;
        bool found;
    } cases[] = {{begin_to_pack, BEFORE, false},
                 {begin_to_pack, WHILE, false},
                 {begin_and_give_up, NEVER, false},
                 {begin_and_pack, NEVER, true}};
    const struct weight_store_file file = file_of_test(true);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct error err = {0};
        struct weight_store *store;
        const uint8_t *weights;
        killed = 0;
        struct other first = start(cases[i].part, &file);
        ck_assert_int_eq(weight_store_open(&file, &store, &err), 0);
        if (cases[i].dies == BEFORE)
            stop(&first);
        if (cases[i].dies == WHILE)
            kill_soon(&first);
        ck_assert_msg(weight_store_wait(store, NULL, NULL, &err) == 0, "%s", err.text);
        ck_assert_int_eq(killed, cases[i].dies == WHILE);
        ck_assert_int_eq(get(store, &weights), cases[i].found);
        check_weights(weights);
        weight_store_free(store);
        if (cases[i].dies != BEFORE)
            stop(&first);
    }
}
END_TEST

/* Who looked holds the segment open, and others see it with him. */
START_TEST(nobody_waits_for_what_a_dead_one_left_with_others)
{
    const struct weight_store_file file = file_of_test(true);
    struct other packer = start(begin_to_pack, &file), waiting = start(look, &file);
    ck_assert_int_eq(waiting.said, 'l');
    stop(&packer);
    kill_soon(&waiting);
    struct weight_store *store = open_store(&file);
    ck_assert(killed); /* for him */
    const uint8_t *weights;
    ck_assert(!get(store, &weights));
    weight_store_free(store);
    stop(&waiting);
}
END_TEST

START_TEST(of_many_at_the_same_instant_one_packs)
{
    enum { N = 8 };
    const struct weight_store_file file = file_of_test(true);
    int go[2], said[2];
    pid_t pids[N];
    ck_assert_int_eq(pipe(go), 0);
    ck_assert_int_eq(pipe(said), 0);
    for (int i = 0; i < N; i++) {
        pids[i] = fork_child();
        if (pids[i] == 0) {
            char c;
            end_with_parent();
            close(go[1]);
            if (read(go[0], &c, 1) != 0) /* until all begin */
                _exit(1);
            c = pack(&file);
            if (write(said[1], &c, 1) != 1)
                _exit(1);
            for (;;)
                pause();
        }
    }
    close(go[0]);
    close(go[1]);
    int n_made = 0;
    for (int i = 0; i < N; i++) {
        char c;
        ck_assert_int_eq(read(said[0], &c, 1), 1);
        n_made += c == 'm';
    }
    for (int i = 0; i < N; i++) {
        kill(pids[i], SIGKILL);
        waitpid(pids[i], NULL, 0);
    }
    ck_assert_int_eq(n_made, 1);
}
END_TEST

START_TEST(kills_at_any_moment_leave_nothing_and_stop_nobody)
{
    const struct weight_store_file file = file_of_test(true);
    uint32_t random = 12345;
    for (int round = 0; round < 60; round++) {
        pid_t pids[3];
        for (int i = 0; i < 3; i++) {
            pids[i] = fork_child();
            if (pids[i] == 0) {
                const uint8_t *weights;
                end_with_parent();
                struct weight_store *store = open_store(&file);
                get(store, &weights);
                check_weights(weights);
                weight_store_free(store);
                _exit(0);
            }
        }
        for (int i = 0; i < 3; i++) {
            int status;
            random = random * 1664525 + 1013904223;
            usleep(random >> 16 & 4095);
            kill(pids[i], SIGKILL);
            waitpid(pids[i], &status, 0);
            ck_assert(WIFSIGNALED(status) ? WTERMSIG(status) == SIGKILL : WEXITSTATUS(status) == 0);
        }
    }
    struct weight_store *store = open_store(&file);
    ck_assert_ptr_null(weight_store_digest(store));
    const uint8_t *weights;
    ck_assert(!get(store, &weights));
    check_weights(weights);
    weight_store_free(store);
}
END_TEST

/* Segments that nobody of ours would make. What is in a header is known to weight_store.c alone, so they are
 * made of a real one. */
static char make_strange_ones(const struct weight_store_file *file)
{
    static uint8_t header[4096];
    const uint8_t *weights;
    int fd;
    struct weight_store *store = open_store(file);
    get(store, &weights);
    memcpy(header, weights - sizeof header, sizeof header);
    weight_store_free(store);
    const size_t sizes[] = {1, 100, 4095, 4096, 4096 + SIZE - 1, 4096 + SIZE + 1};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        ck_assert_int_eq(shm_create("quern-weights", sizes[i], &fd), 0);
        size_t n = sizes[i] < sizeof header ? sizes[i] : sizeof header;
        ck_assert_int_eq(pwrite(fd, header, n, 0), (ssize_t)n);
        ck_assert_int_eq(shm_seal_content(fd), 0);
    }
    ck_assert_int_eq(shm_create("quern-weights", 4096 + SIZE, &fd), 0); /* all zeros, not sealed */
    ck_assert_int_eq(shm_create("quern-weights", 4096 + SIZE, &fd), 0); /* the right size, other bytes */
    memset(header, 0xff, sizeof header);
    ck_assert_int_eq(pwrite(fd, header, sizeof header, 0), sizeof header);
    ck_assert_int_eq(shm_seal_content(fd), 0);
    return 's';
}

START_TEST(strange_segments_are_passed_over)
{
    const struct weight_store_file file = file_of_test(true);
    struct other stranger = start(make_strange_ones, &file);
    struct weight_store *store = open_store(&file);
    ck_assert_ptr_null(weight_store_digest(store));
    const uint8_t *weights;
    ck_assert(!get(store, &weights));
    weight_store_free(store);
    stop(&stranger);
}
END_TEST

/* Of a machine whose memory is all alike. */
static void prefer_nothing(void *arg, uint32_t node)
{
}

START_TEST(segments_on_other_nodes_are_others)
{
    struct weight_store_file here = file_of_test(true), there;
    const uint8_t *weights;
    here.place = (struct weight_store_place){.nodes = 1, .prefer = prefer_nothing};
    there = here;
    there.place.nodes = 2;
    struct other first = start(pack, &here);
    ck_assert_int_eq(first.said, 'm');
    struct weight_store *store = open_store(&there);
    ck_assert(!get(store, &weights));
    weight_store_free(store);
    store = open_store(&here);
    ck_assert(get(store, &weights));
    check_weights(weights);
    weight_store_free(store);
    stop(&first);
}
END_TEST

static int count_descriptors(void)
{
    int n = 0;
    for (int fd = 0; fd < 256; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

/* Check writes to files of its own, so nothing is asserted meanwhile. */
static int with_file_limit(rlim_t bytes, const struct weight_store_file *file, struct error *ret_err)
{
    struct rlimit before, limit;
    struct weight_store *store = NULL;
    void *memory;
    getrlimit(RLIMIT_FSIZE, &before);
    limit = before;
    limit.rlim_cur = bytes;
    setrlimit(RLIMIT_FSIZE, &limit);
    int r = weight_store_open(file, &store, ret_err);
    if (r == 0) {
        weight_store_know(store, digest);
        r = weight_store_make(store, LAYOUT, SIZE, NULL, NULL, &memory);
        if (r < 0 && weight_store_publish(store, ret_err) != 0)
            r = 1;
    }
    weight_store_free(store);
    setrlimit(RLIMIT_FSIZE, &before);
    return r;
}

START_TEST(a_process_that_may_make_no_large_file_packs_elsewhere)
{
    const struct weight_store_file file = file_of_test(true);
    struct error err = {0};
    int before = count_descriptors();
    ck_assert_int_eq(with_file_limit(8192, &file, &err), -EFBIG);
    ck_assert_int_eq(with_file_limit(100, &file, &err), -EFBIG);
    ck_assert_ptr_nonnull(strstr(err.text, "weights cannot be shared"));
    ck_assert_int_eq(count_descriptors(), before);
}
END_TEST

START_TEST(what_is_not_used_is_let_go_of)
{
    const struct weight_store_file file = file_of_test(true);
    struct weight_store_file another = file;
    another.key[1] ^= 1;
    struct other packer = start(pack, &file);
    int before = count_descriptors();
    struct weight_store *store = open_store(&another);
    weight_store_know(store, other_digest);
    ck_assert_ptr_null(weight_store_find(store, LAYOUT, SIZE));
    ck_assert_int_eq(count_descriptors(), before + 1); /* its own, to pack into */
    weight_store_free(store);
    ck_assert_int_eq(count_descriptors(), before);
    weight_store_free(NULL);
    stop(&packer);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, what_one_worker_packed_others_map_and_cannot_change);
    tcase_add_test(tests, who_packed_reads_on_from_the_same_address_and_writes_no_more);
    tcase_add_test(tests, other_models_layouts_and_packings_are_not_taken);
    tcase_add_test(tests, of_a_file_that_is_new_the_digest_has_to_be_read);
    tcase_add_test(tests, a_later_segment_says_the_digest_that_the_first_could_not);
    tcase_add_test(tests, when_a_worker_dies_while_it_packs_the_next_one_does);
    tcase_add_test(tests, whoever_was_seen_is_waited_for_and_no_longer_than_there_is_hope);
    tcase_add_test(tests, nobody_waits_for_what_a_dead_one_left_with_others);
    tcase_add_test(tests, of_many_at_the_same_instant_one_packs);
    tcase_add_test(tests, kills_at_any_moment_leave_nothing_and_stop_nobody);
    tcase_add_test(tests, strange_segments_are_passed_over);
    tcase_add_test(tests, segments_on_other_nodes_are_others);
    tcase_add_test(tests, a_process_that_may_make_no_large_file_packs_elsewhere);
    tcase_add_test(tests, what_is_not_used_is_let_go_of);
}

int main(void)
{
    return run_tests("weight store", add);
}
