/* SPDX-License-Identifier: MIT */
/* Certificates as czmq and pyzmq write them, by hand, and broken. */

#include "common/files/certificate.h"
#include "common/files/rundir.h"
#include "tests/unit/run.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <czmq.h>

/* Every character that Z85 has beyond letters and digits is in one of these two. */
#define PUBLIC_KEY "#{}.-:+=^!/*?&<>()[]@%$abcdefghijk012345"
#define SECRET_KEY "zuA0t=ptrw0C(CjAPZd)wm/0@EIsyN}-G3w=zHim"

/* What pyzmq's create_certificates writes, byte for byte. */
static const char pyzmq_public[] = "#   ****  Generated on 2026-03-01 12:34:56.789012 by pyzmq  ****\n"
                                   "#   ZeroMQ CURVE Public Certificate\n"
                                   "#   Exchange securely, or use a secure mechanism to verify the contents\n"
                                   "#   of this file after exchange. Store public certificates in your home\n"
                                   "#   directory, in the .curve subdirectory.\n"
                                   "\n"
                                   "metadata\n"
                                   "curve\n"
                                   "    public-key = \"" PUBLIC_KEY "\"\n";
static const char pyzmq_secret[] = "#   ****  Generated on 2026-03-01 12:34:56.789012 by pyzmq  ****\n"
                                   "#   ZeroMQ CURVE **Secret** Certificate\n"
                                   "#   DO NOT PROVIDE THIS FILE TO OTHER USERS nor change its permissions.\n"
                                   "\n"
                                   "metadata\n"
                                   "    name = the gateway's\n"
                                   "    public-key = of the gateway\n"
                                   "curve\n"
                                   "    public-key = \"" PUBLIC_KEY "\"\n"
                                   "    secret-key = \"" SECRET_KEY "\"\n";

static char folder[RUNDIR_PATH_MAX + 1];

static void set_up(void)
{
    ck_assert_int_eq(rundir_temporary(folder, NULL), 0);
}

static void tear_down(void)
{
    rundir_remove(folder);
}

