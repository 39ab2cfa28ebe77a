/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cmd_new_plugin.c - gantry new-plugin: writes a directory with a plugin that works
 *
 * The plugin is the example of its kind, under another name. The other files are templates. All
 * files are written to a temporary directory, which then gets its name: after an error nothing is
 * left.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"

#define TEMPLATE_BYTES (1 << 20) /* limit of a template */
#define N_FILES 7
#define NAME_BYTES 48

static const struct kind {
	const char *name;
	const char *example; /* file in the directory of the kind, without suffix */
	const char *expect;  /* pattern of a line that a run prints */
} kinds[] = {
	{"transport", "unix-socket", "\"accepted\": [1-9]"},
	{"role", "scan", "\"zero_blocks\": [1-9]"},
	{"stage", "throttle", "\"delayed_ops\": [1-9]"},
	{"backend", "pattern", "\"read_words\": [1-9]"},
	{"observer", "milestone", "load is done"},
};

#define N_KINDS (sizeof(kinds) / sizeof(kinds[0]))

/* The name cannot be one of these: the template has variables with the name of the plugin. */
static const char *const keywords[] = {
	"auto",     "break",  "case",   "char",     "const",    "continue", "default",  "do",
	"double",   "else",   "enum",   "extern",   "float",    "for",      "goto",     "if",
	"inline",   "int",    "long",   "register", "restrict", "return",   "short",    "signed",
	"sizeof",   "static", "struct", "switch",   "typedef",  "union",    "unsigned", "void",
	"volatile", "while",  "asm",    "typeof",   "linux",    "unix",
};

struct plugin {
	const struct kind *kind;
	const char *name;
	char ident[NAME_BYTES];         /* the name as an identifier of C */
	char example_ident[NAME_BYTES]; /* that of the example */
	char templates[PATH_MAX];
	char dir[PATH_MAX]; /* the temporary directory */
};

/* -- names -- */

static bool is_ident(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

static void to_ident(char *ident, const char *name)
{
	snprintf(ident, NAME_BYTES, "%s", name);
	for (; *ident; ident++)
		if (*ident == '-')
			*ident = '_';
}

static bool is_keyword(const char *word)
{
	for (size_t i = 0; i < sizeof(keywords) / sizeof(keywords[0]); i++)
		if (!strcmp(keywords[i], word))
			return true;
	return false;
}

/* -- text -- */

/* State of a scan of C: the names in comments and strings are names of files and of the plugin. */
struct scan {
	bool comment, string;
};

static void scan_c(struct scan *scan, const char *text, const char *at)
{
	if (scan->comment)
		scan->comment = !(at > text && at[-1] == '*' && at[0] == '/');
	else if (scan->string)
		scan->string = !(*at == '"' && at[-1] != '\\');
	else
		*scan = (struct scan){.comment = at[0] == '/' && at[1] == '*',
				      .string = *at == '"'};
}

/* Returns whether code has the identifier as a whole word, outside of comments and strings. */
static bool has_word(const char *text, const char *word)
{
	size_t n = strlen(word);
	struct scan scan = {0};

	for (const char *at = text; *at; at++) {
		if (!scan.comment && !scan.string && !strncmp(at, word, n) && !is_ident(at[n]) &&
		    (at == text || !is_ident(at[-1])))
			return true;
		scan_c(&scan, text, at);
	}
	return false;
}

/*
 * Write the example with the name of the plugin in place of its own. In code, and beside an
 * underscore, it is an identifier.
 */
static void put_renamed(FILE *out, const struct plugin *p, const char *text, bool is_c)
{
	const char *const names[] = {p->kind->example, p->example_ident};
	struct scan scan = {0};

	for (const char *at = text; *at;) {
		size_t n = 0;

		for (int i = 0; i < 2 && !n; i++)
			if (!strncmp(at, names[i], strlen(names[i])))
				n = strlen(names[i]);
		/* not inside of a longer word */
		if (n && ((at > text && is_ident(at[-1])) || (is_ident(at[n]) && at[n] != '_')))
			n = 0;
		if (n) {
			fputs(is_c && (at[n] == '_' || !(scan.comment || scan.string)) ? p->ident
										       : p->name,
			      out);
			at += n;
			continue;
		}
		scan_c(&scan, text, at);
		fputc(*at++, out);
	}
}

/* Write a template with the values of its variables. */
static void put_filled(FILE *out, const struct plugin *p, const char *text)
{
	const char *const variables[][2] = {
		{"@NAME@", p->name},           {"@IDENT@", p->ident},
		{"@KIND@", p->kind->name},     {"@EXAMPLE@", p->kind->example},
		{"@EXPECT@", p->kind->expect},
	};

	while (*text) {
		size_t n = 0;

		for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]) && !n; i++)
			if (!strncmp(text, variables[i][0], strlen(variables[i][0]))) {
				n = strlen(variables[i][0]);
				fputs(variables[i][1], out);
			}
		if (!n)
			fputc(text[n++], out);
		text += n;
	}
}

