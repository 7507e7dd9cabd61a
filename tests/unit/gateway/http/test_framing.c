/* SPDX-License-Identifier: MIT */
/* Heads as libmicrohttpd 0.9 lays them out, made here, and what is not laid out so. */

#include "gateway/http/framing.h"
#include "tests/unit/run.h"

#include <stdio.h>
#include <string.h>

/* A head with spaces, colons and line ends overwritten by zeros; its fields as offsets into it. */
struct laid_out {
    char bytes[1024];
    size_t len, target, version, n;
    struct {
        size_t name, name_len, value, value_len;
    } fields[16];
};

static void put(struct laid_out *head, const char *text, size_t zeros)
{
    size_t len = strlen(text);
    memcpy(head->bytes + head->len, text, len);
    memset(head->bytes + head->len + len, 0, zeros);
    head->len += len + zeros;
}

static void begin(struct laid_out *head, const char *method, const char *version)
{
    *head = (struct laid_out){0};
    put(head, method, 1);
    head->target = head->len;
    put(head, "/path", 1);
    head->version = head->len;
    put(head, version, 2);
}

static void field(struct laid_out *head, const char *name, const char *space, const char *value)
{
    size_t i = head->n++;
    head->fields[i].name = head->len;
    head->fields[i].name_len = strlen(name);
    put(head, name, 1);
    put(head, space, 0);
    head->fields[i].value = head->len;
    head->fields[i].value_len = strlen(value);
    put(head, value, 2);
}

/* `looked_at`: the bytes are, too. */
static int judge(const struct laid_out *head, bool looked_at, struct refusal *ret_refusal)
{
    struct framing framing;
    const struct framing_line line = {head->bytes, head->bytes + head->target, head->bytes + head->version,
                                      strlen("/path")};
    *ret_refusal = (struct refusal){0};
    int r = framing_begin(&framing, &line, looked_at ? head->len : 0, ret_refusal);
    for (size_t i = 0; r == 0 && i < head->n; i++)
        r = framing_field(
            &framing, (struct bytes){head->bytes + head->fields[i].name, head->fields[i].name_len},
            (struct bytes){head->bytes + head->fields[i].value, head->fields[i].value_len}, ret_refusal);
    return r == 0 ? framing_end(&framing, ret_refusal) : r;
}

static void assert_refused(const struct laid_out *head, bool looked_at, const char *param)
{
    struct refusal refusal;
    ck_assert_int_eq(judge(head, looked_at, &refusal), REFUSED);
    ck_assert_int_eq(refusal.status, 400);
    ck_assert_str_eq(refusal.code, "malformed_request");
    ck_assert_str_eq(refusal.param, param);
    ck_assert(refusal.text[0]);
}

static void assert_good(struct laid_out *head)
{
    struct refusal refusal;
    put(head, "", 2);
    ck_assert_msg(judge(head, true, &refusal) == 0, "%s", refusal.text);
    ck_assert_msg(judge(head, false, &refusal) == 0, "%s", refusal.text);
}

START_TEST(heads_with_one_end_are_taken)
{
    struct laid_out head;
    begin(&head, "GET", "HTTP/1.1");
    field(&head, "Host", " ", "localhost");
    assert_good(&head);
    begin(&head, "POST", "HTTP/1.1");
    field(&head, "hOST", "", "localhost");
    field(&head, "Empty", "", "");
    field(&head, "Spaces", " \t ", "");
    field(&head, "X-!#$%&'*+.^_`|~9", " ", "a:\tb \xc3\xbc \"");
    field(&head, "content-length", "\t", "007");
    assert_good(&head);
    begin(&head, "POST", "HTTP/1.1");
    field(&head, "Transfer-Encoding", " ", "Chunked");
    field(&head, "Host", " ", "localhost");
    assert_good(&head);
    begin(&head, "GET", "HTTP/1.0");
    assert_good(&head);
}
END_TEST

/* What is between two fields, or behind the last, must be one line's end. */
START_TEST(bytes_that_no_field_accounts_for_are_refused)
{
    struct refusal refusal;
    for (int which = 0; which < 5; which++) {
        struct laid_out head;
        begin(&head, "GET", "HTTP/1.1");
        if (which == 0)
            put(&head, "hidden", 2);
        field(&head, "Host", " ", "localhost");
        if (which == 1)
            put(&head, " folded", 2); /* the value does not have it, nor that line a name */
        if (which == 2)
            put(&head, "", 1); /* a zero in the value, or one that ends it */
        field(&head, "X", " ", "y");
        if (which == 3)
            head.len--; /* LF alone */
        if (which == 4)
            put(&head, "", 2); /* a line that begins with a zero looks like the last one */
        put(&head, "", 2);
        ck_assert_int_eq(judge(&head, true, &refusal), REFUSED);
        ck_assert_int_eq(judge(&head, false, &refusal), 0);
    }
}
END_TEST

START_TEST(a_field_that_lies_elsewhere_is_refused)
{
    struct laid_out head;
    struct refusal refusal;
    begin(&head, "GET", "HTTP/1.1");
    field(&head, "Host", " ", "localhost");
    field(&head, "X", " ", "y");
    put(&head, "", 2);
    for (size_t i = 0; i < 2; i++) {
        struct laid_out moved = head;
        moved.fields[i].value++;
        ck_assert_int_eq(judge(&moved, true, &refusal), REFUSED);
        moved = head;
        moved.fields[i].name = 1000;
        moved.bytes[1000] = 'X';
        ck_assert_int_eq(judge(&moved, true, &refusal), REFUSED);
    }
    /* However long it is said to be, nothing behind it is looked at. */
    for (size_t len = 1; len < head.len; len++) {
        struct laid_out cut = head;
        cut.len = len;
        ck_assert_int_eq(judge(&cut, true, &refusal), REFUSED);
    }
}
END_TEST