static const char *in_folder(const char *name)
{
    static char path[RUNDIR_PATH_MAX + 64];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void write_file(const char *name, const char *text, mode_t mode)
{
    int fd = open(in_folder(name), O_WRONLY | O_CREAT | O_TRUNC, mode);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(fchmod(fd, mode), 0);
    ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

static int parse(const char *text, struct certificate *ret, struct error *err)
{
    return certificate_parse(text, strlen(text), "a.cert", ret, err);
}

/* The text is a certificate with the public key, and the secret one or "". */
static void expect(const char *text, const char *secret)
{
    struct certificate certificate = {0};
    struct error err = {0};
    int r = parse(text, &certificate, &err);
    ck_assert_msg(r == 0, "%s\n%s", err.text, text);
    ck_assert_str_eq(certificate.public_key, PUBLIC_KEY);
    ck_assert_str_eq(certificate.secret_key, secret);
}

static void expect_refusal(const char *text, const char *reason)
{
    struct certificate certificate = {.public_key = "untouched"};
    struct error err = {0};
    ck_assert_int_eq(parse(text, &certificate, &err), -EINVAL);
    ck_assert_str_eq(err.text, reason);
    ck_assert_str_eq(certificate.public_key, "untouched");
}

START_TEST(what_pyzmq_writes_is_read)
{
    expect(pyzmq_public, "");
    expect(pyzmq_secret, SECRET_KEY);
}
END_TEST

START_TEST(what_czmq_writes_is_read)
{
    zsys_handler_set(NULL);
    /* Among so many keys each character of Z85 comes in most places. */
    for (int i = 0; i < 100; i++) {
        struct certificate public = {0}, secret = {0};
        struct error err = {0};
        zcert_t *written = zcert_new();
        zcert_set_meta(written, "name", "%s", "pool # 1 \"of two\"");
        ck_assert_int_eq(zcert_save(written, in_folder("server")), 0);
        ck_assert_msg(certificate_read(in_folder("server"), &public, &err) == 0, "%s", err.text);
        ck_assert_str_eq(public.public_key, zcert_public_txt(written));
        ck_assert_str_eq(public.secret_key, "");
        ck_assert_msg(certificate_read(in_folder("server_secret"), &secret, &err) == 0, "%s", err.text);
        ck_assert_str_eq(secret.public_key, zcert_public_txt(written));
        ck_assert_str_eq(secret.secret_key, zcert_secret_txt(written));
        zcert_destroy(&written);
    }
}
END_TEST

START_TEST(what_people_write_is_read)
{
    expect(PUBLIC_KEY, "");
    expect(PUBLIC_KEY "\r\n", "");
    expect("\n  " PUBLIC_KEY "  \n\n", "");
    expect("# of the pool in the cellar\n"
           "public-key=" PUBLIC_KEY "\n",
           "");
    expect("public-key = '" PUBLIC_KEY "'\nsecret-key = '" SECRET_KEY "'", SECRET_KEY);
    expect("curve\r\n\tpublic-key\t=\t\"" PUBLIC_KEY "\"\r\n\r\n    secret-key = " SECRET_KEY " # keep\r\n",
           SECRET_KEY);
    expect("\xef\xbb\xbf"
           "curve\n    public-key = \"" PUBLIC_KEY "\"\n",
           "");
    expect("curve\n    public-key = \"" PUBLIC_KEY "\"\n"
           "    secret-key = \"0000000000000000000000000000000000000000\"\n",
           "");
    expect("other\n    public-key = \"short\"\ncurve\n    public-key = \"" PUBLIC_KEY "\"\n", "");
}
END_TEST

START_TEST(what_is_wrong_is_named_with_file_and_line)
{
    expect_refusal("", "a.cert: not a CURVE certificate: no public-key");
    expect_refusal("curve\n    secret-key = \"" SECRET_KEY "\"\n",
                   "a.cert: not a CURVE certificate: no public-key");
    expect_refusal("metadata\n    public-key = \"" PUBLIC_KEY "\"\n",
                   "a.cert: not a CURVE certificate: no public-key");
    expect_refusal("curve\n\n    public-key = \"abc\"\n", "a.cert:3: public-key has 3 characters, not 40");
    expect_refusal("curve\n    public-key = \n", "a.cert:2: public-key has 0 characters, not 40");
    expect_refusal("curve\n    public-key = \"abc", "a.cert:2: unterminated quote after public-key");
    expect_refusal("curve\n    public-key = \"abc_abcdefabcdefabcdefabcdefabcdefabcdef\"\n",
                   "a.cert:2: public-key: invalid Z85 at character 4");
    expect_refusal("curve\n    public-key = \"" PUBLIC_KEY "\"\n    public-key = \"" PUBLIC_KEY "\"\n",
                   "a.cert:3: duplicate public-key");
    struct error err = {0};
    struct certificate certificate;
    ck_assert_int_eq(certificate_parse("curve\0", 6, "b", &certificate, &err), -EINVAL);
    ck_assert_str_eq(err.text, "b: not a CURVE certificate: contains a zero byte");
    ck_assert_int_eq(certificate_read(in_folder("nothing"), &certificate, &err), -ENOENT);
    ck_assert_ptr_nonnull(strstr(err.text, "/nothing: No such file or directory"));
    ck_assert_int_eq(certificate_read(folder, &certificate, &err), -EINVAL);
    ck_assert_int_eq(certificate_read("/dev/zero", &certificate, &err), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, "/dev/zero: not a regular file"));
}
END_TEST

START_TEST(no_cut_of_a_certificate_does_harm)
{
    struct certificate certificate;
    for (size_t len = 0; len < sizeof pyzmq_secret; len++)
        certificate_parse(pyzmq_secret, len, "a.cert", &certificate, NULL);
    ck_assert_str_eq(certificate.secret_key, SECRET_KEY);
}
END_TEST

START_TEST(a_secret_that_others_can_read_is_refused)
{
    struct certificate certificate = {0};
    struct error err = {0};
    write_file("key_secret", pyzmq_secret, 0600);
    ck_assert_int_eq(certificate_read_secret(in_folder("key_secret"), &certificate, &err), 0);
    ck_assert_str_eq(certificate.secret_key, SECRET_KEY);
    write_file("key_secret", pyzmq_secret, 0604);
    ck_assert_int_eq(certificate_read_secret(in_folder("key_secret"), &certificate, &err), -EPERM);
    ck_assert_ptr_nonnull(strstr(err.text, "others can read it (mode 0604): chmod 600 "));
    write_file("key_secret", pyzmq_secret, 0640);
    ck_assert_int_eq(certificate_read_secret(in_folder("key_secret"), &certificate, &err), -EPERM);
}
END_TEST

START_TEST(the_secret_is_found_beside_the_public_certificate)
{
    struct certificate certificate = {0};
    struct error err = {0};
    write_file("key", pyzmq_public, 0644);
    ck_assert_int_eq(certificate_read_secret(in_folder("key"), &certificate, &err), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, "/key has no secret-key, and "));
    write_file("key_secret", pyzmq_secret, 0600);
    ck_assert_int_eq(certificate_read_secret(in_folder("key"), &certificate, &err), 0);
    ck_assert_str_eq(certificate.secret_key, SECRET_KEY);
    write_file("key_secret", pyzmq_public, 0600);
    ck_assert_int_eq(certificate_read_secret(in_folder("key"), &certificate, &err), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, "/key_secret has no secret-key"));
    ck_assert_int_eq(unlink(in_folder("key_secret")), 0);
    ck_assert_int_eq(mkfifo(in_folder("key_secret"), 0600), 0); /* it is not waited for */
    ck_assert_int_eq(certificate_read_secret(in_folder("key"), &certificate, &err), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, "/key_secret: not a regular file"));
}
END_TEST

