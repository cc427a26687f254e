/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libgpucache-gate.so: lets libgpucache.so, in the same folder, into a program whose C library it can run with.
 *
 *     LD_PRELOAD=/opt/gpucache/libgpucache-gate.so program
 *         a glibc as libgpucache.so asks for    executes the program again, with libgpucache.so in the gate's place
 *         older, or musl                        says so once, and the program runs on
 *
 * For containers, whose images nobody has looked into: of a preloaded library that needs a newer glibc, the loaders of
 * older ones and of musl end the program.  The gate needs no library at all, so each of them loads it.
 *
 * Invariants  1 The program's arguments, variables and descriptors stay, but for LD_PRELOAD.  Its children have
 *               libgpucache.so there, and are not executed twice.
 *             2 Only process 1, which is what a container was made for, speaks: an image's shell would say it for every command.
 * Threads     The loader calls it before the program's first instruction.
 * Failure     The program runs on without libgpucache.so.
 * Limits      A program that was started by the loader's name (ld.so PROGRAM) is let alone.  A name of the process that
 *             is not its file's, as of a link, is in argv[0] only.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/syscall.h>

#define GATE "libgpucache-gate.so"
#define REAL "libgpucache.so"

/* GLIBC_MINOR: of the oldest glibc that libgpucache.so runs with; the Makefile asks the library. */
#define TEXT_OF(x) #x
#define TEXT(x)    TEXT_OF(x)

/* Zero where the C library is another. */
extern const char *gnu_get_libc_version(void) __attribute__((weak, visibility("default")));

static long call(long number, long a, long b, long c, long d)
{
	long result;
#if defined(__x86_64__)
	register long r10 __asm__("r10") = d;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10)
			 : "rcx", "r11", "memory");
#elif defined(__aarch64__)
	register long x8 __asm__("x8") = number;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;

	__asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory");
	result = x0;
#else
#error "no system calls for this machine"
#endif
	return result;
}

static size_t length(const char *text)
{
	size_t n = 0;

	while (text[n])
		n++;
	return n;
}

static bool begins(const char *text, const char *with)
{
	while (*with && *text == *with) {
		text++;
		with++;
	}
	return *with == '\0';
}

static void say(const char *text)
{
	if (call(SYS_getpid, 0, 0, 0, 0) == 1)
		(void)call(SYS_write, 2, (long)text, (long)length(text), 0);
}

/* "2.36": the number behind the point; 0 if it is none. */
static unsigned minor_of(const char *version)
{
	unsigned minor = 0;

	if (!begins(version, "2."))
		return 0;
	for (version += 2; *version >= '0' && *version <= '9' && minor < 1000; version++)
		minor = 10 * minor + (unsigned)(*version - '0');
	return minor;
}

/*
 * Copies LD_PRELOAD with the library's name for the gate's; *ret_real becomes the library's place in the copy, and its size.
 * False if it is too long, or does not name the gate.
 */
static bool replace(const char *preload, char *copy, size_t size, size_t *ret_at, size_t *ret_len)
{
	size_t n = 0;
	size_t word = 0;
	bool is_found = false;

	for (; *preload; preload++) {
		if (n + sizeof REAL >= size)
			return false;
		if (!is_found && begins(preload, GATE)) {
			for (const char *name = REAL; *name; name++)
				copy[n++] = *name;
			preload += sizeof GATE - 2;
			is_found = true;
			*ret_at = word;
			*ret_len = n - word;
			continue;
		}
		copy[n++] = *preload;
		if (*preload == ':' || *preload == ' ')
			word = n;
	}
	copy[n] = '\0';
	return is_found;
}

static bool is_readable(const char *name, size_t len)
{
	static char path[4096];
	size_t i;

	for (i = 0; i < len && i < sizeof path - 1; i++)
		path[i] = name[i];
	path[i] = '\0';
	return call(SYS_faccessat, AT_FDCWD, (long)path, 4 /* R_OK */, 0) == 0;
}

/* The program's file; false if it is the loader, which would take the program's arguments for its own. */
static bool find_program(char *path, size_t size)
{
	long n = call(SYS_readlinkat, AT_FDCWD, (long)"/proc/self/exe", (long)path, (long)size - 1);
	const char *name = path;

	if (n <= 0)
		return false;
	path[n] = '\0';
	for (const char *at = path; *at; at++)
		if (*at == '/')
			name = at + 1;
	return !begins(name, "ld-") && !begins(name, "ld.so");
}

static void pass(char **argv, char **envp)
{
	static char copy[8192] = "LD_PRELOAD=";
	static char program[4096];
	const size_t head = length(copy);
	char **variable = NULL;
	char *before;
	size_t at = 0;
	size_t len = 0;

	for (char **one = envp; *one; one++) {
		if (begins(*one, "GPUCACHE=0") && (*one)[10] == '\0')
			return;
		if (!variable && begins(*one, "LD_PRELOAD="))
			variable = one;
	}
	if (!variable || !replace(*variable + head, copy + head, sizeof copy - head, &at, &len))
		return;
	if (!is_readable(copy + head + at, len)) {
		say("gpucache: " REAL " is not beside " GATE
		    ", or not readable: the program runs without it\n");
		return;
	}
	if (!find_program(program, sizeof program)) {
		say("gpucache: /proc does not name the program's file: it runs without gpucache\n");
		return;
	}
	before = *variable;
	*variable = copy;
	(void)call(SYS_execve, (long)program, (long)argv, (long)envp, 0);
	*variable = before;
	say("gpucache: the program's file cannot be executed again: it runs without gpucache\n");
}

/* glibc passes the program's arguments to constructors; musl does not. */
__attribute__((constructor)) static void decide(int argc, char **argv, char **envp)
{
	(void)argc;
	if (!gnu_get_libc_version)
		say("gpucache: the program's C library is not glibc: it runs without gpucache\n");
	else if (minor_of(gnu_get_libc_version()) < GLIBC_MINOR)
		say("gpucache: the program's glibc is older than 2." TEXT(
			GLIBC_MINOR) ": it runs without gpucache\n");
	else
		pass(argv, envp);
}
