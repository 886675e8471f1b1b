/* Records what a process does to the files below POWER_ROOT, in the order in which it is done.

   Loaded with LD_PRELOAD. Each call is made and written to POWER_LOG under one lock; what the log
   says is what a disk was asked for, so that tests can work out what a power cut leaves. A record
   is a line of fields separated by tabs, then as many bytes as the last field says, then a newline.
   A call that would change a file in a way that is not recorded ends the process. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static int log_fd = -1;
static const char *root;

#define NEXT(name) \
    static __typeof__(name) *next; \
    if (!next) next = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

static ssize_t real_write(int fd, const void *data, size_t size) {
    NEXT(write);
    return next(fd, data, size);
}

static void put(const void *data, size_t size) {
    const char *at = data;
    while (size) {
        ssize_t done = real_write(log_fd, at, size);
        if (done <= 0) abort();
        at += done;
        size -= (size_t)done;
    }
}

static void note(const char *op, const char *first, const char *second, unsigned long inode,
                 long long offset, const void *data, size_t size) {
    char line[2 * PATH_MAX + 128];
    int saved = errno;
    int length = snprintf(line, sizeof line, "%s\t%s\t%s\t%lu\t%lld\t%zu\n", op, first, second,
                          inode, offset, size);
    put(line, (size_t)length);
    put(data, size);
    put("\n", 1);
    errno = saved;
}

__attribute__((constructor)) static void begin(void) {
    root = getenv("POWER_ROOT");
    const char *path = getenv("POWER_LOG");
    if (!root || !path) return;
    NEXT(open);
    log_fd = next(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

static int ours(const char *path) {
    return log_fd >= 0 && strncmp(path, root, strlen(root)) == 0;
}

/* The absolute path of what a call names. */
static const char *place(int directory, const char *path, char *into) {
    char base[PATH_MAX] = "";
    if (path[0] != '/') {
        if (directory == AT_FDCWD) {
            if (!getcwd(base, sizeof base)) base[0] = 0;
        } else {
            char link[64];
            snprintf(link, sizeof link, "/proc/self/fd/%d", directory);
            ssize_t length = readlink(link, base, sizeof base - 1);
            base[length < 0 ? 0 : length] = 0;
        }
    }
    snprintf(into, PATH_MAX, "%s%s%s", base, path[0] == '/' ? "" : "/", path);
    return into;
}

static const char *place_of(int fd, char *into) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, into, PATH_MAX - 1);
    into[length < 0 ? 0 : length] = 0;
    return into;
}

static unsigned long inode_of(int fd) {
    struct stat found;
    return fstat(fd, &found) == 0 ? (unsigned long)found.st_ino : 0;
}

static unsigned long inode_at(const char *path) {
    struct stat found;
    return lstat(path, &found) == 0 ? (unsigned long)found.st_ino : 0;
}

static void unknown(const char *what, int fd) {
    char path[PATH_MAX];
    if (ours(place_of(fd, path))) {
        fprintf(stderr, "%s of %s is not recorded\n", what, path);
        _exit(99);
    }
}

/* Marks: the process says what it has acknowledged. */
void power_mark(const char *text) {
    pthread_mutex_lock(&lock);
    if (log_fd >= 0) note("mark", "", "", 0, 0, text, strlen(text));
    pthread_mutex_unlock(&lock);
}

/* --- opening ----------------------------------------------------------------------------------- */

static void opened(const char *path, int fd, int flags, int there) {
    if (fd < 0 || !ours(path)) return;
    if ((flags & O_CREAT) && !there) note("create", path, "", inode_of(fd), 0, "", 0);
    else if (flags & O_TRUNC) note("truncate", path, "", inode_of(fd), 0, "", 0);
}

#define OPENED(directory, path, flags, call) \
    char full[PATH_MAX]; \
    mode_t mode = 0; \
    if ((flags) & (O_CREAT | O_TMPFILE)) { \
        va_list rest; \
        va_start(rest, flags); \
        mode = va_arg(rest, mode_t); \
        va_end(rest); \
    } \
    pthread_mutex_lock(&lock); \
    place(directory, path, full); \
    int there = inode_at(full) != 0; \
    int fd = call; \
    int saved = errno; \
    opened(full, fd, flags, there); \
    errno = saved; \
    pthread_mutex_unlock(&lock); \
    return fd

int open(const char *path, int flags, ...) {
    NEXT(open);
    OPENED(AT_FDCWD, path, flags, next(path, flags, mode));
}
int open64(const char *path, int flags, ...) {
    NEXT(open64);
    OPENED(AT_FDCWD, path, flags, next(path, flags, mode));
}
int openat(int directory, const char *path, int flags, ...) {
    NEXT(openat);
    OPENED(directory, path, flags, next(directory, path, flags, mode));
}
int openat64(int directory, const char *path, int flags, ...) {
    NEXT(openat64);
    OPENED(directory, path, flags, next(directory, path, flags, mode));
}

/* --- data -------------------------------------------------------------------------------------- */

#define WRITTEN(fd, data, at, call) \
    char path[PATH_MAX]; \
    pthread_mutex_lock(&lock); \
    ssize_t done = call; \
    int saved = errno; \
    if (done > 0 && log_fd >= 0 && fd != log_fd && ours(place_of(fd, path))) \
        note("write", path, "", inode_of(fd), (long long)(at), data, (size_t)done); \
    errno = saved; \
    pthread_mutex_unlock(&lock); \
    return done

