/* SPDX-License-Identifier: MIT */
/* quern chat on a terminal of its own, and with its turns from a pipe. */

#include "tests/integration/support/pool.h"
#include "tests/integration/support/terminal.h"
#include "tests/unit/run.h"

#include "common/bytes.h"
#include "gguf/gguf.h"
#include "gguf/gguf_values.h"
#include "gguf/gguf_writer.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WAIT_S 30

static char dir[RUNDIR_PATH_MAX + 1];
static char model[RUNDIR_PATH_MAX + 16];

static const char template[] = "{% for m in messages %}[{{ m.role }}]{{ m.content }}\n{% endfor %}"
                               "{% if add_generation_prompt %}[assistant]{% endif %}";

static int copy_tensor(void *arg, void *to, size_t size)
{
    memcpy(to, ((const struct gguf_tensor *)arg)->data, size);
    return 0;
}

/* A key that is written anew. */
#define TOKENS "tokenizer.ggml.tokens"

/* Every piece of more than one character, with an escape sequence before it. */
static void write_loud_tokens(struct gguf_writer *writer, const struct gguf *gguf)
{
    const struct gguf_value *tokens = gguf_find(gguf, TOKENS);
    ck_assert_ptr_nonnull(tokens);
    size_t n = tokens->array.n, cursor = 0;
    struct bytes *items = calloc(n, sizeof *items);
    struct buffer text = {0};
    ck_assert_int_eq(buffer_reserve(&text, n * 64), 0); /* items point into it */
    for (size_t i = 0; i < n; i++) {
        struct bytes piece = gguf_array_next_string(tokens, &cursor);
        const char *sequence = memchr(piece.data, '<', piece.len) ? "" : "\033[7m";
        size_t at = text.len;
        ck_assert_uint_lt(piece.len, 60);
        ck_assert_int_eq(buffer_append(&text, sequence, strlen(sequence)), 0);
        ck_assert_int_eq(buffer_append(&text, piece.data, piece.len), 0);
        items[i] = (struct bytes){text.data + at, text.len - at};
    }
    ck_assert_int_eq(gguf_writer_strings(writer, TOKENS, items, n), 0);
    buffer_deinit(&text);
    free(items);
}

/* The tiny model with a chat template; `loud`: one whose text drives a terminal. */
static void make_model(bool loud)
{
    struct gguf *gguf;
    struct gguf_writer *writer;
    struct error err = {0};
    ck_assert_msg(gguf_open(tiny_model(), &gguf, &err) == 0, "%s", err.text);
    ck_assert_int_eq(gguf_writer_new(&writer), 0);
    for (size_t i = 0; i < gguf_n_pairs(gguf); i++)
        if (!loud || !bytes_equal(gguf_pair_at(gguf, i)->key, BYTES_LITERAL(TOKENS)))
            ck_assert_int_eq(gguf_writer_pair(writer, gguf_pair_at(gguf, i)), 0);
    if (loud)
        write_loud_tokens(writer, gguf);
    ck_assert_int_eq(gguf_writer_string(writer, "tokenizer.chat_template", template), 0);
    for (size_t i = 0; i < gguf_n_tensors(gguf); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(gguf, i);
        char name[128];
        snprintf(name, sizeof name, "%.*s", (int)t->name.len, (const char *)t->name.data);
        ck_assert_int_eq(
            gguf_writer_tensor(writer, name, t->n_dims, t->dims, t->format, copy_tensor, (void *)t), 0);
    }
    snprintf(model, sizeof model, "%s/chat.gguf", dir);
    ck_assert_msg(gguf_writer_write(writer, model, &err) == 0, "%s", err.text);
    gguf_writer_free(writer);
    gguf_free(gguf);
}

static void set_up(void)
{
    ck_assert_int_eq(rundir_temporary(dir, NULL), 0);
    make_model(false);
}

static void tear_down(void)
{
    rundir_remove(dir);
}

