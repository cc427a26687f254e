/* SPDX-License-Identifier: Apache-2.0 */
/*
 * As much of PyTorch as its pluggable allocator needs, in three libraries as there: the classes of libc10_cuda, what
 * calls the allocator (libtorch), and a program.  Names and signatures are those of PyTorch 2.
 */
#pragma once

#include <cstdint>
#include <exception>
#include <string>

namespace c10
{

struct SourceLocation {
	const char *function;
	const char *file;
	uint32_t line;
};

class __attribute__((visibility("default"))) Error : public std::exception
{
    public:
	Error(SourceLocation source, std::string message);
	~Error() override;
	const char *what() const noexcept override;

    private:
	std::string message_;
	std::string what_;
};

class __attribute__((visibility("default"))) OutOfMemoryError : public Error
{
    public:
	using Error::Error;
	~OutOfMemoryError() override;
};

}
