# SPDX-License-Identifier: Apache-2.0
"""Vectors in indices of faiss, searched, and more indices until there is no more."""
import json

import faiss
import numpy

VECTORS = numpy.ones((1 << 18, 128), numpy.float32)


def index_of(resources):
    index = faiss.GpuIndexFlatL2(resources, VECTORS.shape[1])
    index.add(VECTORS)  # HERE
    return index


def main():
    resources = faiss.StandardGpuResources()
    held = [index_of(resources)]
    print(held[0].ntotal, held[0].search(VECTORS[:10], 4)[0].shape)
    try:
        while True:
            held.append(index_of(resources))
    except RuntimeError as error:
        print(len(held), "out of memory" in str(error))
    kinds = resources.getMemoryInfo()[0]
    print(kinds)
    print(json.dumps({"held": sum(size for _, size in kinds.values())}))


main()