START_TEST(a_conversation_goes_on_from_turn_to_turn)
{
    int terminal;
    char *argv[] = {"quern",  "chat", "--model",  model,       "-n", "8",
                    "--seed", "5",    "--system", "Be brief.", NULL};
    pid_t pid = start(&terminal, "dumb", argv);
    expect(terminal, "> ");
    type(terminal, "Hello\r");
    expect(terminal, "Hello");
    expect(terminal, "> ");
    type(terminal, "And again\r");
    expect(terminal, "again");
    expect(terminal, "> ");
    type(terminal, "/reset\r");
    expect(terminal, "> ");
    type(terminal, "/foo bar\r");
    expect(terminal, "(unknown command /foo; /help lists them)");
    expect(terminal, "> ");
    type(terminal, "/exit\r");
    ck_assert_int_eq(end_of(pid, terminal), 0);
}
END_TEST

/* What chat says on stdout and stderr to these lines; its answers are those of a greedy model. */
static void chat_says(const char *lines, const char *expected[])
{
    char command[4096], said[65536] = "", path[sizeof dir + 16];
    snprintf(path, sizeof path, "%s/lines", dir);
    FILE *file = fopen(path, "we");
    ck_assert_ptr_nonnull(file);
    fputs(lines, file);
    ck_assert_int_eq(fclose(file), 0);
    snprintf(command, sizeof command, "cd '%s' && '%s' chat --model '%s' -n 4 --temp 0 <lines 2>&1", dir,
             build_path("quern"), model);
    FILE *pipe = popen(command, "r");
    ck_assert_ptr_nonnull(pipe);
    said[fread(said, 1, sizeof said - 1, pipe)] = 0;
    ck_assert_int_eq(pclose(pipe), 0);
    const char *at = said;
    for (size_t i = 0; expected[i]; i++) {
        const char *found = strstr(at, expected[i]);
        ck_assert_msg(found != NULL, "\"%s\" is not in \"%s\"", expected[i], at);
        at = found + strlen(expected[i]);
    }
}

START_TEST(commands_set_show_save_and_load)
{
    chat_says("/set temperature 0.5\n/set parameter top-k 7\n/set system Be brief,\\\nand kind.\n/show\n"
              "/set top_k default\n/set system\n/show\n",
              (const char *[]){"(temperature is 0.5)", "(top_k is 7)", "(the system message is set)",
                               "  model: ", "  system: Be brief,", "and kind.", "  messages: 0\n",
                               "  max_tokens: 4\n", "  temperature: 0.5\n", "  top_k: 7\n",
                               "(top_k is default)", "(there is no system message)", "  messages: 0\n",
                               "  temperature: 0.5\n", NULL});
    chat_says("/set\n/set colour 5\n/set top_p 2\n/set top_p\n/set embed 1\n/save\n/load\n/load none\n/?\n",
              (const char *[]){"  temperature ", "  system ", "(colour: unknown parameter; /set lists them)",
                               "(top_p: 2 is out of range 0..1)", "(/set top_p needs a value",
                               "(embed: unknown parameter", "(/save needs", "(/load needs",
                               "(not loaded: none: No such file or directory)", "/set NAME VALUE",
                               "/load FILE", NULL});
    chat_says("Hello\n/save a b.json\n/clear\n/show\n/load a b.json\n/show\n/bye\nHello\n",
              (const char *[]){"(2 messages saved to a b.json)", "  messages: 0\n",
                               "(2 messages loaded from a b.json)", "  messages: 2\n", NULL});
}
END_TEST

START_TEST(a_parameter_that_is_set_changes_the_answer)
{
    char command[4096], said[2][65536];
    for (int i = 0; i < 2; i++) {
        snprintf(command, sizeof command, "printf '%s' | '%s' chat --model '%s' -n %d --temp 0 2>/dev/null",
                 i == 0 ? "/set max_tokens 2\\nHello\\n" : "Hello\\n", build_path("quern"), model,
                 i == 0 ? 9 : 2);
        FILE *pipe = popen(command, "r");
        ck_assert_ptr_nonnull(pipe);
        said[i][fread(said[i], 1, sizeof said[i] - 1, pipe)] = 0;
        ck_assert_int_eq(pclose(pipe), 0);
    }
    ck_assert_str_eq(said[0], said[1]);
}
END_TEST

