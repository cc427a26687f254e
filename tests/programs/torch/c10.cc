/* SPDX-License-Identifier: Apache-2.0 */
#include "c10.hh"

#include <cstdio>
#include <utility>

namespace c10
{

Error::Error(SourceLocation source, std::string message)
    : message_(std::move(message)), what_(std::string(source.function) + ": " + message_)
{
}

Error::~Error()
{
	std::printf("destroyed\n");
}

const char *Error::what() const noexcept
{
	return what_.c_str();
}

OutOfMemoryError::~OutOfMemoryError() = default;

} // namespace c10
