/* SPDX-License-Identifier: MIT */
/* Graphs of device.h over the CUDA runtime: a stream is captured, and what was captured is made ready to
 * launch and brought to the device at once. */

#include "cuda/device/device_cuda_parts.h"

#include <errno.h>
#include <stdlib.h>

const char *device_refusal(const struct device_stream *stream)
{
    return stream->refusal;
}

/* What the recording came to: 0, or it was refused. A driver that refuses is well, and queues on; if it is
 * not, the refusal is a fault. */
static int conclude(struct device_stream *stream, const char *call, cudaError_t e)
{
    struct device *device = stream->device;
    if (device->fault)
        return device->fault;
    if (e != cudaSuccess)
        device_cuda_refuse(stream, call, e);
    if (stream->refused == 0)
        return 0;
    const cudaError_t now = cudaStreamQuery(stream->stream);
    if (now != cudaSuccess && now != cudaErrorNotReady)
        return device_cuda_check(device, stream->refusal, now);
    cudaGetLastError();
    return stream->refused;
}

int device_record(struct device_stream *stream)
{
    if (stream->recording)
        return -EINVAL;
    stream->refused = 0;
    int r = conclude(stream, "cudaStreamBeginCapture",
                     cudaStreamBeginCapture(stream->stream, cudaStreamCaptureModeThreadLocal));
    if (r < 0)
        return r;
    stream->recording = true;
    stream->follows = false;
    stream->n_recorded = 0;
    return 0;
}

/* Makes of what was recorded something that can be launched, and brings it to the device. */
static int instantiate(struct device_stream *stream, cudaGraph_t recorded, struct device_graph *graph)
{
    int r = conclude(stream, "cudaGraphInstantiate", cudaGraphInstantiate(&graph->exec, recorded, 0));
    if (r == 0)
        r = conclude(stream, "cudaGraphUpload", cudaGraphUpload(graph->exec, stream->stream));
    graph->n_kernels = stream->n_recorded;
    graph->last = stream->device->last;
    graph->last.in_graph = true;
    return r;
}

int device_record_end(struct device_stream *stream, struct device_graph **ret_graph)
{
    if (!stream->recording)
        return -EINVAL;
    stream->recording = stream->follows = false;
    cudaGraph_t recorded = NULL;
    cudaError_t e = cudaStreamEndCapture(stream->stream, &recorded);
    if (e == cudaSuccess && !recorded)
        e = cudaErrorStreamCaptureInvalidated; /* it was spoiled on the way */
    int r = conclude(stream, "cudaStreamEndCapture", e);
    struct device_graph *graph = (struct device_graph *)calloc(1, sizeof *graph);
    if (r == 0)
        r = graph ? instantiate(stream, recorded, graph)
                  : conclude(stream, "calloc", cudaErrorMemoryAllocation);
    if (recorded)
        cudaGraphDestroy(recorded);
    if (r < 0) {
        device_graph_free(graph);
        return r;
    }
    stream->device->counts.captures++;
    *ret_graph = graph;
    return 0;
}

int device_graph_launch(struct device_stream *stream, struct device_graph *graph)
{
    struct device *device = stream->device;
    if (stream->recording)
        return -EINVAL;
    device->last = graph->last;
    device->counts.graph_launches++;
    stream->follows = false;
    return device_cuda_check(device, "cudaGraphLaunch", cudaGraphLaunch(graph->exec, stream->stream));
}

uint32_t device_graph_kernels(const struct device_graph *graph)
{
    return graph->n_kernels;
}

void device_graph_free(struct device_graph *graph)
{
    if (graph && graph->exec)
        cudaGraphExecDestroy(graph->exec);
    free(graph);
}
