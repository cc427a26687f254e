/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For the wheel: what is linked with this object runs with glibc 2.28 and later, although a newer one links it.
 *
 * glibc moved functions into libc.so.6 and gave them a new version there, which older systems lack; the old version
 * stayed.  Each function here has the name of such a function and calls that old version.  It is hidden, so the whole
 * binary calls it, static libraries included, and no other binary does.  Where the old one is in a library of its own,
 * portable.mk links that.  tools/package/wheel.py names what is missing here when a newer function is called.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#if defined(__x86_64__)
#define OLDEST           "GLIBC_2.2.5"
#define CONDATTR         "GLIBC_2.3.3"
#define FSTATAT          "GLIBC_2.4"
#define STAT_OF_THE_HOST 1 /* _STAT_VER of sys/stat.h, until glibc 2.32 */
#else
#define OLDEST           "GLIBC_2.17"
#define CONDATTR         OLDEST
#define FSTATAT          OLDEST
#define STAT_OF_THE_HOST 0
#endif

/* Defines NAME by an older version of the function of that name. */
#define FORWARD(type, name, parameters, arguments) \
	FORWARD_TO(OLDEST, type, name, parameters, arguments)
#define FORWARD_TO(version, type, name, parameters, arguments)          \
	extern __typeof__(name) old_##name __attribute__((copy(name))); \
	__asm__(".symver old_" #name "," #name "@" version);            \
	type name parameters;                                           \
	type name parameters                                            \
	{                                                               \
		return old_##name arguments;                            \
	}

/* Since 2.32. */
FORWARD(int, pthread_sigmask, (int how, const sigset_t *set, sigset_t *old), (how, set, old))

/* Since 2.34: from libpthread.so.0. */
FORWARD(int, pthread_create,
	(pthread_t * id, const pthread_attr_t *with, void *(*run)(void *), void *argument),
	(id, with, run, argument))
FORWARD(int, pthread_join, (pthread_t id, void **result), (id, result))
FORWARD(int, pthread_once, (pthread_once_t * once, void (*run)(void)), (once, run))
FORWARD(int, pthread_key_create, (pthread_key_t * key, void (*end)(void *)), (key, end))
FORWARD(int, pthread_setspecific, (pthread_key_t key, const void *value), (key, value))
FORWARD_TO(CONDATTR, int, pthread_condattr_setclock, (pthread_condattr_t * with, clockid_t clock),
	(with, clock))
FORWARD(int, pthread_rwlock_init, (pthread_rwlock_t * lock, const pthread_rwlockattr_t *with),
	(lock, with))
FORWARD(int, pthread_rwlock_destroy, (pthread_rwlock_t * lock), (lock))
FORWARD(int, pthread_rwlock_rdlock, (pthread_rwlock_t * lock), (lock))
FORWARD(int, pthread_rwlock_tryrdlock, (pthread_rwlock_t * lock), (lock))
FORWARD(int, pthread_rwlock_wrlock, (pthread_rwlock_t * lock), (lock))
FORWARD(int, pthread_rwlock_unlock, (pthread_rwlock_t * lock), (lock))

/* Since 2.34: from libdl.so.2.  libgpucache.so brings two of these itself. */
#ifndef BRINGS_DLSYM
FORWARD(void *, dlsym, (void *restrict handle, const char *restrict name), (handle, name))
FORWARD(int, dlclose, (void *handle), (handle))
#endif
FORWARD(void *, dlopen, (const char *path, int mode), (path, mode))
FORWARD(void *, dlvsym,
	(void *restrict handle, const char *restrict name, const char *restrict version),
	(handle, name, version))
FORWARD(int, dladdr, (const void *address, Dl_info *info), (address, info))

/* Since 2.34: from librt.so.1. */
FORWARD(int, shm_open, (const char *name, int flags, mode_t mode), (name, flags, mode))
FORWARD(int, shm_unlink, (const char *name), (name))

/* Since 2.33; before that, sys/stat.h called these. */
#define STAT(name, old, parameters, ...)                 \
	extern int old_##name(int version, __VA_ARGS__); \
	__asm__(".symver old_" #name "," old);           \
	int name parameters;                             \
	int name parameters
STAT(stat, "__xstat@" OLDEST, (const char *restrict path, struct stat *restrict into),
	const char *path, struct stat *into)
{
	return old_stat(STAT_OF_THE_HOST, path, into);
}
STAT(lstat, "__lxstat@" OLDEST, (const char *restrict path, struct stat *restrict into),
	const char *path, struct stat *into)
{
	return old_lstat(STAT_OF_THE_HOST, path, into);
}
STAT(fstat, "__fxstat@" OLDEST, (int fd, struct stat *into), int fd, struct stat *into)
{
	return old_fstat(STAT_OF_THE_HOST, fd, into);
}
STAT(fstatat, "__fxstatat@" FSTATAT,
	(int folder, const char *restrict path, struct stat *restrict into, int flags), int folder,
	const char *path, struct stat *into, int flags)
{
	return old_fstatat(STAT_OF_THE_HOST, folder, path, into, flags);
}

/* Since 2.34. */
void closefrom(int lowest)
{
	DIR *open = opendir("/proc/self/fd");
	struct dirent *entry;

	while (open && (entry = readdir(open))) {
		int fd = atoi(entry->d_name);

		if (fd >= lowest && fd != dirfd(open))
			(void)close(fd);
	}
	if (open)
		(void)closedir(open);
}

/*
 * Since 2.34 glibc runs the constructors of a program itself; before that, a function that the program passed to it did.
 * Each version of glibc calls that function where it is passed.
 */
typedef void constructor(int count, char **arguments, char **environment);
extern constructor *__preinit_array_start[] __attribute__((visibility("hidden")));
extern constructor *__preinit_array_end[] __attribute__((visibility("hidden")));
extern constructor *__init_array_start[] __attribute__((visibility("hidden")));
extern constructor *__init_array_end[] __attribute__((visibility("hidden")));
extern void _init(void);

static void construct(int count, char **arguments, char **environment)
{
	for (constructor **each = __preinit_array_start; each < __preinit_array_end; each++)
		(*each)(count, arguments, environment);
	_init();
	for (constructor **each = __init_array_start; each < __init_array_end; each++)
		(*each)(count, arguments, environment);
}

typedef int start(int (*main)(int, char **, char **), int count, char **arguments,
	constructor *init, void (*fini)(void), void (*fini_of_loader)(void), void *end_of_stack);
extern start old_libc_start_main;
__asm__(".symver old_libc_start_main,__libc_start_main@" OLDEST);
start __libc_start_main;

int __libc_start_main(int (*main)(int, char **, char **), int count, char **arguments,
	constructor *init, void (*fini)(void), void (*fini_of_loader)(void), void *end_of_stack)
{
	(void)init;
	return old_libc_start_main(
		main, count, arguments, construct, fini, fini_of_loader, end_of_stack);
}