/* -- files -- */

/* Returns the text of a template, which the caller frees; NULL: the error is printed. */
static char *read_template(const struct plugin *p, const char *name)
{
	char path[PATH_MAX], *text = malloc(TEMPLATE_BYTES + 1);
	FILE *in;
	size_t n;

	if (!text || !gn_cli_path(path, p->templates, "/", name, "")) {
		free(text);
		gn_cli_fail(GN_EXIT_FAILED, "out of memory");
		return NULL;
	}
	in = fopen(path, "re");
	if (!in) {
		gn_cli_fail(GN_EXIT_FAILED,
			    "cannot read a template (path=%s): %s: install the headers of gantry "
			    "(Debian: libgantry-dev)",
			    path, strerror(errno));
		free(text);
		return NULL;
	}
	n = fread(text, 1, TEMPLATE_BYTES, in);
	fclose(in);
	text[n] = '\0';
	return text;
}

/* The files of the new directory: each from its template. */
struct file {
	char from[PATH_MAX / 2], to[NAME_BYTES + 8];
	bool is_example;
};

static void list_files(const struct plugin *p, struct file files[N_FILES])
{
	static const char *const others[][2] = {{"make", "Makefile"},
						{"automake", "Makefile.am"},
						{"configure", "configure.ac"},
						{"readme", "README"},
						{"test", "test.sh"}};
	const char *const suffixes[] = {"c", "conf"};

	for (int i = 0; i < 2; i++) {
		snprintf(files[i].from, sizeof(files[i].from), "%s/%s.%s", p->kind->name,
			 p->kind->example, suffixes[i]);
		snprintf(files[i].to, sizeof(files[i].to), "%s.%s", p->name, suffixes[i]);
		files[i].is_example = true;
	}
	for (int i = 0; i < N_FILES - 2; i++) {
		snprintf(files[i + 2].from, sizeof(files[0].from), "new-plugin/%s.template",
			 others[i][0]);
		snprintf(files[i + 2].to, sizeof(files[0].to), "%s", others[i][1]);
		files[i + 2].is_example = false;
	}
}

/* Returns 0, or an exit code after the error is printed. */
static int write_file(const struct plugin *p, const struct file *file)
{
	char path[PATH_MAX], *text = read_template(p, file->from);
	FILE *out;
	int failed;

	if (!text)
		return GN_EXIT_FAILED;
	if (!strcmp(file->to + strlen(p->name), ".c") && strcmp(p->ident, p->example_ident) &&
	    has_word(text, p->ident)) {
		free(text);
		return gn_cli_fail(
			GN_EXIT_USAGE,
			"the source of the plugin uses the name (name=%s): choose another",
			p->name);
	}
	gn_cli_path(path, p->dir, "/", file->to, "");
	out = fopen(path, "wxe");
	if (out && file->is_example)
		put_renamed(out, p, text, !strcmp(file->to + strlen(p->name), ".c"));
	else if (out)
		put_filled(out, p, text);
	free(text);
	failed = !out || ferror(out);
	if ((out && fclose(out)) || failed)
		return gn_cli_fail(GN_EXIT_FAILED, "cannot write a file (path=%s): %s", path,
				   strerror(errno));
	return 0;
}

