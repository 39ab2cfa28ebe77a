/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/stop.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/log.h"
#include "cli/cli.h"

static void wake_guard(const struct gn_stop *stop)
{
	const uint64_t one = 1;

	(void)!write(stop->wake_fd, &one, sizeof(one));
}

/* -- the guard -- */

/*
 * A full pipe drops the event. It is full only if the control thread does not read it; then the
 * guard ends the process.
 */
static void send_event(const struct gn_stop *stop, int event)
{
	(void)!write(stop->events[1], &event, sizeof(event));
}

static void exit_within_grace(struct gn_stop *stop, int code)
{
	if (stop->exit_ns != 0)
		return;
	stop->exit_ns = gn_now_ns() + GN_STOP_GRACE_NS;
	stop->exit_code = code;
}

static _Noreturn void exit_now(struct gn_stop *stop)
{
	pthread_mutex_lock(&stop->lock);
	gn_log(GN_LOG_ERROR, "gantry",
	       "the control thread does not answer (grace=%llu ms): it waits for a plugin that does not "
	       "return; ending the process",
	       (unsigned long long)(GN_STOP_GRACE_NS / GN_NS_PER_MS));
	if (stop->explain)
		stop->explain(stop->explain_arg);
	_exit(stop->exit_code);
}

static void take_signal(struct gn_stop *stop)
{
	struct signalfd_siginfo info;

	if (read(stop->signal_fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return;
	if (info.ssi_signo == SIGHUP && !stop->hup_ends) {
		if (!__atomic_exchange_n(&stop->reload_pending, 1, __ATOMIC_RELAXED))
			send_event(stop, SIGHUP);
		return;
	}
	stop->n_signals++;
	gn_stop_begin(stop);
	send_event(stop, (int)info.ssi_signo);
	if (stop->n_signals > 1)
		exit_within_grace(stop, GN_EXIT_INTERRUPTED);
}

/* Get the time of the guard's next deadline; 0: none. */
static uint64_t next_ns(struct gn_stop *stop, uint64_t now_ns)
{
	uint64_t limit_ns;

	pthread_mutex_lock(&stop->lock);
	if (stop->begun && stop->begun_ns == 0)
		stop->begun_ns = now_ns;
	limit_ns = stop->begun && stop->limit_ns != 0 && !stop->limit_over
			   ? stop->begun_ns + stop->limit_ns
			   : 0;
	pthread_mutex_unlock(&stop->lock);
	return stop->exit_ns != 0 && (limit_ns == 0 || stop->exit_ns < limit_ns) ? stop->exit_ns
										 : limit_ns;
}

static void pass_limits(struct gn_stop *stop, uint64_t next, uint64_t now_ns)
{
	if (next == 0 || now_ns < next)
		return;
	if (stop->exit_ns != 0 && now_ns >= stop->exit_ns)
		exit_now(stop);
	stop->limit_over = true;
	send_event(stop, GN_STOP_LIMIT);
	exit_within_grace(stop, GN_EXIT_FAILED);
}

static bool is_closing(struct gn_stop *stop)
{
	bool closing;

	pthread_mutex_lock(&stop->lock);
	closing = stop->closing;
	pthread_mutex_unlock(&stop->lock);
	return closing;
}

static void *guard(void *arg)
{
	struct gn_stop *stop = arg;
	struct pollfd fds[] = {{.fd = stop->signal_fd, .events = POLLIN},
			       {.fd = stop->wake_fd, .events = POLLIN}};

	while (!is_closing(stop)) {
		uint64_t now_ns = gn_now_ns(), next = next_ns(stop, now_ns), woken;
		uint64_t ms = next > now_ns ? (next - now_ns) / GN_NS_PER_MS + 1 : 0;

		if (poll(fds, 2, next == 0 ? -1 : ms > INT32_MAX ? INT32_MAX : (int)ms) > 0) {
			if (fds[0].revents)
				take_signal(stop);
			if (fds[1].revents)
				(void)!read(stop->wake_fd, &woken, sizeof(woken));
		}
		now_ns = gn_now_ns();
		pass_limits(stop, next_ns(stop, now_ns), now_ns);
	}
	return NULL;
}

/* -- the control thread -- */

static void take_events(void *arg)
{
	struct gn_stop *stop = arg;
	int event;

	if (read(stop->events[0], &event, sizeof(event)) != (ssize_t)sizeof(event))
		return;
	if (event == SIGHUP)
		__atomic_store_n(&stop->reload_pending, 0, __ATOMIC_RELAXED);
	stop->on_event(stop->arg, event);
}

int gn_stop_watch(struct gn_stop *stop, struct gn_loop *loop,
		  void (*on_event)(void *arg, int event), void *arg)
{
	int rc;

	stop->on_event = on_event;
	stop->arg = arg;
	rc = gn_loop_add_fd(loop, stop->events[0], take_events, stop);
	if (rc == 0)
		stop->loop = loop;
	return rc;
}

void gn_stop_set(struct gn_stop *stop, uint64_t limit_ns, void (*explain)(void *arg), void *arg)
{
	pthread_mutex_lock(&stop->lock);
	stop->limit_ns = limit_ns;
	stop->explain = explain;
	stop->explain_arg = arg;
	pthread_mutex_unlock(&stop->lock);
	wake_guard(stop);
}

void gn_stop_begin(struct gn_stop *stop)
{
	pthread_mutex_lock(&stop->lock);
	stop->begun = true;
	pthread_mutex_unlock(&stop->lock);
	wake_guard(stop);
}

/*
 * nohup(1) starts a program with SIGHUP ignored, a shell without job control starts a background
 * job with SIGINT ignored: both stay ignored. SIGTERM always stops the process, because service
 * managers rely on it.
 */
static void choose_signals(sigset_t *set)
{
	static const int optional[] = {SIGINT, SIGHUP};
	struct sigaction action;

	sigemptyset(set);
	sigaddset(set, SIGTERM);
	for (unsigned i = 0; i < sizeof(optional) / sizeof(optional[0]); i++)
		if (sigaction(optional[i], NULL, &action) != 0 || action.sa_handler != SIG_IGN)
			sigaddset(set, optional[i]);
}

/*
 * The kernel and shells send SIGHUP when the terminal hangs up. A process without a terminal
 * gets it from an administrator or a service manager, to reload its configuration.
 */
static bool has_terminal(void)
{
	int fd = open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

int gn_stop_open(struct gn_stop *stop, bool hup_ends)
{
	sigset_t set;
	int rc;

	*stop = (struct gn_stop){.signal_fd = -1, .wake_fd = -1, .events = {-1, -1}};
	stop->hup_ends = hup_ends || has_terminal();
	pthread_mutex_init(&stop->lock, NULL);
	choose_signals(&set);
	pthread_sigmask(SIG_BLOCK, &set, &stop->before);
	stop->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	stop->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (stop->signal_fd < 0 || stop->wake_fd < 0 ||
	    pipe2(stop->events, O_CLOEXEC | O_NONBLOCK) != 0)
		return -errno;
	rc = pthread_create(&stop->guard, NULL, guard, stop);
	stop->started = rc == 0;
	if (rc == 0)
		pthread_setname_np(stop->guard, "gn-stop");
	/* EAGAIN: no memory for the thread, or the limit of processes */
	return rc == EAGAIN ? -ENOMEM : -rc;
}

void gn_stop_close(struct gn_stop *stop)
{
	int fds[] = {stop->signal_fd, stop->wake_fd, stop->events[0], stop->events[1]};

	if (stop->loop)
		gn_loop_remove_fd(stop->loop, stop->events[0]);
	if (stop->started) {
		pthread_mutex_lock(&stop->lock);
		stop->closing = true;
		pthread_mutex_unlock(&stop->lock);
		wake_guard(stop);
		pthread_join(stop->guard, NULL);
	}
	for (unsigned i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
		if (fds[i] >= 0)
			close(fds[i]);
	pthread_mutex_destroy(&stop->lock);
	pthread_sigmask(SIG_SETMASK, &stop->before, NULL);
}
