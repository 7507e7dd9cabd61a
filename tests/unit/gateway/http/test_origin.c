/* SPDX-License-Identifier: MIT */
/* Which names are a gateway's, and which pages are its own. What browsers send, tests/integration/gateway/
 * test_origins.py sends to a real one. */

#include "gateway/http/origin.h"
#include "tests/unit/run.h"

#include <string.h>

static const struct origin_rules loopback = {.listen = "127.0.0.1:8080", .machine = "box", .loopback = true};
static const struct origin_rules everywhere = {.listen = "gpu.example:8080", .machine = "box.corp.example"};

static const char *refused(const struct origin_rules *rules, const char *host, const char *origin)
{
    static struct refusal refusal;
    const struct origin_claim claim = {.method = "POST", .host = host, .origin = origin};
    refusal = (struct refusal){0};
    if (origin_check(rules, &claim, &refusal) == 0)
        return "";
    ck_assert(refusal.status == 403 || refusal.status == 400);
    ck_assert(refusal.text[0]);
    return refusal.param;
}

START_TEST(authorities_are_taken_apart)
{
    static const struct {
        const char *text, *host;
        int port;
        bool literal, loopback;
    } good[] = {
        {"a", "a", -1, false, false},
        {"a.B-c_d.:80", "a.B-c_d", 80, false, false},
        {"a:", "a", -1, false, false},
        {"localhost:65535", "localhost", 65535, false, true},
        {"x.LocalHost", "x.LocalHost", -1, false, true},
        {"127.255.0.1", "127.255.0.1", -1, true, true},
        {"128.0.0.1", "128.0.0.1", -1, true, false},
        {"[::1]:1", "::1", 1, true, true},
        {"[fe80::1]", "fe80::1", -1, true, false},
        {"[::ffff:127.0.0.1]", "::ffff:127.0.0.1", -1, true, true},
        {"127.1", "127.1", -1, false, false},
    };
    static const char *const wrong[] = {
        "",    ":80", "[]",   "[::1",    "[::1]x",        "[localhost]",    "[1.2.3.4]", "a b",
        "a/b", "a@b", "a:b",  "a:65536", "a:99999999999", "a:1:2",          "::1",       "a,b",
        "a?",  "a#",  "a\\b", "a%41",    "[::1]:x",       "[fe80::1%25lo]", "\xc3\xbc"};
    struct origin_authority authority;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        ck_assert_msg(origin_parse(bytes_of_string(good[i].text), &authority), "%s", good[i].text);
        ck_assert_msg(bytes_equal(authority.host, bytes_of_string(good[i].host)), "%s", good[i].text);
        ck_assert_int_eq(authority.port, good[i].port);
        ck_assert_msg(authority.literal == good[i].literal, "%s", good[i].text);
        ck_assert_msg(authority.loopback == good[i].loopback, "%s", good[i].text);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        ck_assert_msg(!origin_parse(bytes_of_string(wrong[i]), &authority), "%s", wrong[i]);
}
END_TEST

START_TEST(on_loopback_only_names_of_loopback_and_those_that_were_given_are_its_own)
{
    struct origin_rules rules = loopback;
    static const char *const foreign[] = {"evil.example", "box",  "a.local",    "10.0.0.1",
                                          "0.0.0.0",      "[::]", "localhost.x"};
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
        ck_assert_str_eq(refused(&rules, foreign[i], NULL), "Host");
    ck_assert_str_eq(refused(&rules, "localhost:1", NULL), "");
    ck_assert_str_eq(refused(&rules, NULL, NULL), "");
    rules.hosts = "a.example,evil.example:99";
    ck_assert_str_eq(refused(&rules, "evil.example", NULL), "");
    ck_assert_str_eq(refused(&rules, "A.example:8080", NULL), "");
    ck_assert_str_eq(refused(&rules, "example", NULL), "Host");
    rules.listen = "chat.lan:80";
    ck_assert_str_eq(refused(&rules, "chat.lan", NULL), "");
}
END_TEST

START_TEST(elsewhere_names_of_the_public_dns_are_foreign)
{
    static const char *const own[] = {"gpu.example",   "GPU.example.:1", "box.corp.example", "quern",
                                      "10.0.0.1:8080", "[2001:db8::1]",  "a.local",          "a.internal",
                                      "a.home.arpa",   "local"};
    static const char *const foreign[] = {"evil.example",   "x.gpu.example", "corp.example",
                                          "alocal.example", "xlocal.x",      "home.arpa.example",
                                          "arpa.x"};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        ck_assert_msg(strcmp(refused(&everywhere, own[i], NULL), "") == 0, "%s", own[i]);
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
        ck_assert_msg(strcmp(refused(&everywhere, foreign[i], NULL), "Host") == 0, "%s", foreign[i]);
}
END_TEST

