/* SPDX-License-Identifier: MIT */
/* cublas_lt.h against the library itself, as far as that goes without a GPU: each version that is there has
 * all calls, and takes our descriptions, attributes by attribute. Is skipped where there is none. */

#include "cuda/device/cublas_lt.h"
#include "tests/unit/run.h"

#include <errno.h>
#include <string.h>

static struct cublas_lt calls;
static uint32_t version;

/* Each has its own reason, which the next search leaves alone. */
START_TEST(a_version_that_is_not_there_is_named)
{
    struct error first, second;
    ck_assert_int_eq(cublas_lt_find(97, &calls, &first), -ENOENT);
    ck_assert_int_eq(cublas_lt_find(98, &calls, &second), -ENOENT);
    ck_assert_msg(strncmp(first.text, "libcublasLt.so.97: ", 19) == 0, "%s", first.text);
    ck_assert_msg(strncmp(second.text, "libcublasLt.so.98: ", 19) == 0, "%s", second.text);
}
END_TEST

START_TEST(the_library_takes_descriptions_as_we_make_them)
{
    const int32_t transposed = CUBLAS_LT_OP_T;
    const uint32_t epilogue = CUBLAS_LT_EPILOGUE_BIAS;
    const void *bias = &calls;
    cublas_lt_desc desc = NULL;
    ck_assert_uint_eq(calls.desc_create(&desc, CUBLAS_LT_COMPUTE_32F, CUBLAS_LT_R_32F), CUBLAS_LT_SUCCESS);
    ck_assert_uint_eq(calls.desc_set(desc, CUBLAS_LT_DESC_TRANSA, &transposed, sizeof transposed), 0);
    ck_assert_uint_eq(calls.desc_set(desc, CUBLAS_LT_DESC_EPILOGUE, &epilogue, sizeof epilogue), 0);
    ck_assert_uint_eq(calls.desc_set(desc, CUBLAS_LT_DESC_BIAS_POINTER, &bias, sizeof bias), 0);
    ck_assert_uint_ne(calls.desc_set(desc, CUBLAS_LT_DESC_TRANSA, &bias, sizeof bias), 0);
    ck_assert_uint_eq(calls.desc_destroy(desc), CUBLAS_LT_SUCCESS);
}
END_TEST

START_TEST(the_library_takes_layouts_and_preferences_as_we_make_them)
{
    const uint64_t bytes = (uint64_t)32 << 20;
    cublas_lt_layout weights = NULL, out = NULL;
    cublas_lt_preference preference = NULL;
    ck_assert_uint_eq(calls.layout_create(&weights, CUBLAS_LT_R_16BF, 4096, 14336, 4096), CUBLAS_LT_SUCCESS);
    ck_assert_uint_eq(calls.layout_create(&out, CUBLAS_LT_R_32F, 51, 640, 256), CUBLAS_LT_SUCCESS);
    ck_assert_uint_eq(calls.preference_create(&preference), CUBLAS_LT_SUCCESS);
    ck_assert_uint_eq(
        calls.preference_set(preference, CUBLAS_LT_PREF_MAX_WORKSPACE_BYTES, &bytes, sizeof bytes), 0);
    ck_assert_uint_eq(calls.preference_destroy(preference), CUBLAS_LT_SUCCESS);
    ck_assert_uint_eq(calls.layout_destroy(out), CUBLAS_LT_SUCCESS);
    ck_assert_uint_eq(calls.layout_destroy(weights), CUBLAS_LT_SUCCESS);
}
END_TEST

START_TEST(a_status_has_its_name_and_the_library_its_version)
{
    ck_assert_str_eq(calls.status_name(CUBLAS_LT_SUCCESS), "CUBLAS_STATUS_SUCCESS");
    ck_assert_str_eq(calls.status_name(CUBLAS_LT_NOT_SUPPORTED), "CUBLAS_STATUS_NOT_SUPPORTED");
    ck_assert_uint_eq(calls.version() / 10000, version);
}
END_TEST

static void add_search(TCase *tests)
{
    tcase_add_test(tests, a_version_that_is_not_there_is_named);
}

static void add_library(TCase *tests)
{
    tcase_add_test(tests, the_library_takes_descriptions_as_we_make_them);
    tcase_add_test(tests, the_library_takes_layouts_and_preferences_as_we_make_them);
    tcase_add_test(tests, a_status_has_its_name_and_the_library_its_version);
}

int main(void)
{
    struct error err;
    bool any = false;
    int r = run_tests("cublas_lt search", add_search);
    for (version = CUBLAS_LT_NEWEST; version >= CUBLAS_LT_OLDEST && r == 0; version--) {
        if (cublas_lt_find(version, &calls, &err) == 0) {
            any = true;
            r = run_tests("cublas_lt", add_library);
        } else {
            puts(err.text);
        }
    }
    return r == 0 && !any ? 77 : r;
}