START_TEST(the_request_line_has_one_space_between_its_parts)
{
    struct laid_out head;
    begin(&head, "GET", "HTTP/1.1");
    field(&head, "Host", " ", "localhost");
    put(&head, "", 2);
    struct laid_out other = head;
    other.target++;
    assert_refused(&other, true, "");
    other = head;
    other.version++;
    assert_refused(&other, true, "");
    begin(&head, "G(T", "HTTP/1.1");
    assert_refused(&head, false, "");
    begin(&head, "", "HTTP/1.1");
    assert_refused(&head, false, "");
}
END_TEST

START_TEST(fields_that_say_two_things_are_refused)
{
    static const struct {
        const char *version, *name, *value, *other, *other_value, *param;
    } cases[] = {
        {"HTTP/1.1", "Content-Length", "5", "Content-Length", "6", "Content-Length"},
        {"HTTP/1.1", "Content-Length", "5", "content-length", "5", "Content-Length"},
        {"HTTP/1.1", "Content-Length", "5", "Transfer-Encoding", "chunked", "Transfer-Encoding"},
        {"HTTP/1.1", "Transfer-Encoding", "chunked", "Content-Length", "5", "Content-Length"},
        {"HTTP/1.1", "Transfer-Encoding", "chunked", "Transfer-Encoding", "chunked", "Transfer-Encoding"},
        {"HTTP/1.1", "Transfer-Encoding", "chunked ", "X", "", "Transfer-Encoding"},
        {"HTTP/1.1", "Transfer-Encoding", "chunkedchunked", "X", "", "Transfer-Encoding"},
        {"HTTP/1.1", "Transfer-Encoding", "identity", "X", "", "Transfer-Encoding"},
        {"HTTP/1.1", "Transfer-Encoding", "", "X", "", "Transfer-Encoding"},
        {"HTTP/1.0", "Transfer-Encoding", "chunked", "X", "", "Transfer-Encoding"},
        {"HTTP/1.1", "Content-Length", "", "X", "", "Content-Length"},
        {"HTTP/1.1", "Content-Length", "+5", "X", "", "Content-Length"},
        {"HTTP/1.1", "Content-Length", "5,5", "X", "", "Content-Length"},
        {"HTTP/1.1", "X", "", "Host", "other", "Host"},
        {"HTTP/1.0", "X", "", "HOST", "localhost", "Host"},
        {"HTTP/1.1", "Origin", "null", "Origin", "null", "Origin"},
        {"HTTP/1.1", "Authorization", "a", "Authorization", "a", "Authorization"},
        {"HTTP/1.1", "x-api-key", "a", "X-API-Key", "a", "x-api-key"},
        {"HTTP/1.1", "Sec-Fetch-Site", "none", "Sec-Fetch-Site", "none", "Sec-Fetch-Site"},
        {"HTTP/1.1", "X", "a\rb", "Y", "", "X"},
        {"HTTP/1.1", "X", "a\x7f", "Y", "", "X"},
        {"HTTP/1.1", "X ", "a", "Y", "", ""},
        {"HTTP/1.1", "X\t", "a", "Y", "", ""},
        {"HTTP/1.1", "X(", "a", "Y", "", ""},
        {"HTTP/1.1", "", "a", "Y", "", ""},
        {"HTTP/1.1", "\xc3\xbc", "a", "Y", "", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct laid_out head;
        begin(&head, "POST", cases[i].version);
        field(&head, "Host", " ", "localhost");
        field(&head, cases[i].name, " ", cases[i].value);
        field(&head, cases[i].other, " ", cases[i].other_value);
        put(&head, "", 2);
        assert_refused(&head, true, cases[i].param);
        assert_refused(&head, false, cases[i].param);
    }
}
END_TEST

START_TEST(http_1_1_has_a_host)
{
    struct laid_out head;
    begin(&head, "GET", "HTTP/1.1");
    put(&head, "", 2);
    assert_refused(&head, true, "Host");
}
END_TEST

START_TEST(a_target_is_a_path_without_what_nobody_sees)
{
    static const char *const good[] = {"/", "*", "/a?b=c%20d", "/%0", "/\xc3\xbc", "/a%0a"};
    static const char *const wrong[] = {"",      "a",     "**",    "http://x/", "/a b",
                                        "/a\tb", "/a\rb", "/\x7f", "/a%00",     "?"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        ck_assert_msg(!framing_target_fault(good[i]), "%s", good[i]);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        ck_assert_msg(framing_target_fault(wrong[i]), "%s", wrong[i]);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, heads_with_one_end_are_taken);
    tcase_add_test(tests, bytes_that_no_field_accounts_for_are_refused);
    tcase_add_test(tests, a_field_that_lies_elsewhere_is_refused);
    tcase_add_test(tests, the_request_line_has_one_space_between_its_parts);
    tcase_add_test(tests, fields_that_say_two_things_are_refused);
    tcase_add_test(tests, http_1_1_has_a_host);
    tcase_add_test(tests, a_target_is_a_path_without_what_nobody_sees);
}

int main(void)
{
    return run_tests("gateway/framing", add);
}
