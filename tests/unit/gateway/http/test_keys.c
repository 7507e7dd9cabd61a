/* SPDX-License-Identifier: MIT */
/* The file of keys: what it may say, who is found, how much each may have. */

#include "gateway/http/keys.h"
#include "tests/unit/run.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ONE "0123456789abcdef"
#define TWO "0123456789abcdeg"

static struct keys keys;
static struct error err;

static int parse(const char *text)
{
    keys_deinit(&keys);
    err.text[0] = 0;
    return keys_parse(bytes_of_string(text), "file", &keys, &err);
}

START_TEST(a_key_is_found_and_nothing_else)
{
    ck_assert_int_eq(parse("# people\n\n  ada   " ONE "  requests=2 tokens=100\r\nbob\t" TWO), 0);
    ck_assert_uint_eq(keys.n, 2);
    struct key *ada = keys_find(&keys, bytes_of_string(ONE)), *bob = keys_find(&keys, bytes_of_string(TWO));
    ck_assert_str_eq(ada->name, "ada");
    ck_assert_uint_eq(ada->most_requests, 2);
    ck_assert_uint_eq(ada->most_tokens, 100);
    ck_assert_str_eq(bob->name, "bob");
    ck_assert_uint_eq(bob->most_requests, 0);
    static const char *const others[] = {"", "0", "0123456789abcde", ONE "0", ONE ONE, "ada"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        ck_assert_ptr_null(keys_find(&keys, bytes_of_string(others[i])));
    /* What stands behind a key of ours in memory is zeros: a text with them is another. */
    ck_assert_ptr_null(keys_find(&keys, (struct bytes){ONE "\0", 17}));
    static char large[1000];
    memset(large, 'a', sizeof large);
    ck_assert_ptr_null(keys_find(&keys, (struct bytes){large, sizeof large}));
}
END_TEST

START_TEST(a_line_that_makes_no_sense_is_named)
{
    static const char *const refused[][2] = {
        {"", "file: no keys"},
        {"# nothing\n", "file: no keys"},
        {"ada\n", "file:1: expected NAME KEY"},
        {"ada " ONE "\nbob short\n", "file:2: the key of bob has 5 bytes"},
        {"ada " ONE "\n\nbob " ONE "\n", "file:3: the key of bob is a duplicate"},
        {"ada " ONE " requests=0\n", "file:1: "},
        {"ada " ONE " requests=-1\n", "file:1: "},
        {"ada " ONE " tokens=many\n", "file:1: "},
        {"ada " ONE " group=\n", "file:1: the name of the group is empty"},
        {"ada " ONE " group=a group=b\n", "file:1: ada: more than one group"},
        {"ada " ONE " money=1\n", "file:1: \"money=1\": expected requests=N"},
        {"ada " ONE " rpm=0\n", "file:1: rpm: 0 is"},
        {"ada " ONE " tpm=-5\n", "file:1: tpm: "},
        {"ada " ONE " rpd=18446744073709551616\n", "file:1: rpd: "},
        {"ada " ONE " tpd=1000000000000001\n", "file:1: tpd: 1000000000000001 is"},
        {"ada " ONE " rpm=1 rpm=1\n", "file:1: rpm is given twice"},
        {"ada " ONE " priority=9\n", "file:1: priority: 9 is"},
        {"ada " ONE " priority=-1\n", "file:1: priority: "},
        {"ada " ONE " rpm=1\nada " TWO " rpm=2\n", "file:2: rpm, tpm, rpd and tpd of ada differ"},
        {"ada " ONE " rpm=1\nada " TWO "\n", "file:2: rpm, tpm, rpd and tpd of ada differ"},
        {"a-name-that-has-more-bytes-than-sixty-three-which-is-what-a-log-can-bear " ONE, "file:1: the name"},
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        ck_assert_int_eq(parse(refused[i][0]), -EINVAL);
        ck_assert_msg(strstr(err.text, refused[i][1]) == err.text, "%s", err.text);
        ck_assert_uint_eq(keys.n, 0);
    }
    ck_assert_int_eq(keys_parse((struct bytes){"ada\0 " ONE, 21}, "file", &keys, &err), -EINVAL);
}
END_TEST

START_TEST(limits_of_a_minute_and_a_day_go_to_the_pool)
{
    struct quern_request request = {0};
    ck_assert_int_eq(parse("ada " ONE " rpm=1 tpm=2 rpd=3 tpd=1000000000000000\nbob " TWO), 0);
    key_set_rates(&keys.list[0], &request);
    ck_assert_uint_eq(request.rpm, 1);
    ck_assert_uint_eq(request.tpm, 2);
    ck_assert_uint_eq(request.rpd, 3);
    ck_assert_uint_eq(request.tpd, 1000000000000000);
    key_set_rates(&keys.list[1], &request);
    ck_assert_uint_eq(request.rpm, 0);
    key_set_rates(NULL, &request);
}
END_TEST

START_TEST(a_key_has_no_priority_beyond_those_of_its_line)
{
    struct refusal refusal;
    ck_assert_int_eq(parse("ada " ONE " priority=2\nbob " TWO), 0);
    const struct {
        const struct key *key;
        bool open;
        int32_t least, most;
    } cases[] = {{&keys.list[0], false, -2, 2},
                 {&keys.list[1], false, 0, 0},
                 {&keys.list[0], true, -2, 2},
                 {NULL, false, -8, 8},
                 {NULL, true, -8, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int32_t priority = -8; priority <= 8; priority++) {
            const bool fits = priority >= cases[i].least && priority <= cases[i].most;
            ck_assert_int_eq(key_check_priority(cases[i].key, cases[i].open, priority, &refusal),
                             fits ? 0 : REFUSED);
            if (!fits)
                ck_assert(refusal.status == 403 && strcmp(refusal.param, "priority") == 0);
        }
    key_check_priority(&keys.list[0], false, 3, &refusal); /* as the client wrote it: lower goes first */
    ck_assert_str_eq(refusal.text, "priority -3 is not allowed: the least is -2 with this key");
    key_check_priority(&keys.list[0], false, -3, &refusal);
    ck_assert_str_eq(refusal.text, "priority 3 is not allowed: the most is 2 with this key");
}
END_TEST

START_TEST(a_key_has_no_more_at_once_than_it_may)
{
    struct refusal refusal;
    ck_assert_int_eq(parse("ada " ONE " requests=2 tokens=100"), 0);
    struct key *ada = &keys.list[0];
    ck_assert_int_eq(key_take(ada, 101, &refusal), REFUSED);
    ck_assert_uint_eq(refusal.status, 400);
    ck_assert_int_eq(key_take(ada, 60, &refusal), 0);
    ck_assert_int_eq(key_take(ada, 41, &refusal), REFUSED);
    ck_assert_uint_eq(refusal.status, 429);
    ck_assert_uint_gt(refusal.retry_after_s, 0);
    ck_assert_int_eq(key_take(ada, 40, &refusal), 0);
    ck_assert_int_eq(key_take(ada, 0, &refusal), REFUSED);
    ck_assert_uint_eq(refusal.status, 429);
    key_release(ada, 60);
    ck_assert_int_eq(key_take(ada, 60, &refusal), 0);
    key_release(ada, 60);
    key_release(ada, 40);
    ck_assert_uint_eq(ada->requests + ada->tokens, 0);
    ck_assert_int_eq(key_take(NULL, UINT64_MAX, &refusal), 0);
    key_release(NULL, UINT64_MAX);
    keys_deinit(&keys);
}
END_TEST

START_TEST(what_other_gateways_have_counts)
{
    struct refusal refusal;
    ck_assert_int_eq(parse("ada " ONE " requests=3 tokens=100"), 0);
    struct key *ada = &keys.list[0];
    ck_assert_int_eq(key_take(ada, 10, &refusal), 0);
    ada->elsewhere.requests = 2;
    ada->elsewhere.tokens = 50;
    ck_assert_int_eq(key_take(ada, 10, &refusal), REFUSED);
    ck_assert_str_eq(refusal.text, "this key already has 3 requests in progress, counting all gateways");
    ada->elsewhere.requests = 1;
    ck_assert_int_eq(key_take(ada, 41, &refusal), REFUSED);
    ck_assert_uint_eq(refusal.status, 429);
    ck_assert_int_eq(key_take(ada, 40, &refusal), 0);
    ada->elsewhere.tokens = UINT64_MAX / 2; /* more than it may have in all */
    ada->elsewhere.requests = 0;
    ck_assert_int_eq(key_take(ada, 0, &refusal), REFUSED);
}
END_TEST

START_TEST(room_that_several_gateways_want_is_shared)
{
    struct refusal refusal;
    ck_assert_int_eq(parse("ada " ONE " requests=8 tokens=800"), 0);
    struct key *ada = &keys.list[0];
    ada->elsewhere.gateways = 2;
    key_share_room(ada);
    for (int i = 0; i < 3; i++) /* a third, rounded up */
        ck_assert_int_eq(key_take(ada, 10, &refusal), 0);
    ck_assert_int_eq(key_take(ada, 10, &refusal), REFUSED);
    ck_assert_uint_eq(refusal.status, 429);
    ck_assert_ptr_nonnull(strstr(refusal.text, "for the moment"));
    key_release(ada, 10); /* one's own place may be taken again */
    ck_assert_int_eq(key_take(ada, 10, &refusal), 0);
    ck_assert_int_eq(key_take(ada, 10, &refusal), REFUSED);
    ada->elsewhere.requests = 4; /* one is left */
    key_share_room(ada);
    ck_assert_int_eq(key_take(ada, 0, &refusal), 0);
    ck_assert_int_eq(key_take(ada, 0, &refusal), REFUSED);
    ada->elsewhere = (struct elsewhere){0};
    key_share_room(ada);
    ck_assert_int_eq(key_take(ada, 200, &refusal), 0);
    ada->elsewhere.gateways = 1;
    key_share_room(ada); /* 570 tokens are left: 285 */
    ck_assert_int_eq(key_take(ada, 200, &refusal), 0);
    ck_assert_int_eq(key_take(ada, 86, &refusal), REFUSED);
    ck_assert_int_eq(key_take(ada, 85, &refusal), 0);
    key_share_room(ada);
    ck_assert_int_eq(key_take(ada, 285, &refusal), 0); /* one in any case */
}
END_TEST

START_TEST(keys_of_a_name_have_ids_of_their_own_and_share_its_limits)
{
    struct refusal refusal;
    ck_assert_int_eq(parse("ada " ONE " rpm=2\nada " TWO " rpm=2\nbob 0123456789abcdeh"), 0);
    ck_assert_int_ne(memcmp(keys.list[0].id, keys.list[1].id, sizeof keys.list[0].id), 0);
    ck_assert(!keys.list[0].is_another && keys.list[1].is_another && !keys.list[2].is_another);
    ck_assert_ptr_null(keys.list[0].use);
    ck_assert_int_eq(keys_count_use(&keys), 0);
    ck_assert_ptr_null(keys.list[2].use);
    ck_assert_int_eq(key_take(&keys.list[0], 0, &refusal), 0);
    ck_assert_int_eq(key_take(&keys.list[1], 0, &refusal), 0);
    ck_assert_int_eq(key_take(&keys.list[0], 0, &refusal), REFUSED);
    ck_assert_uint_eq(keys.list[0].requests, 1);
    key_not_used(&keys.list[1]);
    ck_assert_int_eq(key_take(&keys.list[0], 0, &refusal), 0);
    ck_assert_int_eq(key_take(&keys.list[2], 0, &refusal), 0);
}
END_TEST

START_TEST(keys_of_one_name_are_one_tenant_at_every_gateway)
{
    char tenant[sizeof keys.list[0].tenant];
    ck_assert_int_eq(parse("ada " ONE "\nbob " TWO "\nada 0123456789abcdeh\n"), 0);
    ck_assert_uint_eq(strspn(key_tenant(&keys.list[0]), "0123456789abcdef"), 32);
    ck_assert_str_eq(key_tenant(&keys.list[0]), key_tenant(&keys.list[2]));
    ck_assert_str_ne(key_tenant(&keys.list[0]), key_tenant(&keys.list[1]));
    strcpy(tenant, key_tenant(&keys.list[1]));
    ck_assert_int_eq(parse("bob " ONE), 0); /* in another file, with another key */
    ck_assert_str_eq(key_tenant(&keys.list[0]), tenant);
    ck_assert_ptr_null(key_tenant(NULL));
}
END_TEST

static const char *salt_of(size_t i, bool shared, const char *salt)
{
    static char texts[8][KEYS_SPACE_BYTES + KEYS_SALT_MOST + 1];
    static unsigned n;
    return key_salt(&keys.list[i], shared, salt, texts[n++ % 8]);
}

START_TEST(names_have_salts_of_their_own_and_groups_have_one)
{
    ck_assert_int_eq(parse("ada " ONE "\nbob " TWO "\nada 0123456789abcdeh\n"
                           "cy 0123456789abcdei group=ada requests=1\ndi 0123456789abcdej group=ada\n"),
                     0);
    ck_assert_str_eq(salt_of(0, false, NULL), salt_of(2, false, NULL));
    ck_assert_str_ne(salt_of(0, false, NULL), salt_of(1, false, NULL));
    ck_assert_str_ne(salt_of(0, false, NULL), salt_of(3, false, NULL)); /* a group is no name */
    ck_assert_str_eq(salt_of(3, false, NULL), salt_of(4, false, NULL));
    ck_assert_str_eq(salt_of(3, false, "x"), salt_of(4, false, "x"));
    ck_assert_str_ne(salt_of(3, false, "x"), salt_of(4, false, NULL));
    ck_assert_str_eq(salt_of(0, true, NULL), salt_of(1, true, NULL));
    ck_assert_str_ne(salt_of(0, true, NULL), salt_of(1, true, "x"));
    char longest[KEYS_SALT_MOST + 1], text[KEYS_SPACE_BYTES + KEYS_SALT_MOST + 1];
    memset(longest, 's', KEYS_SALT_MOST);
    longest[KEYS_SALT_MOST] = 0;
    ck_assert_uint_eq(strlen(salt_of(0, false, longest)), KEYS_SPACE_BYTES + KEYS_SALT_MOST);
    ck_assert_ptr_eq(key_salt(NULL, false, longest, text), longest);
    ck_assert_ptr_null(key_salt(NULL, true, NULL, text));
}
END_TEST

START_TEST(a_key_with_many_questions_leaves_room_for_those_of_others)
{
    struct refusal refusal;
    size_t n = 0;
    ck_assert_int_eq(parse("ada " ONE "\nbob " TWO), 0);
    struct key *ada = &keys.list[0], *bob = &keys.list[1];
    while (keys_ask(&keys, ada, 10, &refusal) == 0)
        n++;
    ck_assert_uint_eq(n, KEYS_MOST_ASKED / 2);
    ck_assert_int_eq(refusal.status, 429);
    ck_assert_str_eq(refusal.text, "this key already has 64 questions, of 640 bytes, waiting for an answer");
    ck_assert_uint_eq(refusal.retry_after_s, 1);
    ck_assert_int_eq(keys_ask(&keys, bob, 3 << 20, &refusal), 0); /* one may be as large as it is */
    ck_assert_int_eq(keys_ask(&keys, bob, 3 << 20, &refusal), 0);
    ck_assert_int_eq(keys_ask(&keys, bob, 3 << 20, &refusal), REFUSED);
    ck_assert_int_eq(keys_ask(&keys, NULL, SIZE_MAX, &refusal), 0);
    keys_answered(&keys, NULL, SIZE_MAX);
    for (size_t i = 0; i < n; i++)
        keys_answered(&keys, ada, 10);
    for (size_t i = 0; i < 2; i++)
        keys_answered(&keys, bob, 3 << 20);
    ck_assert_uint_eq(keys.asked.n + keys.asked.bytes + ada->asked.n + bob->asked.bytes, 0);
    keys_deinit(&keys);
}
END_TEST

START_TEST(a_file_that_everybody_can_read_is_refused)
{
    char path[] = "/tmp/quern-keys-XXXXXX";
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, "ada " ONE "\n", 21), 21);
    ck_assert_int_eq(keys_read(path, &keys, &err), 0);
    ck_assert_uint_eq(keys.n, 1);
    keys_deinit(&keys);
    fchmod(fd, 0644);
    ck_assert_int_eq(keys_read(path, &keys, &err), -EPERM);
    ck_assert_ptr_nonnull(strstr(err.text, path));
    close(fd);
    unlink(path);
    ck_assert_int_eq(keys_read(path, &keys, &err), -ENOENT);
    ck_assert_int_eq(keys_read("/tmp", &keys, &err), -EINVAL);
    ck_assert_int_eq(mkfifo(path, 0600), 0); /* nobody writes into it, and nobody waits for that */
    ck_assert_int_eq(keys_read(path, &keys, &err), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, path));
    unlink(path);
}
END_TEST

