/* SPDX-License-Identifier: MIT */
/* XPUB without water marks: it never drops for a slow broker, because the window bounds what is under way.
 *
 * Every subscription and unsubscription is passed up (XPUB_VERBOSER), duplicates too, for a broker that was
 * started again subscribes to what its forerunner had. */

#include "worker/link/stream.h"

#include <errno.h>
#include <string.h>

#include <zmq.h>

#define LINGER_MS 2000

int stream_open(struct stream *stream, void *zmq, const struct listener *listener, struct error *err)
{
    const int unlimited = 0, verbose = 1, linger = LINGER_MS;
    *stream = (struct stream){.socket = zmq_socket(zmq, ZMQ_XPUB)};
    if (!stream->socket)
        return error_set(err, -errno, "stream: %s", zmq_strerror(errno));
    /* Each is relied on: without the linger, say, the end would wait for a broker that is gone. */
    if (zmq_setsockopt(stream->socket, ZMQ_SNDHWM, &unlimited, sizeof unlimited) < 0 ||
        zmq_setsockopt(stream->socket, ZMQ_XPUB_VERBOSER, &verbose, sizeof verbose) < 0 ||
        zmq_setsockopt(stream->socket, ZMQ_LINGER, &linger, sizeof linger) < 0 ||
        socket_news_init(stream->socket, &stream->news) < 0) {
        int code = error_set(err, -errno, "stream: %s", zmq_strerror(errno));
        stream_close(stream);
        return code;
    }
    int r = listener_bind(listener, stream->socket, err);
    if (r < 0)
        stream_close(stream);
    else
        memcpy(stream->endpoint, listener->endpoint, sizeof stream->endpoint);
    return r;
}

void stream_close(struct stream *stream)
{
    if (stream->socket)
        zmq_close(stream->socket);
    window_deinit(&stream->window);
    *stream = (struct stream){0};
}

void stream_read(struct stream *stream)
{
    uint8_t said[64]; /* a longer subscription is cut, which does not matter here */
    int len;
    if (!stream->news.look)
        return;
    while ((len = zmq_recv(stream->socket, said, sizeof said, ZMQ_DONTWAIT)) >= 1) {
        bool subscribes = said[0] == 1;
        if (len == 1)
            stream->n_everything += subscribes ? 1 : -1;
        else if (subscribes && len > (int)sizeof stream->marks[0])
            memcpy(&stream->marks[stream->n_marks++ % STREAM_MARKS], said + 1, sizeof stream->marks[0]);
    }
    if (len < 0) /* else it was empty, which is no subscription */
        socket_news_over(&stream->news);
}

bool stream_is_heard(const struct stream *stream, const struct id128 *mark)
{
    if (stream->n_everything > 0)
        return true;
    for (uint32_t i = 0; i < stream->n_marks && i < STREAM_MARKS; i++)
        if (memcmp(&stream->marks[i], mark, sizeof *mark) == 0)
            return true;
    return false;
}

static void send_frame(struct stream *stream, struct bytes topic, struct bytes payload)
{
    /* XPUB does not block without a water mark, so memory alone can be short. What could not be sent the
     * broker asks for again; but a topic without its payload would become part of the next message. */
    zmq_msg_t message;
    if (zmq_msg_init_size(&message, payload.len) < 0)
        return;
    memcpy(zmq_msg_data(&message), payload.data, payload.len);
    stream->news.look = true;
    if (zmq_send(stream->socket, topic.data, topic.len, ZMQ_SNDMORE | ZMQ_DONTWAIT) < 0 ||
        zmq_msg_send(&message, stream->socket, ZMQ_DONTWAIT) < 0)
        zmq_msg_close(&message);
}

int stream_publish(struct stream *stream, const uint8_t topic[PROTO_TOPIC_BYTES], struct message *frame)
{
    struct bytes kept_topic, payload;
    int r = window_add(&stream->window, topic, frame);
    if (r < 0)
        return r;
    if (window_get(&stream->window, stream->window.last, &kept_topic, &payload))
        send_frame(stream, kept_topic, payload);
    return 0;
}

void stream_tell(struct stream *stream, const uint8_t topic[PROTO_TOPIC_BYTES], const struct message *message)
{
    struct buffer payload = {0};
    if (message_encode(message, &payload) == 0)
        send_frame(stream, (struct bytes){topic, PROTO_TOPIC_BYTES},
                   (struct bytes){payload.data, payload.len});
    buffer_deinit(&payload);
}

void stream_resend(struct stream *stream, uint64_t wseq)
{
    struct bytes topic, payload;
    if (wseq <= stream->window.acked)
        wseq = stream->window.acked + 1;
    for (; window_get(&stream->window, wseq, &topic, &payload); wseq++)
        send_frame(stream, topic, payload);
}
