/* A clock that can be set for one program: the seconds in the file $DISCREET_CLOCK are added to the time of day. What
   measures time that has passed (CLOCK_MONOTONIC) goes on, as when an administrator sets the clock of a machine. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile long long *ahead;

static long long seconds(void) {
    if (!ahead) {
        int file = open(getenv("DISCREET_CLOCK"), O_RDONLY);
        ahead = mmap(0, sizeof *ahead, PROT_READ, MAP_SHARED, file, 0);
        close(file);
    }
    return *ahead;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int failed = (int)syscall(SYS_clock_gettime, clock, now);
    if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += seconds();
    return failed;
}

int gettimeofday(struct timeval *now, void *zone) {
    struct timespec found;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &found);
    now->tv_sec = found.tv_sec;
    now->tv_usec = found.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *now) {
    struct timespec found;
    clock_gettime(CLOCK_REALTIME, &found);
    if (now) *now = found.tv_sec;
    return found.tv_sec;
}