START_TEST(what_is_written_is_read_by_czmq_and_never_overwritten)
{
    struct certificate ours = {0}, other = {0}, read = {0};
    struct error err = {0};
    struct stat st;
    zsys_handler_set(NULL);
    ck_assert_int_eq(zmq_curve_keypair(ours.public_key, ours.secret_key), 0);
    ck_assert_int_eq(zmq_curve_keypair(other.public_key, other.secret_key), 0);
    mode_t mask = umask(0);
    ck_assert_msg(certificate_write(folder, "ours", &ours, &err) == 0, "%s", err.text);
    umask(mask);
    ck_assert_int_eq(stat(in_folder("ours_secret"), &st), 0);
    ck_assert_uint_eq(st.st_mode & 0777, 0600);
    zcert_t *loaded = zcert_load(in_folder("ours"));
    ck_assert_ptr_nonnull(loaded);
    ck_assert_str_eq(zcert_public_txt(loaded), ours.public_key);
    ck_assert_str_eq(zcert_secret_txt(loaded), ours.secret_key); /* found beside it */
    zcert_destroy(&loaded);

    ck_assert_int_eq(certificate_write(folder, "ours", &other, &err), -EEXIST);
    ck_assert_ptr_nonnull(strstr(err.text, "/ours already exists"));
    ck_assert_int_eq(unlink(in_folder("ours")), 0);
    ck_assert_int_eq(certificate_write(folder, "ours", &other, &err), -EEXIST);
    ck_assert_ptr_nonnull(strstr(err.text, "/ours_secret already exists"));
    ck_assert_int_eq(access(in_folder("ours"), F_OK), -1);
    ck_assert_int_eq(certificate_read_secret(in_folder("ours_secret"), &read, &err), 0);
    ck_assert_str_eq(read.secret_key, ours.secret_key);
    ck_assert_int_eq(certificate_write("/nowhere", "x", &other, &err), -ENOENT);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, what_pyzmq_writes_is_read);
    tcase_add_test(tests, what_czmq_writes_is_read);
    tcase_add_test(tests, what_people_write_is_read);
    tcase_add_test(tests, what_is_wrong_is_named_with_file_and_line);
    tcase_add_test(tests, no_cut_of_a_certificate_does_harm);
    tcase_add_test(tests, a_secret_that_others_can_read_is_refused);
    tcase_add_test(tests, the_secret_is_found_beside_the_public_certificate);
    tcase_add_test(tests, what_is_written_is_read_by_czmq_and_never_overwritten);
}

int main(void)
{
    return run_tests("certificate", add);
}
