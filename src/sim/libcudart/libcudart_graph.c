/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stand-in runtime: graphs, and user objects that live as long as a graph.
 *
 * The program and each graph hold a number of references to an object; an executable graph holds as many as its graph.
 * When the last reference is dropped, the object's destructor runs.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "sim/libcudart/runtime.h"

struct object {
	cudaHostFn_t destroy;
	void *ptr;
	unsigned refs;
};

/* The references held by a graph, or by an executable one. */
struct hold {
	const void *graph;
	struct object *object;
	unsigned n;
	struct hold *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct hold *holds;

static struct object *object_of(cudaUserObject_t handle)
{
	return (struct object *)(void *)handle;
}

/* Drops n references.  The destructor runs without the lock, because it may call functions of this file. */
static void drop(struct object *object, unsigned n)
{
	pthread_mutex_lock(&lock);
	object->refs -= n < object->refs ? n : object->refs;
	bool is_last = object->refs == 0;
	pthread_mutex_unlock(&lock);
	if (is_last) {
		object->destroy(object->ptr);
		free(object);
	}
}

static bool hold(const void *graph, struct object *object, unsigned n)
{
	struct hold *made = malloc(sizeof *made);

	if (!made)
		return false;
	*made = (struct hold){ .graph = graph, .object = object, .n = n, .next = holds };
	holds = made;
	return true;
}

/* Drops up to n references of the graph to `object`, or to one of its objects if that is NULL.  False: it has none. */
static bool let_go(const void *graph, const struct object *object, unsigned n)
{
	struct hold *found = NULL;

	pthread_mutex_lock(&lock);
	for (struct hold **at = &holds; *at; at = &(*at)->next) {
		if ((*at)->graph != graph || (object && (*at)->object != object))
			continue;
		found = *at;
		*at = found->next;
		break;
	}
	pthread_mutex_unlock(&lock);
	if (!found)
		return false;
	drop(found->object, n < found->n ? n : found->n);
	if (n < found->n) {
		pthread_mutex_lock(&lock);
		found->n -= n;
		found->next = holds;
		holds = found;
		pthread_mutex_unlock(&lock);
	} else {
		free(found);
	}
	return true;
}

static void graph_ends(const void *graph)
{
	while (let_go(graph, NULL, ~0U))
		;
}

cudaError_t cudaUserObjectCreate(cudaUserObject_t *handle, void *ptr, cudaHostFn_t destroy,
	unsigned int refs, unsigned int flags)
{
	struct object *object;

	if (!handle || !destroy || !refs)
		return rt_give(CUDA_ERROR_INVALID_VALUE);
	object = malloc(sizeof *object);
	if (!object)
		return rt_give(CUDA_ERROR_OUT_OF_MEMORY);
	*object = (struct object){ .destroy = destroy, .ptr = ptr, .refs = refs };
	*handle = (cudaUserObject_t)(void *)object;
	return cudaSuccess;
}

cudaError_t cudaUserObjectRetain(cudaUserObject_t handle, unsigned int n)
{
	pthread_mutex_lock(&lock);
	object_of(handle)->refs += n;
	pthread_mutex_unlock(&lock);
	return cudaSuccess;
}

cudaError_t cudaUserObjectRelease(cudaUserObject_t handle, unsigned int n)
{
	drop(object_of(handle), n);
	return cudaSuccess;
}

#define MOVES_REFERENCES 1 /* cudaGraphUserObjectMove */

cudaError_t cudaGraphRetainUserObject(
	cudaGraph_t graph, cudaUserObject_t handle, unsigned int n, unsigned int flags)
{
	pthread_mutex_lock(&lock);
	bool is_held = hold(graph, object_of(handle), n);
	if (is_held && !(flags & MOVES_REFERENCES))
		object_of(handle)->refs += n;
	pthread_mutex_unlock(&lock);
	return rt_give(is_held ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
}

cudaError_t cudaGraphReleaseUserObject(cudaGraph_t graph, cudaUserObject_t handle, unsigned int n)
{
	return rt_give(
		let_go(graph, object_of(handle), n) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags)
{
	cudaError_t error = rt_begin_with_context();

	if (error == cudaSuccess)
		error = rt_give(cu.graph_instantiate(exec, graph, flags));
	if (error != cudaSuccess)
		return error;
	pthread_mutex_lock(&lock);
	/* hold() inserts at the head, so the loop does not visit new entries. */
	for (const struct hold *at = holds; at; at = at->next)
		if (at->graph == graph && hold(*exec, at->object, at->n))
			at->object->refs += at->n;
	pthread_mutex_unlock(&lock);
	return error;
}

cudaError_t cudaGraphInstantiateWithFlags(
	cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags)
{
	return cudaGraphInstantiate(exec, graph, flags);
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *n)
{
	WITH_CONTEXT(cu.graph_nodes(graph, nodes, n));
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
	WITH_CONTEXT(cu.graph_launch[0](exec, stream));
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
	graph_ends(exec);
	WITH_CONTEXT(cu.graph_exec_destroy(exec));
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
	graph_ends(graph);
	WITH_CONTEXT(cu.graph_destroy(graph));
}
