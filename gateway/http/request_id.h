/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_HTTP_REQUEST_ID_H
#define GATEWAY_HTTP_REQUEST_ID_H

/* The header `x-request-id`, which identifies a request in the answer's headers, in the request log, in the
 * pool's log and in `quern status --requests`. The client's id is kept if it is 1 to 128 bytes of printable
 * ASCII without blanks; otherwise a new one is made: "req_" and 32 hexadecimal digits. */

#define REQUEST_ID_BYTES 129 /* zero-terminated */

/* Takes the client's id, `said`, or makes one. `said` may be NULL. */
void request_id_take(const char *said, char ret_id[REQUEST_ID_BYTES]);

#endif
