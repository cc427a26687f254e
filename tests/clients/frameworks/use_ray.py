# SPDX-License-Identifier: Apache-2.0
"""Ray: two actors, each with a GPU of its own, that hold tensors: use_ray.py TENSORS [host]."""
import sys

import ray
import torch


@ray.remote(num_gpus=1)
class Holder:
    def hold(self, n, is_on_host):
        self.kept = []
        for _ in range(n):
            made = torch.zeros(1 << 24, device="cuda")  # HERE
            self.kept.append(made.cpu() if is_on_host else made)
        return torch.cuda.memory_allocated()

    def gpu(self):
        return ray.get_gpu_ids(), torch.cuda.device_count()


def main(n, is_on_host):
    ray.init(num_gpus=2, num_cpus=2, include_dashboard=False)
    actors = [Holder.remote() for _ in range(2)]
    print(sorted(ray.get([actor.gpu.remote() for actor in actors])))
    print(ray.get([actor.hold.remote(n, is_on_host) for actor in actors]))


main(int(sys.argv[1]), "host" in sys.argv)