START_TEST(what_is_typed_during_an_answer_appears_behind_it)
{
    int terminal;
    char *argv[] = {"quern", "chat",    "--model", model,    "--device", "null",
                    "--ctx", "1000000", "-n",      "900000", NULL};
    pid_t pid = start(&terminal, "dumb", argv);
    expect(terminal, "> ");
    type(terminal, "Talk\r");
    expect(terminal, "Talk\r\n");
    while (shown < looked + 200) {
        ssize_t n = read(terminal, screen + shown, 4096);
        ck_assert_int_gt(n, 0);
        shown += (size_t)n;
        ck_assert_uint_lt(shown, sizeof screen / 2);
    }
    type(terminal, "QQQQ");
    type(terminal, "\x03");
    expect(terminal, "\n> "); /* nothing of it before the prompt */
    screen[shown] = 0;
    char *before = screen + looked;
    for (char *at = screen; at < before; at++)
        ck_assert_msg(strncmp(at, "QQQQ", 4) != 0, "it stands in the answer");
    /* The terminal may have dropped it with the Ctrl-C, as terminals do. Ctrl-D ends on a line of its own. */
    type(terminal, "\x15\x04");
    expect(terminal, "\n");
    ck_assert_int_eq(end_of(pid, terminal), 0);
}
END_TEST

START_TEST(an_interrupt_stops_the_answer_and_not_the_program)
{
    int terminal;
    char *argv[] = {"quern", "chat",    "--model", model,    "--device", "null",
                    "--ctx", "1000000", "-n",      "900000", NULL};
    pid_t pid = start(&terminal, "dumb", argv);
    expect(terminal, "> ");
    type(terminal, "Talk\r");
    expect(terminal, "Talk\r\n");
    /* The answer has begun when anything follows the line. */
    while (shown < looked + 200) {
        ssize_t n = read(terminal, screen + shown, 4096);
        ck_assert_int_gt(n, 0);
        shown += (size_t)n;
        ck_assert_uint_lt(shown, sizeof screen / 2);
    }
    type(terminal, "\x03");
    /* Whatever was on its way still comes: far less than the whole answer. */
    expect(terminal, "\n> ");
    type(terminal, "\x03");
    expect(terminal, "/exit ends");
    type(terminal, "/exit\r");
    ck_assert_int_eq(end_of(pid, terminal), 0);
}
END_TEST

START_TEST(a_refused_turn_does_not_end_the_conversation)
{
    int terminal;
    char *argv[] = {"quern", "chat", "--model", model, "-n", "4090", NULL};
    pid_t pid = start(&terminal, "dumb", argv);
    expect(terminal, "> ");
    type(terminal, "This is too long for what is left of the context\r");
    expect(terminal, "too_long");
    expect(terminal, "> ");
    type(terminal, "/exit\r");
    ck_assert_int_eq(end_of(pid, terminal), 0);
}
END_TEST

/* The line is what the editor shows of it: a character that got lost on the way is missing there too. */
START_TEST(what_is_typed_is_utf8_whatever_the_locale_says)
{
    int terminal;
    char *argv[] = {"quern", "chat", "--model", model, "-n", "8", NULL};
    pid_t pid = start(&terminal, "dumb", argv);
    expect(terminal, "> ");
    type(terminal, "Gr\xc3\xbc\xc3\x9f dich\r");
    expect(terminal, "Gr\xc3\xbc\xc3\x9f dich");
    expect(terminal, "> ");
    type(terminal, "/exit\r");
    ck_assert_int_eq(end_of(pid, terminal), 0);
}
END_TEST

START_TEST(a_conversation_that_is_too_long_says_what_to_do)
{
    int terminal;
    /* Without the end of text (2) an answer is as long as it may be. */
    char *argv[] = {"quern", "chat", "--model",      model,    "--ctx", "96",
                    "-n",    "60",   "--logit-bias", "2:-100", NULL};
    pid_t pid = start(&terminal, "dumb", argv);
    expect(terminal, "> ");
    type(terminal, "One\r");
    expect(terminal, "quern: the answer was cut at 60 tokens");
    expect(terminal, "> ");
    type(terminal, "Two\r");
    expect(terminal, "quern: too_long: ");
    expect(terminal, "/reset begins a new conversation");
    expect(terminal, "> ");
    type(terminal, "/reset\r");
    expect(terminal, "> ");
    type(terminal, "Two\r");
    expect(terminal, "quern: the answer was cut at 60 tokens");
    expect(terminal, "> ");
    type(terminal, "/exit\r");
    ck_assert_int_eq(end_of(pid, terminal), 0);
}
END_TEST

