/* SPDX-License-Identifier: MIT */
/* Which handler answers what, and in whose form it is told that none does. */

#include "gateway/routes.h"
#include "tests/unit/run.h"

static const struct route *route;
static const char *rest;
static enum family family;
static char allowed[32];
static struct refusal refusal;

static int find(const char *method, const char *path)
{
    return routes_find(method, path, &route, &rest, &family, allowed, &refusal);
}

START_TEST(a_path_has_its_handler)
{
    ck_assert_int_eq(find("POST", "/v1/messages"), 0);
    ck_assert_int_eq(family, FAMILY_ANTHROPIC);
    ck_assert_int_eq(find("HEAD", "/v1/models/a/b"), 0);
    ck_assert_str_eq(rest, "a/b");
    ck_assert_int_eq(find("GET", "/v1/messages"), REFUSED);
    ck_assert_uint_eq(refusal.status, 405);
    ck_assert_int_eq(family, FAMILY_ANTHROPIC);
    ck_assert_str_eq(allowed, "POST");
}
END_TEST

START_TEST(nothing_is_told_in_the_form_of_the_paths_family)
{
    static const struct {
        const char *path;
        enum family family;
    } cases[] = {
        {"/api/pull", FAMILY_OLLAMA},
        {"/api/", FAMILY_OLLAMA},
        {"/api/tags/x", FAMILY_OLLAMA},
        {"/api", FAMILY_OPENAI},
        {"/apix", FAMILY_OPENAI},
        {"/v1/messages/count", FAMILY_ANTHROPIC},
        {"/v1/messages/batches", FAMILY_ANTHROPIC},
        {"/v1/messagesx", FAMILY_OPENAI},
        {"/v1/responses", FAMILY_OPENAI},
        {"/nothing", FAMILY_OPENAI},
        {"", FAMILY_OPENAI},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ck_assert_int_eq(find("POST", cases[i].path), REFUSED);
        ck_assert_uint_eq(refusal.status, 404);
        ck_assert_msg(family == cases[i].family, "%s: %d", cases[i].path, family);
        ck_assert_str_eq(allowed, "");
    }
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, a_path_has_its_handler);
    tcase_add_test(tests, nothing_is_told_in_the_form_of_the_paths_family);
}

int main(void)
{
    return run_tests("gateway routes", add);
}