ssize_t write(int fd, const void *data, size_t size) {
    WRITTEN(fd, data, lseek(fd, 0, SEEK_CUR) - done, real_write(fd, data, size));
}
ssize_t pwrite(int fd, const void *data, size_t size, off_t offset) {
    NEXT(pwrite);
    WRITTEN(fd, data, offset, next(fd, data, size, offset));
}
ssize_t pwrite64(int fd, const void *data, size_t size, off64_t offset) {
    NEXT(pwrite64);
    WRITTEN(fd, data, offset, next(fd, data, size, offset));
}
ssize_t writev(int fd, const struct iovec *parts, int count) {
    NEXT(writev);
    unknown("writev", fd);
    return next(fd, parts, count);
}
ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t offset) {
    NEXT(pwritev);
    unknown("pwritev", fd);
    return next(fd, parts, count, offset);
}
ssize_t copy_file_range(int in, off64_t *from, int out, off64_t *to, size_t size, unsigned flags) {
    NEXT(copy_file_range);
    unknown("copy_file_range", out);
    return next(in, from, out, to, size, flags);
}
int fallocate(int fd, int mode, off_t offset, off_t size) {
    NEXT(fallocate);
    unknown("fallocate", fd);
    return next(fd, mode, offset, size);
}
int posix_fallocate(int fd, off_t offset, off_t size) {
    NEXT(posix_fallocate);
    unknown("posix_fallocate", fd);
    return next(fd, offset, size);
}

#define CALLED(fd, op, at, call) \
    char path[PATH_MAX]; \
    pthread_mutex_lock(&lock); \
    int done = call; \
    int saved = errno; \
    if (done == 0 && ours(place_of(fd, path))) \
        note(op, path, "", inode_of(fd), (long long)(at), "", 0); \
    errno = saved; \
    pthread_mutex_unlock(&lock); \
    return done

int ftruncate(int fd, off_t size) {
    NEXT(ftruncate);
    CALLED(fd, "truncate", size, next(fd, size));
}
int ftruncate64(int fd, off64_t size) {
    NEXT(ftruncate64);
    CALLED(fd, "truncate", size, next(fd, size));
}
int fchmod(int fd, mode_t mode) {
    NEXT(fchmod);
    CALLED(fd, "mode", mode, next(fd, mode));
}
int fsync(int fd) {
    NEXT(fsync);
    CALLED(fd, "sync", 0, next(fd));
}
int fdatasync(int fd) {
    NEXT(fdatasync);
    CALLED(fd, "sync", 0, next(fd));
}
/* A whole file system is not flushed for a test, which is about what would be on it. */
int syncfs(int fd) {
    CALLED(fd, "syncfs", 0, (fd >= 0 ? 0 : -1));
}
void sync(void) {
    pthread_mutex_lock(&lock);
    if (log_fd >= 0) note("syncfs", root, "", 0, 0, "", 0);
    pthread_mutex_unlock(&lock);
}

/* --- names ------------------------------------------------------------------------------------- */

#define NAMED(op, directory, path, call) \
    char full[PATH_MAX]; \
    pthread_mutex_lock(&lock); \
    place(directory, path, full); \
    unsigned long inode = inode_at(full); \
    int done = call; \
    int saved = errno; \
    if (done == 0 && ours(full)) note(op, full, "", inode, 0, "", 0); \
    errno = saved; \
    pthread_mutex_unlock(&lock); \
    return done

int unlink(const char *path) {
    NEXT(unlink);
    NAMED("unlink", AT_FDCWD, path, next(path));
}
int unlinkat(int directory, const char *path, int flags) {
    NEXT(unlinkat);
    NAMED(flags & AT_REMOVEDIR ? "rmdir" : "unlink", directory, path, next(directory, path, flags));
}
int rmdir(const char *path) {
    NEXT(rmdir);
    NAMED("rmdir", AT_FDCWD, path, next(path));
}
int mkdir(const char *path, mode_t mode) {
    NEXT(mkdir);
    NAMED("mkdir", AT_FDCWD, path, next(path, mode));
}
int mkdirat(int directory, const char *path, mode_t mode) {
    NEXT(mkdirat);
    NAMED("mkdir", directory, path, next(directory, path, mode));
}

#define MOVED(op, from, path, to, target, call) \
    char old[PATH_MAX], new[PATH_MAX]; \
    pthread_mutex_lock(&lock); \
    place(from, path, old); \
    place(to, target, new); \
    int done = call; \
    int saved = errno; \
    if (done == 0 && (ours(old) || ours(new))) note(op, old, new, inode_at(new), 0, "", 0); \
    errno = saved; \
    pthread_mutex_unlock(&lock); \
    return done

int rename(const char *path, const char *target) {
    NEXT(rename);
    MOVED("rename", AT_FDCWD, path, AT_FDCWD, target, next(path, target));
}
int renameat(int from, const char *path, int to, const char *target) {
    NEXT(renameat);
    MOVED("rename", from, path, to, target, next(from, path, to, target));
}
int link(const char *path, const char *target) {
    NEXT(link);
    MOVED("link", AT_FDCWD, path, AT_FDCWD, target, next(path, target));
}
int linkat(int from, const char *path, int to, const char *target, int flags) {
    NEXT(linkat);
    MOVED("link", from, path, to, target, next(from, path, to, target, flags));
}
