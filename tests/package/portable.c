/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that is linked as those of the wheel (tools/package/portable.c), and uses what that replaces.  Prints how often
 * its constructor ran, and a word for each part that worked.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static int n_constructed;
static const char *seen_by_constructor;

static __attribute__((constructor)) void construct(int count, char **arguments)
{
	n_constructed++;
	seen_by_constructor = count == 2 ? arguments[1] : NULL;
}

static __attribute__((destructor)) void destroy(void)
{
	(void)write(STDOUT_FILENO, " destroyed\n", 11);
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;

static void make_key(void)
{
	(void)pthread_key_create(&key, NULL);
}

static void *run(void *argument)
{
	(void)pthread_once(&once, make_key);
	return pthread_setspecific(key, argument) == 0 ? argument : NULL;
}

static int threads(void)
{
	pthread_rwlock_t lock;
	pthread_t id;
	sigset_t set;
	void *result = NULL;

	sigemptyset(&set);
	return pthread_rwlock_init(&lock, NULL) == 0 && pthread_rwlock_wrlock(&lock) == 0 &&
	       pthread_rwlock_tryrdlock(&lock) != 0 && pthread_rwlock_unlock(&lock) == 0 &&
	       pthread_rwlock_rdlock(&lock) == 0 && pthread_rwlock_unlock(&lock) == 0 &&
	       pthread_rwlock_destroy(&lock) == 0 && pthread_sigmask(SIG_BLOCK, &set, NULL) == 0 &&
	       pthread_create(&id, NULL, run, &lock) == 0 && pthread_join(id, &result) == 0 &&
	       result == &lock;
}

static int files(const char *self)
{
	struct stat by[4];
	int fd = open(self, O_RDONLY);
	int found = stat(self, &by[0]) == 0 && lstat(self, &by[1]) == 0 && fstat(fd, &by[2]) == 0 &&
		    fstatat(AT_FDCWD, self, &by[3], 0) == 0;

	for (int i = 0; i < 4; i++)
		found = found && by[i].st_size == by[0].st_size && by[i].st_size > 4096 &&
			by[i].st_ino == by[0].st_ino;
	return found && stat("/nowhere", &by[0]) == -1 && close(fd) == 0;
}

static int libraries(void)
{
	void *libc = dlopen("libc.so.6", RTLD_NOW);
	void *found = libc ? dlsym(libc, "getpid") : NULL;
	Dl_info info;

	return found && dlvsym(libc, "getpid", "GLIBC_2.2.5") == found && dladdr(found, &info) &&
	       strstr(info.dli_fname, "libc") && dlclose(libc) == 0;
}

static int shared(void)
{
	int fd = shm_open("/gpucache-portable", O_CREAT | O_RDWR, 0600);

	return fd >= 0 && shm_unlink("/gpucache-portable") == 0 && close(fd) == 0;
}

static int closing(void)
{
	int low = open("/dev/null", O_RDONLY);
	int high = fcntl(low, F_DUPFD, 100);

	closefrom(low + 1);
	return fcntl(low, F_GETFD) == 0 && fcntl(high, F_GETFD) == -1 && close(low) == 0;
}

int main(int count, char **arguments)
{
	printf("constructed %d times, saw %s;%s%s%s%s%s", n_constructed,
		seen_by_constructor ? seen_by_constructor : "nothing", threads() ? " threads" : "",
		files(arguments[0]) ? " files" : "", libraries() ? " libraries" : "",
		shared() ? " shared" : "", closing() ? " closing" : "");
	fflush(stdout);
	return count != 2;
}
