/* SPDX-License-Identifier: MIT */
/* Whose connections are counted together. */

#include "gateway/http/addresses.h"
#include "tests/unit/run.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

static struct sockaddr_storage from(const char *text)
{
    struct sockaddr_storage storage = {0};
    struct sockaddr_in *v4 = (void *)&storage;
    struct sockaddr_in6 *v6 = (void *)&storage;
    if (strchr(text, ':')) {
        storage.ss_family = AF_INET6;
        ck_assert_int_eq(inet_pton(AF_INET6, text, &v6->sin6_addr), 1);
    } else {
        storage.ss_family = AF_INET;
        ck_assert_int_eq(inet_pton(AF_INET, text, &v4->sin_addr), 1);
    }
    return storage;
}

static bool has_room(const struct addresses *addresses, const char *text)
{
    struct sockaddr_storage storage = from(text);
    return addresses_have_room(addresses, (struct sockaddr *)&storage);
}

static struct address *take(struct addresses *addresses, const char *text)
{
    struct sockaddr_storage storage = from(text);
    return addresses_take(addresses, (struct sockaddr *)&storage);
}

START_TEST(an_address_has_so_many_and_no_more)
{
    struct addresses addresses = {.seed = 7, .most = 2};
    struct address *first = take(&addresses, "192.0.2.1"), *second = take(&addresses, "192.0.2.1");
    ck_assert_ptr_eq(first, second);
    ck_assert(!has_room(&addresses, "192.0.2.1"));
    ck_assert(!has_room(&addresses, "::ffff:192.0.2.1"));
    ck_assert(has_room(&addresses, "192.0.2.2"));
    addresses_release(&addresses, first);
    ck_assert(has_room(&addresses, "192.0.2.1"));
    addresses_release(&addresses, second);
    ck_assert_ptr_null(addresses.table);
}
END_TEST

START_TEST(a_network_of_ipv6_is_one_address_and_link_local_ones_are_each)
{
    struct addresses addresses = {.seed = 7, .most = 1};
    struct address *one = take(&addresses, "2001:db8:1:2::1"), *local = take(&addresses, "fe80::1");
    ck_assert(!has_room(&addresses, "2001:db8:1:2:ffff::9"));
    ck_assert(has_room(&addresses, "2001:db8:1:3::1"));
    ck_assert(!has_room(&addresses, "fe80::1"));
    ck_assert(has_room(&addresses, "fe80::2"));
    addresses_release(&addresses, one);
    addresses_release(&addresses, local);
    ck_assert_ptr_null(addresses.table);
}
END_TEST

START_TEST(loopback_is_not_counted)
{
    struct addresses addresses = {.seed = 7, .most = 1};
    static const char *const own[] = {"127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        ck_assert_ptr_null(take(&addresses, own[i]));
        ck_assert_ptr_null(take(&addresses, own[i]));
        ck_assert(has_room(&addresses, own[i]));
    }
    ck_assert(addresses_have_room(&addresses, NULL));
    ck_assert_ptr_null(addresses_take(&addresses, NULL));
    addresses_release(&addresses, NULL);
}
END_TEST

START_TEST(zero_is_no_limit)
{
    struct addresses addresses = {.seed = 7};
    struct address *address = NULL;
    for (int i = 0; i < 1000; i++)
        address = take(&addresses, "192.0.2.1");
    ck_assert(has_room(&addresses, "192.0.2.1"));
    for (int i = 0; i < 1000; i++)
        addresses_release(&addresses, address);
    ck_assert_ptr_null(addresses.table);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, an_address_has_so_many_and_no_more);
    tcase_add_test(tests, a_network_of_ipv6_is_one_address_and_link_local_ones_are_each);
    tcase_add_test(tests, loopback_is_not_counted);
    tcase_add_test(tests, zero_is_no_limit);
}

int main(void)
{
    return run_tests("gateway/addresses", add);
}