START_TEST(a_page_is_its_own_by_host_and_port)
{
    static const struct {
        const char *host, *origin;
        bool own;
    } cases[] = {{"localhost:8080", "http://localhost:8080", true},
                 {"localhost:8080", "HTTP://LOCALHOST:8080 ", true},
                 {"localhost", "http://localhost", true},
                 {"localhost", "https://localhost", true},
                 {"localhost:443", "https://localhost", true},
                 {"localhost:80", "http://localhost:80", true},
                 {"localhost:80", "https://localhost", false},
                 {"localhost", "http://localhost:8080", false},
                 {"localhost:8080", "http://localhost", false},
                 {"localhost:8080", "http://127.0.0.1:8080", false},
                 {"[::1]:8080", "http://[::1]:8080", true},
                 {"localhost:8080", "null", false},
                 {"localhost:8080", "", false},
                 {"localhost:8080", "ftp://localhost:8080", false},
                 {"localhost:8080", "http://localhost:8080/", false},
                 {"localhost:8080", "localhost:8080", false},
                 {"localhost:8080", "http://", false},
                 {NULL, "http://localhost", false},
                 {"localhost:8080", "http://x@localhost:8080", false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ck_assert_msg(
            strcmp(refused(&loopback, cases[i].host, cases[i].origin), cases[i].own ? "" : "Origin") == 0,
            "%s", cases[i].origin);
}
END_TEST

START_TEST(what_cors_and_hosts_name_is_let_in)
{
    struct origin_rules rules = loopback;
    rules.cors = "https://a.example";
    ck_assert_str_eq(refused(&rules, "localhost", "https://a.example"), "");
    ck_assert_str_eq(refused(&rules, "localhost", "https://b.example"), "Origin");
    ck_assert_str_eq(refused(&rules, "a.example", "https://a.example"), "Host");
    rules.hosts = "b.example,c.example:8443";
    ck_assert_str_eq(refused(&rules, "localhost", "https://b.example"), "");
    ck_assert_str_eq(refused(&rules, "localhost", "http://b.example:80"), "");
    ck_assert_str_eq(refused(&rules, "localhost", "http://b.example:8080"), "Origin");
    ck_assert_str_eq(refused(&rules, "localhost", "https://c.example:8443"), "");
    ck_assert_str_eq(refused(&rules, "localhost", "https://c.example"), "Origin");
    rules.cors = "*";
    ck_assert_str_eq(refused(&rules, "localhost", "null"), "");
    rules.hosts = "*";
    ck_assert_str_eq(refused(&rules, "evil.example", NULL), "");
    ck_assert_str_eq(refused(&rules, "evil example", NULL), "Host");
}
END_TEST

START_TEST(other_sites_may_link_here_and_no_more)
{
    static const struct {
        const char *method, *site, *mode, *dest;
        bool good;
    } cases[] = {{"GET", "cross-site", NULL, NULL, false},
                 {"GET", "same-site", "cors", "empty", false},
                 {"GET", "cross-site", "navigate", "document", true},
                 {"HEAD", "cross-site", "navigate", "document", true},
                 {"POST", "cross-site", "navigate", "document", false},
                 {"GET", "cross-site", "navigate", "iframe", false},
                 {"GET", "cross-site", "no-cors", "document", false},
                 {"GET", "same-origin", "cors", "empty", true},
                 {"POST", "same-origin", "cors", "empty", true},
                 {"GET", "none", "navigate", "document", true},
                 {"GET", "something new", NULL, NULL, true}};
    struct origin_rules rules = loopback;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct refusal refusal = {0};
        const struct origin_claim claim = {.method = cases[i].method,
                                           .host = "localhost",
                                           .fetch_site = cases[i].site,
                                           .fetch_mode = cases[i].mode,
                                           .fetch_dest = cases[i].dest};
        rules.cors = NULL;
        ck_assert_int_eq(origin_check(&rules, &claim, &refusal) == 0, cases[i].good);
        rules.cors = "*";
        ck_assert_int_eq(origin_check(&rules, &claim, &refusal), 0);
    }
}
END_TEST

START_TEST(a_list_of_hosts_has_names)
{
    static const char *const good[] = {"*", "a", "a,b:80,[::1]:1", "a.example."};
    static const char *const wrong[] = {"",     ",",   "a,",        ",a",  "a,,b", "a b",
                                        "a, b", "*,a", "https://a", "a/b", "a:x"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        ck_assert_msg(origin_hosts_are_valid(good[i]), "%s", good[i]);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        ck_assert_msg(!origin_hosts_are_valid(wrong[i]), "%s", wrong[i]);
}
END_TEST

START_TEST(pages_that_are_let_in_are_an_origin)
{
    static const char *const good[] = {"*", "null", "https://a.example", "http://[::1]:8080",
                                       "tauri://localhost"};
    static const char *const wrong[] = {"",
                                        "a.example",
                                        "https://",
                                        "://a.example",
                                        "https://a.example/",
                                        "https://a.example:x",
                                        "https://a.example, https://b.example"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        ck_assert_msg(origin_cors_is_valid(good[i]), "%s", good[i]);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        ck_assert_msg(!origin_cors_is_valid(wrong[i]), "%s", wrong[i]);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, authorities_are_taken_apart);
    tcase_add_test(tests, on_loopback_only_names_of_loopback_and_those_that_were_given_are_its_own);
    tcase_add_test(tests, elsewhere_names_of_the_public_dns_are_foreign);
    tcase_add_test(tests, a_page_is_its_own_by_host_and_port);
    tcase_add_test(tests, what_cors_and_hosts_name_is_let_in);
    tcase_add_test(tests, other_sites_may_link_here_and_no_more);
    tcase_add_test(tests, a_list_of_hosts_has_names);
    tcase_add_test(tests, pages_that_are_let_in_are_an_origin);
}

int main(void)
{
    return run_tests("gateway/origin", add);
}
