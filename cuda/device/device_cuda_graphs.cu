/* SPDX-License-Identifier: MIT */
/* Graphs of device.h over the CUDA runtime: a stream is captured, and what was captured is made ready to
 * launch and brought to the device at once. */

#include "cuda/device/device_cuda_parts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int device_record(struct device_stream *stream)
{
    if (stream->recording)
        return -EINVAL;
    int r = device_cuda_check(stream->device, "cudaStreamBeginCapture",
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
    struct device *device = stream->device;
    int r = device_cuda_check_memory(device, "cudaGraphInstantiate",
                                     cudaGraphInstantiate(&graph->exec, recorded, 0));
    if (r == 0)
        r = device_cuda_check_memory(device, "cudaGraphUpload", cudaGraphUpload(graph->exec, stream->stream));
    graph->n_kernels = stream->n_recorded;
    snprintf(graph->last_kernel, sizeof graph->last_kernel, "in a graph that ends with %.60s",
             device->last_kernel);
    return r;
}

int device_record_end(struct device_stream *stream, struct device_graph **ret_graph)
{
    struct device *device = stream->device;
    if (!stream->recording)
        return -EINVAL;
    stream->recording = stream->follows = false;
    cudaGraph_t recorded = NULL;
    cudaError_t e = cudaStreamEndCapture(stream->stream, &recorded);
    struct device_graph *graph = (struct device_graph *)calloc(1, sizeof *graph);
    int r = graph ? device_cuda_check_memory(device, "cudaStreamEndCapture", e) : -ENOMEM;
    if (r == 0 && !recorded)
        r = -EINVAL; /* it was spoiled on the way */
    if (r == 0)
        r = instantiate(stream, recorded, graph);
    if (recorded)
        cudaGraphDestroy(recorded);
    if (r < 0) {
        device_graph_free(graph);
        return r;
    }
    device->counts.captures++;
    *ret_graph = graph;
    return 0;
}

int device_graph_launch(struct device_stream *stream, struct device_graph *graph)
{
    struct device *device = stream->device;
    if (stream->recording)
        return -EINVAL;
    memcpy(device->last_kernel, graph->last_kernel, sizeof device->last_kernel);
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
