/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/top_view.h"

#include "cli/cli.h"

#ifdef HAVE_NCURSES
#include <curses.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <termcap.h>
#include <unistd.h>

#include "base/clock.h"
#include "report/stat_rates.h"
#include "top/top_keys.h"
#include "cli/top_sampler.h"
#include "top/top_screen.h"

#define ESCAPE_MS 100 /* wait for the rest of a key that begins with ESC */

/* What the loop of the view uses. */
struct view {
	struct gn_top_model *m;
	struct gn_top_sampler *sampler;
	struct gn_top_screen screen;
	SCREEN *terminal;
	int reports_fd, signal_fd;
	int errors_fd, stderr_fd; /* standard error goes to a file in memory while ncurses draws */
	uint64_t next_ns;         /* time of the next request */
	bool has_colors;
};

/* -- drawing -- */

/* Returns false if the bars have no colours. */
static bool start_colors(void)
{
	/* in the order of enum gn_stat_part */
	static const short colors[] = {COLOR_CYAN, COLOR_YELLOW, COLOR_GREEN, COLOR_BLUE,
				       COLOR_MAGENTA};
	const char *none = getenv("NO_COLOR");

	if ((none && *none) || !has_colors() || start_color() != OK)
		return false;
	use_default_colors();
	for (short i = 0; i < GN_STAT_PARTS; i++)
		init_pair((short)(i + 1), colors[i], -1);
	return true;
}

/* Draw the letters of a bar, each in the colour of its part. Without colours they are plain. */
static void draw_bar(int y, const struct gn_top_line *line)
{
	for (unsigned x = line->bar; line->text[x] && line->text[x] != ' '; x++)
		for (short i = 0; i < GN_STAT_PARTS; i++)
			if ((gn_stat_part_names[i][0] & ~0x20) == line->text[x])
				mvchgat(y, (int)x, 1, A_BOLD, (short)(i + 1), NULL);
}

static void draw(struct view *v)
{
	static const chtype attributes[] = {
		[GN_TOP_PLAIN] = A_NORMAL,     [GN_TOP_HEADING] = A_BOLD | A_UNDERLINE,
		[GN_TOP_SELECTED] = A_REVERSE, [GN_TOP_ALERT] = A_BOLD,
		[GN_TOP_HINT] = A_DIM,
	};
	int height, width;

	getmaxyx(stdscr, height, width);
	gn_top_draw(v->m, (unsigned)width, (unsigned)height, &v->screen);
	erase();
	for (size_t i = 0; i < v->screen.n && i < (size_t)height; i++) {
		const struct gn_top_line *line = &v->screen.lines[i];

		attrset(attributes[line->style]);
		mvaddnstr((int)i, 0, line->text, width);
		if (line->bar && line->style == GN_TOP_PLAIN && v->has_colors)
			draw_bar((int)i, line);
	}
	attrset(A_NORMAL);
	refresh();
}

/* -- events -- */

static int code_of(int key)
{
	static const struct {
		int key, code;
	} keys[] = {
		{KEY_UP, GN_TOP_KEY_UP},
		{KEY_DOWN, GN_TOP_KEY_DOWN},
		{KEY_LEFT, GN_TOP_KEY_LEFT},
		{KEY_RIGHT, GN_TOP_KEY_RIGHT},
		{KEY_PPAGE, GN_TOP_KEY_PAGE_UP},
		{KEY_NPAGE, GN_TOP_KEY_PAGE_DOWN},
		{KEY_HOME, GN_TOP_KEY_HOME},
		{KEY_END, GN_TOP_KEY_END},
		{KEY_ENTER, GN_TOP_KEY_ENTER},
		{'\r', GN_TOP_KEY_ENTER},
		{KEY_BACKSPACE, GN_TOP_KEY_BACKSPACE},
		{'\b', GN_TOP_KEY_BACKSPACE},
	};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (keys[i].key == key)
			return keys[i].code;
	return key > 0 && key < 0x80 ? key : GN_TOP_KEY_NONE;
}

static void take_keys(struct view *v)
{
	const unsigned interval_s = v->m->interval_s;
	int key;

	while (!v->m->quit && (key = getch()) != ERR)
		gn_top_press(v->m, code_of(key));
	if (v->m->interval_s != interval_s)
		v->next_ns = gn_now_ns() + v->m->interval_s * GN_NS_PER_S;
}

/* The terminal has another size. */
static void resize(void)
{
	struct winsize size;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row && size.ws_col)
		resizeterm(size.ws_row, size.ws_col);
	clearok(stdscr, TRUE);
}