static void remove_files(const struct plugin *p, const struct file files[N_FILES])
{
	char path[PATH_MAX];

	for (int i = 0; i < N_FILES; i++)
		if (gn_cli_path(path, p->dir, "/", files[i].to, ""))
			unlink(path);
	rmdir(p->dir);
}

/* -- the command -- */

/* Give the temporary directory its name, with the mode that mkdir(1) gives. */
static int publish(const struct plugin *p, const char *target)
{
	const mode_t mask = umask(0);

	umask(mask);
	if (chmod(p->dir, 0777 & ~mask))
		return gn_cli_fail(GN_EXIT_FAILED,
				   "cannot set the mode of the directory (path=%s): %s", target,
				   strerror(errno));
	if (renameat2(AT_FDCWD, p->dir, AT_FDCWD, target, RENAME_NOREPLACE) &&
	    (errno != EINVAL || rename(p->dir, target)))
		return gn_cli_fail(GN_EXIT_FAILED, "cannot create the directory (path=%s): %s",
				   target, strerror(errno));
	return 0;
}

static int write_all(struct plugin *p, const char *parent)
{
	struct file files[N_FILES];
	char target[PATH_MAX];
	struct stat st;
	int code = 0;

	if (!gn_cli_path(target, parent, "/", p->name, "") ||
	    !gn_cli_path(p->dir, parent, "/.", p->name, ".XXXXXX") ||
	    strlen(p->dir) + sizeof(files[0].to) >= PATH_MAX)
		return gn_cli_fail(GN_EXIT_USAGE, "the path of the directory is too long");
	if (!lstat(target, &st))
		return gn_cli_fail(
			GN_EXIT_USAGE,
			"the directory exists (path=%s): choose another name, or remove it",
			target);
	if (!mkdtemp(p->dir))
		return gn_cli_fail(GN_EXIT_FAILED, "cannot create a directory (path=%s): %s",
				   target, strerror(errno));
	list_files(p, files);
	for (int i = 0; i < N_FILES && !code; i++)
		code = write_file(p, &files[i]);
	if (!code)
		code = publish(p, target);
	if (code)
		remove_files(p, files);
	else
		printf("%s: a plugin of the kind %s; see %s/README\n", target, p->kind->name,
		       target);
	return code;
}

static int find_templates(struct plugin *p)
{
	char top[PATH_MAX];
	const bool is_built = gn_cli_build_tree(top);

	if (!gn_cli_path(p->templates, is_built ? top : GANTRY_PKGDATADIR,
			 is_built ? "/examples/templates" : "/templates", "", ""))
		return gn_cli_fail(GN_EXIT_FAILED, "the path of the templates is too long");
	return 0;
}

static const struct kind *find_kind(const char *name)
{
	for (size_t i = 0; i < N_KINDS; i++)
		if (!strcmp(kinds[i].name, name))
			return &kinds[i];
	return NULL;
}

int gn_cli_new_plugin(const struct gn_cli *cli)
{
	const char *const *word = cli->args.word;
	static struct plugin p;
	int code;

	p.kind = find_kind(word[0]);
	p.name = word[1];
	if (!p.kind)
		return gn_cli_fail(
			GN_EXIT_USAGE,
			"no such kind of plugin (kind=%s): write transport, role, stage, backend or "
			"observer",
			word[0]);
	if (!gn_plugin_name_ok(p.name))
		return gn_cli_fail(
			GN_EXIT_USAGE,
			"not a name of a plugin (name=%s): write a letter, then letters, "
			"digits and '-', in lower case, at most %d",
			p.name, NAME_BYTES - 1);
	to_ident(p.ident, p.name);
	to_ident(p.example_ident, p.kind->example);
	if (is_keyword(p.ident))
		return gn_cli_fail(GN_EXIT_USAGE,
				   "the name is a word of C (name=%s): choose another", p.name);
	code = find_templates(&p);
	return code ? code : write_all(&p, cli->args.n > 2 ? word[2] : ".");
}