START_TEST(what_a_model_says_does_not_drive_the_terminal)
{
    static char piped[1 << 16];
    int terminal;
    make_model(true);
    ck_assert_int_eq(run_program(piped, sizeof piped, "quern", "run", "--model", model, "-n", "60", "--seed",
                                 "5", "Hello", NULL),
                     0);
    ck_assert_ptr_nonnull(strstr(piped, "\033[7m")); /* a pipe gets the bytes as they are */
    char *argv[] = {"quern", "run", "--model", model, "-n", "60", "--seed", "5", "Hello", NULL};
    pid_t pid = start(&terminal, "dumb", argv);
    gather_screen(terminal);
    ck_assert_ptr_nonnull(strstr(screen, "?[7m"));
    ck_assert_ptr_null(strchr(screen, '\033'));
    ck_assert_int_eq(end_of(pid, terminal), 0);
    char *chat[] = {"quern", "chat", "--model", model, "-n", "60", "--seed", "5", NULL};
    pid = start(&terminal, "dumb", chat);
    expect(terminal, "> ");
    type(terminal, "Hello\r");
    expect(terminal, "?[7m");
    expect(terminal, "> ");
    ck_assert_ptr_null(strchr(screen, '\033'));
    type(terminal, "/exit\r");
    ck_assert_int_eq(end_of(pid, terminal), 0);
}
END_TEST

START_TEST(help_tells_how_long_an_answer_may_be)
{
    char help[8192];
    ck_assert_int_eq(run_program(help, sizeof help, "quern", "chat", "--help", NULL), 0);
    ck_assert_ptr_null(strstr(help, "256"));
    ck_assert_ptr_nonnull(strstr(help, "to the end of"));
    ck_assert_int_eq(run_program(help, sizeof help, "quern", "run", "--help", NULL), 0);
    ck_assert_ptr_nonnull(strstr(help, "to the end of"));
}
END_TEST

START_TEST(turns_may_come_from_a_pipe)
{
    char command[4096], answers[65536] = "";
    snprintf(command, sizeof command,
             "printf 'Hello\\n\\nMore\\n/reset\\n/help\\nHello\\n' | '%s' chat --model '%s' -n 6 --seed 2",
             build_path("quern"), model);
    FILE *pipe = popen(command, "r");
    ck_assert_ptr_nonnull(pipe);
    answers[fread(answers, 1, sizeof answers - 1, pipe)] = 0;
    ck_assert_int_eq(pclose(pipe), 0);
    /* The first answer and the one after /reset are the same; no empty turn is sent, nor what is no command.
     */
    size_t len = strlen(answers);
    ck_assert_uint_gt(len, 6);
    char first[65536];
    ck_assert_int_eq(run_program(first, sizeof first, "quern", "run", "--model", model, "-n", "6", "--seed",
                                 "2", "Hello", NULL),
                     0);
    size_t n = strlen(first); /* with a newline, as each answer of the conversation */
    ck_assert_uint_gt(n, 1);
    ck_assert_int_eq(strncmp(answers, first, n), 0);
    ck_assert_uint_gt(len, 2 * n);
    ck_assert_str_eq(answers + len - n, first);
}
END_TEST

START_TEST(a_model_without_a_template_is_refused_with_advice)
{
    char out[256];
    ck_assert_int_eq(run_program(out, sizeof out, "quern", "chat", "--model", tiny_model(), NULL), 1);
    ck_assert_str_eq(out, "");
}
END_TEST

/* ---- --chat-template ---- */

