/* SPDX-License-Identifier: MIT */
/* The members that a name has, answer by answer. */

#include "gateway/fleet/dns.h"
#include "tests/unit/run.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define KEY "0123456789012345678901234567890123456789"

static struct dns dns;
static struct error err;

static void set_up(void)
{
    ck_assert_msg(dns_init(&dns, "dns:pools.quern.svc:7700", KEY, &err) == 0, "%s", err.text);
}

static void tear_down(void)
{
    dns_deinit(&dns);
}

/* An answer with these addresses, parted by blanks; "": none at all. */
static bool answer(const char *addresses)
{
    struct sockaddr_in6 v6[8] = {0};
    struct sockaddr_in v4[8] = {0};
    struct addrinfo list[8] = {0};
    char text[256];
    size_t n = 0;
    snprintf(text, sizeof text, "%s", addresses);
    for (char *one = strtok(text, " "); one; one = strtok(NULL, " "), n++) {
        const bool is_v6 = strchr(one, ':');
        v4[n].sin_family = AF_INET;
        v6[n].sin6_family = AF_INET6;
        ck_assert_int_eq(
            inet_pton(is_v6 ? AF_INET6 : AF_INET, one, is_v6 ? (void *)&v6[n].sin6_addr : &v4[n].sin_addr),
            1);
        list[n].ai_addr = is_v6 ? (struct sockaddr *)&v6[n] : (struct sockaddr *)&v4[n];
        if (n > 0)
            list[n - 1].ai_next = &list[n];
    }
    return dns_take(&dns, n > 0 ? list : NULL, "Name or service not known");
}

/* The names of the members that count, each with a blank behind it. */
static const char *names(void)
{
    static char text[256];
    struct member *members;
    size_t n;
    text[0] = 0;
    ck_assert_int_eq(dns_members(&dns, &members, &n), 0);
    for (size_t i = 0; i < n; i++) {
        strcat(text, members[i].name);
        strcat(text, " ");
    }
    free(members);
    return text;
}

START_TEST(each_address_is_a_member_at_the_port_with_the_key)
{
    struct member *members;
    size_t n;
    ck_assert(answer("10.1.0.9 10.1.0.2 fd00::7 10.1.0.9 fe80::1"));
    ck_assert_str_eq(names(), "10.1.0.2 10.1.0.9 fd00--7 ");
    ck_assert_int_eq(dns_members(&dns, &members, &n), 0);
    ck_assert_str_eq(members[0].file.connect, "tcp://10.1.0.2:7700");
    ck_assert_str_eq(members[2].file.connect, "tcp://[fd00::7]:7700");
    ck_assert_str_eq(members[1].file.server_key, KEY);
    free(members);
}
END_TEST

START_TEST(what_changed_counts_when_two_answers_say_the_same)
{
    answer("10.1.0.1 10.1.0.2");
    ck_assert_str_eq(names(), "10.1.0.1 10.1.0.2 ");
    answer("10.1.0.2"); /* a part of the answer was lost */
    ck_assert_str_eq(names(), "10.1.0.1 10.1.0.2 ");
    answer("10.1.0.1 10.1.0.2");
    answer("10.1.0.2 10.1.0.3");
    answer("10.1.0.3 10.1.0.2"); /* in any order */
    ck_assert_str_eq(names(), "10.1.0.2 10.1.0.3 ");
}
END_TEST

START_TEST(no_answer_and_no_address_change_nothing)
{
    ck_assert(!answer(""));
    ck_assert_str_eq(names(), "");
    answer("10.1.0.1");
    for (int i = 0; i < 5; i++) {
        ck_assert(!answer(""));
        ck_assert(!answer("fe80::1"));
    }
    ck_assert_str_eq(names(), "10.1.0.1 ");
}
END_TEST

START_TEST(a_name_is_resolved_by_the_system)
{
    dns_deinit(&dns);
    ck_assert_int_eq(dns_init(&dns, "dns:127.0.0.1:7700", KEY, &err), 0);
    ck_assert(dns_look(&dns));
    ck_assert_str_eq(names(), "127.0.0.1 ");
}
END_TEST

START_TEST(what_is_no_place_is_refused)
{
    static const char *const wrong[] = {
        "dns:",        "dns:pools",    "dns::7700",     "dns:pools:",     "dns:pools:0", "dns:pools:65535",
        "dns:pools:x", "dns:pools:-1", "dns:pools:77 ", "dns:pools:+7700"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        ck_assert_msg(dns_init(&dns, wrong[i], KEY, &err) == -EINVAL, "%s", wrong[i]);
        ck_assert_msg(strstr(err.text, "is not dns:NAME:PORT"), "%s", err.text);
    }
    ck_assert_int_eq(dns_init(&dns, "dns:pools:7700", NULL, &err), -EINVAL);
    ck_assert_str_eq(err.text, "--fleet dns:… requires --server-key, the key that all pools share");
    ck_assert_int_eq(dns_init(&dns, "dns:pools:7700", "/nowhere", &err), -ENOENT);
    ck_assert(dns_is_place("dns:x") && !dns_is_place("dns") && !dns_is_place("./dns:x"));
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, each_address_is_a_member_at_the_port_with_the_key);
    tcase_add_test(tests, what_changed_counts_when_two_answers_say_the_same);
    tcase_add_test(tests, no_answer_and_no_address_change_nothing);
    tcase_add_test(tests, a_name_is_resolved_by_the_system);
    tcase_add_test(tests, what_is_no_place_is_refused);
}

int main(void)
{
    return run_tests("gateway/fleet/dns", add);
}