/* Memory that the code under test gives back (--wrap). */
void __real_free(void *memory);
void __wrap_free(void *memory);
void *__wrap_reallocarray(void *memory, size_t n, size_t size);

static const char *sought; /* NULL: nothing is */
static unsigned n_left;

void __wrap_free(void *memory)
{
    n_left += memory && sought && memmem(memory, malloc_usable_size(memory), sought, strlen(sought)) != NULL;
    __real_free(memory);
}

/* One that always moves. */
void *__wrap_reallocarray(void *memory, size_t n, size_t size)
{
    void *copy = calloc(n, size);
    if (copy && memory)
        memcpy(copy, memory, malloc_usable_size(memory) < n * size ? malloc_usable_size(memory) : n * size);
    __wrap_free(memory);
    return copy;
}

START_TEST(no_memory_is_given_back_with_a_key_in_it)
{
    ck_assert_int_eq(parse(""), -EINVAL);
    sought = "0123456789abcde";
    char *witness = strdup(ONE);
    __wrap_free(witness);
    ck_assert_uint_eq(n_left, 1);
    ck_assert_int_eq(parse("ada " ONE "\nbob " TWO "\neve 0123456789abcdeh\n"), 0);
    ck_assert_int_eq(parse("ada " ONE "\nbob " TWO " money=1\n"), -EINVAL);
    sought = NULL;
    ck_assert_uint_eq(n_left, 1);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, a_key_is_found_and_nothing_else);
    tcase_add_test(tests, a_line_that_makes_no_sense_is_named);
    tcase_add_test(tests, limits_of_a_minute_and_a_day_go_to_the_pool);
    tcase_add_test(tests, a_key_has_no_priority_beyond_those_of_its_line);
    tcase_add_test(tests, a_key_has_no_more_at_once_than_it_may);
    tcase_add_test(tests, names_have_salts_of_their_own_and_groups_have_one);
    tcase_add_test(tests, what_other_gateways_have_counts);
    tcase_add_test(tests, room_that_several_gateways_want_is_shared);
    tcase_add_test(tests, keys_of_a_name_have_ids_of_their_own_and_share_its_limits);
    tcase_add_test(tests, keys_of_one_name_are_one_tenant_at_every_gateway);
    tcase_add_test(tests, a_key_with_many_questions_leaves_room_for_those_of_others);
    tcase_add_test(tests, a_file_that_everybody_can_read_is_refused);
    tcase_add_test(tests, no_memory_is_given_back_with_a_key_in_it);
}

int main(void)
{
    return run_tests("gateway keys", add);
}
