# SPDX-License-Identifier: Apache-2.0
"""Ray: two actors, each with a GPU of its own; one runs out of memory if it is told to."""
import sys

import ray
import torch


@ray.remote(num_gpus=1)
class Holder:
    def hold(self, n):
        self.kept = [torch.zeros(1 << 28, device="cuda") for _ in range(n)]  # HERE
        return torch.cuda.memory_allocated()

    def gpu(self):
        return ray.get_gpu_ids(), torch.cuda.device_count()


def main(n):
    ray.init(num_gpus=2, num_cpus=2, include_dashboard=False)
    actors = [Holder.remote() for _ in range(2)]
    print(sorted(ray.get([actor.gpu.remote() for actor in actors])))
    print(ray.get([actor.hold.remote(n) for actor in actors]))


main(20 if "fail" in sys.argv else 3)
