/* SPDX-License-Identifier: MIT */
/* Programs whose model file is truncated, or written to, while they read it (changing_file.c). */

#include "tests/integration/worker/scripted_broker.h"
#include "tests/unit/run.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "model/convert/synth.h"

/* Starts a worker and waits for its end; returns the exit status, or 1000 + the signal. */
static int load(const char *how, const char *device, const char *reason)
{
    setenv("QUERN_FILE_IS", how, 1);
    struct scripted *s = scripted_new(ARGS("--device", device, "--no-sandbox")); /* it is somebody else too */
    unsetenv("QUERN_FILE_IS");
    int status = worker_status(s);
    char line[512];
    snprintf(line, sizeof line, "%s %s", s->model, reason);
    ck_assert_msg(strstr(worker_stderr(s), line) != NULL, "%s", worker_stderr(s));
    scripted_free(s);
    return status;
}

START_TEST(a_worker_whose_model_is_truncated_while_it_loads_says_so_and_may_be_tried_again)
{
    ck_assert_int_eq(load("truncated", "cpu", "was truncated while being read\n"), EXIT_FAILURE);
    ck_assert_int_eq(load("truncated", "null", "was truncated while being read\n"), EXIT_FAILURE);
}
END_TEST

START_TEST(a_worker_whose_model_is_written_to_while_it_loads_says_so_and_may_be_tried_again)
{
    ck_assert_int_eq(load("written", "cpu", "was written to while being read\n"), EXIT_FAILURE);
}
END_TEST

/* Runs the command on a fresh model; returns its exit status, or 1000 + the signal, and what it said. */
static int run_command(const char *arguments, const char *how, char *ret_said, size_t size)
{
    char folder[RUNDIR_PATH_MAX + 1], model[256], line[1024];
    struct error err = {0};
    ck_assert_int_eq(rundir_temporary(folder, &err), 0);
    snprintf(model, sizeof model, "%s/model.gguf", folder);
    ck_assert_msg(synth_write(synth_shape_by_name("tiny"), mixture_by_name("F16"), 1, model, &err) == 0, "%s",
                  err.text);
    snprintf(line, sizeof line, "cd '%s' && QUERN_FILE_IS=%s exec '%s' %s 2>&1 >/dev/null </dev/null", folder,
             how, getenv("QUERN_COMMAND"), arguments);
    FILE *said = popen(line, "r");
    ck_assert_ptr_nonnull(said);
    size_t n = fread(ret_said, 1, size - 1, said);
    ret_said[n] = 0;
    int status = pclose(said);
    rundir_remove(folder);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

START_TEST(commands_end_with_one_line_that_names_the_file)
{
    static const struct {
        const char *arguments, *how;
    } cases[] = {{"tokenize model.gguf", "emptied"},
                 {"inspect model.gguf", "emptied"},
                 {"logits model.gguf --tokens 1,2 --out out", "truncated"},
                 {"bench decode model.gguf", "truncated"}};
    char said[4096];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int status = run_command(cases[i].arguments, cases[i].how, said, sizeof said);
        const char *last = strstr(said, "quern: ");
        ck_assert_msg(status == EXIT_FAILURE && last &&
                          strcmp(last, "quern: model.gguf was truncated while being read\n") == 0,
                      "%s: %d, %s", cases[i].arguments, status, said);
    }
    /* It opens the file twice, and sees the second time what is wrong. */
    ck_assert_int_eq(run_command("inspect model.gguf", "truncated", said, sizeof said), EXIT_FAILURE);
    ck_assert_msg(strstr(said, "model.gguf: truncated at byte ") != NULL, "%s", said);
    ck_assert_int_eq(run_command("logits model.gguf --tokens 1,2 --out out", "written", said, sizeof said),
                     EXIT_FAILURE);
    ck_assert_str_eq(said, "quern-unlucky: model.gguf was written to while being read\n");
    /* It looks after each tensor, and has told of those before. */
    ck_assert_int_eq(run_command("quantize model.gguf Q8_0 out", "truncated", said, sizeof said),
                     EXIT_FAILURE);
    const char *last = strstr(said, "quern-unlucky: ");
    ck_assert_msg(
        last && strncmp(last, "quern-unlucky: model.gguf changed size while being read, from ", 62) == 0 &&
            strchr(last, '\n') == last + strlen(last) - 1,
        "%s", said);
}
END_TEST

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 240);
    tcase_add_test(tests, a_worker_whose_model_is_truncated_while_it_loads_says_so_and_may_be_tried_again);
    tcase_add_test(tests, a_worker_whose_model_is_written_to_while_it_loads_says_so_and_may_be_tried_again);
    tcase_add_test(tests, commands_end_with_one_line_that_names_the_file);
}

int main(void)
{
    return run_tests("a file that changes", add);
}
