// SPDX-License-Identifier: Apache-2.0
// A buffer that owns device memory of one stream; moved, never copied.
#include <cstdio>
#include <stdexcept>
#include <utility>

#include <cuda_runtime.h>
#include <gpucache.h>

template <typename T> class Buffer {
public:
	Buffer(std::size_t n, cudaStream_t stream) : n_(n), stream_(stream)
	{
		void *memory = nullptr;

		if (int error = gpucache_malloc_on(&memory, n * sizeof(T), stream))
			throw std::runtime_error(gpucache_error_text(error));
		data_ = static_cast<T *>(memory);
	}
	Buffer(Buffer &&other) noexcept
		: data_(std::exchange(other.data_, nullptr)), n_(other.n_), stream_(other.stream_)
	{
	}
	Buffer(const Buffer &) = delete;
	Buffer &operator=(const Buffer &) = delete;
	~Buffer() { gpucache_free_on(data_, stream_); }
	T *data() const { return data_; }
	std::size_t size() const { return n_; }

private:
	T *data_ = nullptr;
	std::size_t n_;
	cudaStream_t stream_;
};

int main()
{
	cudaStream_t stream;

	if (cudaStreamCreate(&stream))
		return 1;
	try {
		Buffer<float> first(1 << 20, stream);
		Buffer<float> second = std::move(first);

		std::printf("%zu floats at %s\n", second.size(), second.data() ? "an address" : "none");
		Buffer<char> impossible(std::size_t{1} << 60, stream);
	} catch (const std::runtime_error &error) {
		std::printf("%s\n", error.what());
	}
	return 0;
}
