/* SPDX-License-Identifier: MIT */
/* Chat templates against the prompts that jinja2 renders.
 *
 * The reference's chat/ holds NAME.template.json and cases.json: conversations with the expected prompt, or
 * null where the template refuses. One line per template; exit status 1 when a case fails. */

#include <jansson.h>
#include <string.h>

#include "tests/conformance/reference.h"
#include "text/template/chat_template.h"

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

/* The case's expectation is met? What was wrong goes to stdout. */
static bool check_case(const struct chat_template *chat_template, const json_t *test)
{
    const json_t *expected = json_object_get(test, "expected");
    struct chat_context context = {
        .add_generation_prompt = json_is_true(json_object_get(test, "add_generation_prompt")),
        .date = {.tm_year = 126, .tm_mon = 0, .tm_mday = 15, .tm_wday = 4, .tm_yday = 14},
    };
    struct chat_text text = {0};
    struct error err = {0};
    int r = chat_template_render(chat_template, json_object_get(test, "messages"), &context, &text, &err);
    bool passed;
    if (json_is_string(expected))
        passed =
            r == 0 && bytes_equal((struct bytes){text.text.data, text.text.len},
                                  (struct bytes){json_string_value(expected), json_string_length(expected)});
    else
        passed = r == CHAT_TEMPLATE_E_REFUSED && strcmp(err.text, text_of(test, "refused")) == 0;
    if (!passed)
        printf("  %s, %s: %d %s\n--- gave\n%.*s\n--- expected\n%s\n", text_of(test, "template_name"),
               text_of(test, "case"), r, err.text, (int)text.text.len, (const char *)text.text.data,
               json_is_string(expected) ? json_string_value(expected) : text_of(test, "refused"));
    chat_text_deinit(&text);
    return passed;
}

static bool run_case(const char *folder, const json_t *test)
{
    char path[4400];
    snprintf(path, sizeof path, "%s/%s.template.json", folder, text_of(test, "template_name"));
    json_t *file = json_load_file(path, 0, NULL);
    struct chat_template *chat_template = NULL;
    struct error err = {0};
    bool passed = false;
    int r =
        chat_template_new(bytes_of_string(text_of(file, "template")), bytes_of_string(text_of(test, "bos")),
                          bytes_of_string(text_of(test, "eos")), &chat_template, &err);
    if (!file || r < 0)
        printf("  %s: %s\n", path, err.text);
    else
        passed = check_case(chat_template, test);
    chat_template_free(chat_template);
    json_decref(file);
    return passed;
}

int main(int argc, char **argv)
{
    const char *folder = reference_folder(argc, argv, "chat");
    char path[4200];
    snprintf(path, sizeof path, "%s/cases.json", folder);
    json_error_t json_err;
    json_t *cases = json_load_file(path, 0, &json_err);
    if (!cases) {
        printf("%s: %s\n", path, json_err.text);
        return 1;
    }
    size_t n = json_array_size(cases), passed = 0;
    for (size_t i = 0; i < n;) {
        const char *name = text_of(json_array_get(cases, i), "template_name");
        size_t of_this = 0, passed_before = passed;
        for (; i < n && strcmp(text_of(json_array_get(cases, i), "template_name"), name) == 0; i++, of_this++)
            passed += run_case(folder, json_array_get(cases, i));
        printf("%-20s %zu/%zu\n", name, passed - passed_before, of_this);
    }
    printf("%zu of %zu chats passed\n", passed, n);
    json_decref(cases);
    return n == 0 || passed != n;
}
