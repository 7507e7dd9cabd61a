/* SPDX-License-Identifier: MIT */
/* Tokenizers against the ids that a public engine gives.
 *
 * Each NAME.gguf of the reference's tokenizers/ stands beside a NAME.tok.json: texts, each with `ids` (plain)
 * and `ids_with_special` (BOS and EOS added as the file says, control tokens parsed). A text passes when both
 * lists are equal. One line per file; exit status 1 when a text of any file fails. */

#include <errno.h>
#include <glob.h>
#include <jansson.h>
#include <string.h>

#include "tests/conformance/reference.h"
#include "text/tokenizer/tokenizer.h"

static bool equal(const struct ids *ids, const json_t *expected)
{
    if (ids->len != json_array_size(expected))
        return false;
    for (size_t i = 0; i < ids->len; i++)
        if (ids->data[i] != json_integer_value(json_array_get(expected, i)))
            return false;
    return true;
}

static void print_ids(const char *what, const struct ids *ids)
{
    printf("    %s", what);
    for (size_t i = 0; i < ids->len && i < 40; i++)
        printf(" %d", ids->data[i]);
    printf("\n");
}

static bool check_one(const struct tokenizer *tokenizer, json_t *test, unsigned flags, const char *key)
{
    json_t *text = json_object_get(test, "text");
    struct ids ids = {0};
    int r = tokenizer_encode(tokenizer, (struct bytes){json_string_value(text), json_string_length(text)},
                             flags, &ids);
    bool passed = r == 0 && equal(&ids, json_object_get(test, key));
    if (!passed && getenv("VERBOSE")) {
        printf("  %s (%d): \"%.300s\"\n", key, r, json_string_value(text));
        print_ids("gave", &ids);
        struct ids expected = {0};
        for (size_t i = 0; i < json_array_size(json_object_get(test, key)); i++)
            ids_push(&expected, (int32_t)json_integer_value(json_array_get(json_object_get(test, key), i)));
        print_ids("expected", &expected);
        ids_deinit(&expected);
    }
    ids_deinit(&ids);
    return passed;
}

/* Returns how many texts failed, or -1 when the files cannot be used. */
static int check_file(const char *path)
{
    char cases_path[4096];
    snprintf(cases_path, sizeof cases_path, "%.*s.tok.json", (int)(strlen(path) - strlen(".gguf")), path);
    json_error_t json_err;
    json_t *cases = json_load_file(cases_path, JSON_ALLOW_NUL, &json_err);
    struct gguf *gguf = NULL;
    struct tokenizer *tokenizer = NULL;
    struct error err = {0};
    int failed = -1;
    if (!cases)
        printf("%s: %s\n", cases_path, json_err.text);
    else if (gguf_open(path, &gguf, &err) != 0 || tokenizer_new(gguf, &tokenizer, &err) != 0)
        printf("%s: %s\n", path, err.text);
    else {
        int plain = 0, special = 0, n = (int)json_array_size(cases);
        failed = 0;
        for (int i = 0; i < n; i++) {
            json_t *test = json_array_get(cases, (size_t)i);
            bool a = check_one(tokenizer, test, 0, "ids");
            bool b = check_one(tokenizer, test, TOKENIZER_ADD_SPECIAL | TOKENIZER_PARSE_SPECIAL,
                               "ids_with_special");
            plain += a;
            special += b;
            failed += !a || !b;
        }
        printf("%-28s plain %d/%d  special %d/%d  %s\n", strrchr(path, '/') + 1, plain, n, special, n,
               failed ? "FAILED" : "passed");
        if (n == 0)
            failed = -1;
    }
    tokenizer_free(tokenizer);
    gguf_free(gguf);
    json_decref(cases);
    return failed;
}

int main(int argc, char **argv)
{
    const char *folder = reference_folder(argc, argv, "tokenizers");
    char pattern[4200];
    snprintf(pattern, sizeof pattern, "%s/*.gguf", folder);
    glob_t files;
    if (glob(pattern, 0, NULL, &files) != 0) {
        printf("%s holds no tokenizers: skipped\n", folder);
        return REFERENCE_ABSENT;
    }
    int bad = 0;
    for (size_t i = 0; i < files.gl_pathc; i++)
        bad += check_file(files.gl_pathv[i]) != 0;
    printf("%zu of %zu tokenizers passed\n", files.gl_pathc - (size_t)bad, files.gl_pathc);
    globfree(&files);
    return bad != 0;
}
