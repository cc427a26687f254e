// SPDX-License-Identifier: Apache-2.0
/*
 * The common program of the peers of `make bench-peers`; each peer defines take() and give().
 *
 *      PEER pair LIVE THREADS    nanoseconds of a free and an allocation of 512 B, with LIVE other blocks: one line per
 *      batch PEER trace FILE           plays a trace (tests/bench/traces, unpacked): prints the peak of reserved bytes
 *
 * With several threads each has its own pairs, and a line is the time of all divided by the pairs of all.
 */
#ifndef PEER_HH
#define PEER_HH

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include <cuda_runtime_api.h>

/* Defined by each peer; take() ends the process with 3 if it runs out of memory. */
void start();
void *take(std::size_t size);
void give(void *ptr, std::size_t size);

namespace peer {

constexpr std::size_t SIZE = 512;
constexpr int PAIRS = 200, BATCHES = 200, NEIGHBOURS = 64;

inline double now()
{
	return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/* Pairs of one thread: each frees one of its blocks and takes it again. */
inline void turn(std::vector<void *> &blocks, int pairs)
{
	for (int i = 0; i < pairs; i++) {
		void *&block = blocks[static_cast<std::size_t>(i) % blocks.size()];

		give(block, SIZE);
		block = take(SIZE);
	}
}

inline int pair(std::size_t live, std::size_t n_threads)
{
	std::vector<void *> others;
	std::vector<std::vector<void *>> blocks(n_threads);

	for (std::size_t i = 0; i < live; i++)
		others.push_back(take(SIZE));
	for (auto &own : blocks)
		for (int i = 0; i < NEIGHBOURS / static_cast<int>(n_threads); i++)
			own.push_back(take(SIZE));
	for (int batch = 0; batch < BATCHES; batch++) {
		double begin = now();
		std::vector<std::thread> threads;

		if (n_threads == 1)
			turn(blocks[0], PAIRS);
		else
			for (auto &own : blocks)
				threads.emplace_back([&own] { cudaSetDevice(0); turn(own, 10 * PAIRS); });
		for (auto &thread : threads)
			thread.join();
		std::printf("%.1f\n", (now() - begin) / (n_threads == 1 ? PAIRS : 10.0 * PAIRS * static_cast<double>(n_threads)));
	}
	return 0;
}

inline std::size_t used()
{
	std::size_t free = 0, total = 0;

	cudaMemGetInfo(&free, &total);
	return total - free;
}

inline int trace(const char *path)
{
	std::ifstream file(path);
	std::unordered_map<std::string, std::pair<void *, std::size_t>> live;
	std::string line;
	std::size_t before, peak = 0;

	cudaFree(nullptr);
	before = used();
	start();
	std::getline(file, line);
	while (std::getline(file, line)) {
		std::size_t a = line.find(','), b = line.find(',', a + 1), c = line.find(',', b + 1);
		std::string op = line.substr(0, a), id = line.substr(a + 1, b - a - 1);

		if (op == "alloc") {
			std::size_t size = std::stoull(line.substr(b + 1, c - b - 1));

			live[id] = { take(size), size };
			peak = std::max(peak, used() - before);
		} else if (op == "free" && live.count(id)) {
			give(live[id].first, live[id].second);
			live.erase(id);
		}
	}
	std::printf("%zu\n", peak);
	std::fflush(stdout);
	std::_Exit(0);
}

}

int main(int argc, char **argv)
{
	if (argc == 4 && std::strcmp(argv[1], "pair") == 0) {
		cudaFree(nullptr);
		start();
		int status = peer::pair(std::stoul(argv[2]), std::stoul(argv[3]));
		std::fflush(stdout);
		std::_Exit(status);
	}
	if (argc == 3 && std::strcmp(argv[1], "trace") == 0)
		return peer::trace(argv[2]);
	std::fprintf(stderr, "usage: pair LIVE THREADS | trace FILE\n");
	return 2;
}

#endif