static void take_signals(struct view *v)
{
	struct signalfd_siginfo info;

	while (read(v->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
		if (info.ssi_signo == SIGWINCH)
			resize();
		else
			v->m->quit = true;
}

/* Show the last message on standard error, such as that of an invalid report. */
static void take_errors(struct view *v)
{
	char text[160] = "", *last;
	const off_t end = lseek(v->errors_fd, 0, SEEK_END);
	ssize_t n;

	if (end <= 0)
		return;
	n = pread(v->errors_fd, text, sizeof(text) - 1,
		  end > (off_t)sizeof(text) - 1 ? end - ((off_t)sizeof(text) - 1) : 0);
	while (n > 0 && text[n - 1] == '\n')
		text[--n] = '\0';
	last = strrchr(text, '\n');
	gn_top_notice(v->m, "%s", last ? last + 1 : text);
	/* the file keeps one message of those that come again in each interval */
	if (ftruncate(v->errors_fd, 0) == 0)
		lseek(v->errors_fd, 0, SEEK_SET);
}

static void take_reports(struct view *v)
{
	json_t *list, *silent;

	if (!gn_top_sampler_take(v->sampler, &list, &silent))
		return;
	gn_top_update(v->m, list, silent, time(NULL));
	json_decref(silent);
	take_errors(v);
}

static void loop(struct view *v)
{
	struct pollfd fds[] = {
		{.fd = STDIN_FILENO, .events = POLLIN},
		{.fd = v->signal_fd, .events = POLLIN},
		{.fd = v->reports_fd, .events = POLLIN},
	};

	while (!v->m->quit) {
		const uint64_t now = gn_now_ns();

		if (now >= v->next_ns) {
			gn_top_sampler_ask(v->sampler);
			v->next_ns = now + v->m->interval_s * GN_NS_PER_S;
		}
		draw(v);
		if (poll(fds, 3, (int)((v->next_ns - now) / GN_NS_PER_MS) + 1) < 0)
			continue;
		if (fds[1].revents)
			take_signals(v);
		if (fds[2].revents)
			take_reports(v);
		if (fds[0].revents & POLLIN)
			take_keys(v);
		else if (fds[0].revents) /* the terminal has closed */
			v->m->quit = true;
	}
}

/* -- start and end -- */

static int open_signals(void)
{
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGHUP);
	sigaddset(&signals, SIGWINCH);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	return signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
}

static void hold_errors(struct view *v)
{
	v->errors_fd = memfd_create("gantry-top", MFD_CLOEXEC);
	v->stderr_fd = dup(STDERR_FILENO);
	if (v->errors_fd >= 0 && v->stderr_fd >= 0)
		dup2(v->errors_fd, STDERR_FILENO);
}

static void release_errors(struct view *v)
{
	if (v->stderr_fd >= 0) {
		dup2(v->stderr_fd, STDERR_FILENO);
		close(v->stderr_fd);
	}
	if (v->errors_fd >= 0)
		close(v->errors_fd);
}

static void show(struct view *v)
{
	hold_errors(v);
	set_term(v->terminal);
	cbreak();
	noecho();
	nonl();
	curs_set(0);
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	set_escdelay(ESCAPE_MS);
	v->has_colors = start_colors();
	loop(v);
	move(LINES - 1, 0); /* the shell goes on here if the terminal has only one screen */
	clrtoeol();
	refresh();
	endwin();
	delscreen(v->terminal);
	release_errors(v);
}

int gn_top_view_run(struct gn_top_model *m, const struct gn_stat_view *processes)
{
	const char *type = getenv("TERM");
	struct view v = {.m = m};
	int rc;

	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return gn_cli_fail(GN_EXIT_USAGE,
				   "standard input or output is not a terminal: use --batch");
	v.signal_fd = open_signals();
	rc = v.signal_fd < 0 ? -errno : gn_top_sampler_start(processes, &v.sampler, &v.reports_fd);
	/* newterm() leaks memory if the type is unknown */
	v.terminal = rc || tgetent(NULL, type ? type : "") != 1 ? NULL
								: newterm(NULL, stdout, stdin);
	if (v.terminal)
		show(&v);
	gn_top_sampler_stop(&v.sampler);
	gn_top_screen_fini(&v.screen);
	if (v.signal_fd >= 0)
		close(v.signal_fd);
	if (rc)
		return gn_cli_fail(GN_EXIT_FAILED, "cannot start the view: %s", strerror(-rc));
	if (!v.terminal)
		return gn_cli_fail(GN_EXIT_USAGE,
				   "unknown type of terminal (TERM=%s): set TERM, or use --batch",
				   type ? type : "");
	return GN_EXIT_OK;
}

#else

int gn_top_view_run(struct gn_top_model *m, const struct gn_stat_view *processes)
{
	(void)m;
	(void)processes;
	return gn_cli_fail(GN_EXIT_USAGE,
			   "built without ncurses, which draws the screen: use --batch");
}

#endif
