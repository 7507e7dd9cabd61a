/* SPDX-License-Identifier: MIT */
/* Public chat templates against what jinja2 makes of them.
 *
 * The folder has NAME.jinja and renders.json: conversations with the arguments of the render, and the prompt
 * that is expected, or why the template refuses. A refusal is any error: its words are the language's. One
 * line per template; exit status 1 when a case fails. */

#include <jansson.h>
#include <string.h>

#include "common/bytes.h"
#include "tests/conformance/reference.h"
#include "text/template/chat_template.h"

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

/* The whole of a file; an empty buffer when it is not there. */
static struct buffer read_file(const char *path)
{
    struct buffer text = {0};
    FILE *file = fopen(path, "rb");
    if (file)
        buffer_read(&text, fileno(file), 1 << 20);
    if (file)
        fclose(file);
    return text;
}

/* What was wrong goes to stdout. */
static bool check_case(const struct chat_template *chat_template, const json_t *test)
{
    const json_t *expected = json_object_get(test, "expected"),
                 *arguments = json_object_get(test, "arguments");
    struct chat_context context = {
        .add_generation_prompt = json_is_true(json_object_get(arguments, "add_generation_prompt")),
        .date = {.tm_year = 126, .tm_mon = 0, .tm_mday = 15, .tm_wday = 4, .tm_yday = 14},
        .no_date_string = true,
        .extra = arguments,
    };
    struct chat_text text = {0};
    struct error err = {0};
    int r = chat_template_render(chat_template, json_object_get(test, "messages"), &context, &text, &err);
    const struct bytes gave = {text.text.data, text.text.len};
    bool passed = json_is_string(expected)
                      ? r == 0 && bytes_equal(gave, (struct bytes){json_string_value(expected),
                                                                   json_string_length(expected)})
                      : r != 0;
    if (!passed)
        printf("  %s, %s: %d %s\n--- gave\n%.*s\n--- expected\n%s\n", text_of(test, "template"),
               text_of(test, "case"), r, err.text, (int)gave.len, (const char *)gave.data,
               json_is_string(expected) ? json_string_value(expected) : text_of(test, "refused"));
    chat_text_deinit(&text);
    return passed;
}

/* Of the cases of one template, how many pass. */
static size_t run_template(const char *folder, const char *name, const json_t *cases, size_t first, size_t n)
{
    char path[4400];
    snprintf(path, sizeof path, "%s/%s.jinja", folder, name);
    struct buffer source = read_file(path);
    struct chat_template *chat_template = NULL;
    struct error err = {0};
    size_t passed = 0;
    int r = chat_template_new((struct bytes){source.data, source.len}, BYTES_LITERAL("<BOS>"),
                              BYTES_LITERAL("<EOS>"), &chat_template, &err);
    if (r < 0)
        printf("  %s: %s\n", path, err.text);
    for (size_t i = first; i < first + n && r == 0; i++)
        passed += check_case(chat_template, json_array_get(cases, i));
    chat_template_free(chat_template);
    buffer_deinit(&source);
    printf("%-50s %zu/%zu\n", name, passed, n);
    return passed;
}

int main(int argc, char **argv)
{
    const char *folder = reference_folder(argc, argv, "templates");
    char path[4200];
    snprintf(path, sizeof path, "%s/renders.json", folder);
    json_error_t json_err;
    json_t *cases = json_load_file(path, 0, &json_err);
    if (!cases) {
        printf("%s: %s\n", path, json_err.text);
        return 1;
    }
    const size_t n = json_array_size(cases);
    size_t passed = 0;
    for (size_t i = 0, of_this; i < n; i += of_this) {
        const char *name = text_of(json_array_get(cases, i), "template");
        for (of_this = 1; strcmp(text_of(json_array_get(cases, i + of_this), "template"), name) == 0;
             of_this++)
            ;
        passed += run_template(folder, name, cases, i, of_this);
    }
    printf("%zu of %zu renders passed\n", passed, n);
    json_decref(cases);
    return n == 0 || passed != n;
}