static void write_template(char *ret_path, size_t size, const char *text)
{
    snprintf(ret_path, size, "%s/template.jinja", dir);
    FILE *file = fopen(ret_path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    ck_assert_int_eq(fclose(file), 0);
}

static long prompt_tokens(const struct pool *pool)
{
    static char out[4096];
    ck_assert_int_eq(run_program(out, sizeof out, "quern", "run", "hello", "-n", "1", "--json", "--connect",
                                 pool->frontend, NULL),
                     0);
    const char *at = strstr(out, "\"prompt_tokens\": ");
    ck_assert_msg(at != NULL, "%s", out);
    return atol(at + strlen("\"prompt_tokens\": "));
}

START_TEST(a_template_from_a_file_takes_the_place_of_the_models_own)
{
    struct pool pool = {0};
    char path[sizeof model + 16];
    write_template(path, sizeof path, "{% for m in messages %}{{ m.content }}{{ m.content }}{% endfor %}");
    pool_start(&pool, model, "--chat-template", path, NULL);
    ck_assert_int_eq(prompt_tokens(&pool), 9); /* those of "hellohello" and nothing else */
    ck_assert_int_eq(pool_stop(&pool, SIGTERM, WAIT_S), 0);
    pool_forget(&pool);
}
END_TEST

START_TEST(a_system_message_of_the_pool_stands_before_conversations)
{
    long tokens[2];
    char path[sizeof model + 16];
    write_template(path, sizeof path, "{% for m in messages %}{{ m.content }}{% endfor %}");
    for (int with = 0; with < 2; with++) {
        struct pool pool = {0};
        pool_start(&pool, model, "--chat-template", path, with ? "--system" : NULL, "Be brief.", NULL);
        tokens[with] = prompt_tokens(&pool);
        ck_assert_int_eq(pool_stop(&pool, SIGTERM, WAIT_S), 0);
        pool_forget(&pool);
    }
    ck_assert_msg(tokens[1] > tokens[0] + 3, "%ld, %ld", tokens[0], tokens[1]);
}
END_TEST

START_TEST(a_system_message_that_the_template_refuses_is_an_error)
{
    struct pool pool = {0};
    char path[sizeof model + 16];
    write_template(
        path, sizeof path,
        "{% if messages[0].role == 'system' %}{{ raise_exception('no system here') }}{% endif %}x");
    ck_assert_int_eq(pool_fails(&pool, WAIT_S, model, "--chat-template", path, "--system", "Be brief.", NULL),
                     1);
    ck_assert_msg(pool_says(&pool, "--system: ", 1) && pool_says(&pool, "no system here", 1), "%s",
                  pool_log(&pool));
    pool_forget(&pool);
}
END_TEST

START_TEST(a_template_that_cannot_be_used_is_named)
{
    struct pool pool = {0};
    char path[sizeof model + 16];
    write_template(path, sizeof path, "{% nonsense %}");
    ck_assert_int_eq(pool_fails(&pool, WAIT_S, model, "--chat-template", path, NULL), 1);
    ck_assert_msg(pool_says(&pool, "template.jinja: ", 1) && pool_says(&pool, "\"nonsense\"", 1), "%s",
                  pool_log(&pool));
    pool_forget(&pool);
    pool = (struct pool){0};
    ck_assert_int_eq(pool_fails(&pool, WAIT_S, model, "--chat-template", "/none.jinja", NULL), 1);
    ck_assert_msg(pool_says(&pool, "--chat-template: /none.jinja: No such file", 1), "%s", pool_log(&pool));
    pool_forget(&pool);
}
END_TEST

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 240);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, a_conversation_goes_on_from_turn_to_turn);
    tcase_add_test(tests, commands_set_show_save_and_load);
    tcase_add_test(tests, a_parameter_that_is_set_changes_the_answer);
    tcase_add_test(tests, what_is_typed_during_an_answer_appears_behind_it);
    tcase_add_test(tests, an_interrupt_stops_the_answer_and_not_the_program);
    tcase_add_test(tests, a_refused_turn_does_not_end_the_conversation);
    tcase_add_test(tests, what_is_typed_is_utf8_whatever_the_locale_says);
    tcase_add_test(tests, a_conversation_that_is_too_long_says_what_to_do);
    tcase_add_test(tests, what_a_model_says_does_not_drive_the_terminal);
    tcase_add_test(tests, help_tells_how_long_an_answer_may_be);
    tcase_add_test(tests, turns_may_come_from_a_pipe);
    tcase_add_test(tests, a_model_without_a_template_is_refused_with_advice);
    tcase_add_test(tests, a_template_from_a_file_takes_the_place_of_the_models_own);
    tcase_add_test(tests, a_template_that_cannot_be_used_is_named);
    tcase_add_test(tests, a_system_message_of_the_pool_stands_before_conversations);
    tcase_add_test(tests, a_system_message_that_the_template_refuses_is_an_error);
}

int main(void)
{
    return run_tests("chat", add);
}
