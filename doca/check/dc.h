/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dc.h - the validation layer for programs written for DOCA: a library for LD_PRELOAD between
 * the program and the DOCA library
 *
 * Each function of DOCA has a generated wrapper. A wrapper describes its call in a struct dc_call,
 * and calls dc_begin(), the function of the library below, and dc_end(). Only calls of the program
 * are judged: not those that the library makes inside a call, or on threads of its own.
 *
 * The layer keeps a shadow of each object that the program creates. Rules compare calls with the
 * shadow, and report findings. The layer never changes a result, unless the environment asks for
 * trouble (dc_trouble.c) or for the limits of a card (dc_card.c).
 *
 * All state except that of a thread is guarded by one mutex, which the layer does not hold while it
 * calls the library below or the program.
 */
#ifndef DC_CHECK_H
#define DC_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <doca_error.h>
#include <doca_types.h>

#include "check/ids.h"

#define DC_NO_SLOT 255
enum { DC_MAX_PARAMS = 12, DC_MAX_SLOTS = 3, DC_MAX_DEVS = 8 };

/* -- what generate.awk knows of functions and types -- */

enum dc_kind {
	DC_OTHER,
	DC_CREATE,
	DC_DESTROY,
	DC_CONFIGURE,
	DC_START,
	DC_STOP,
	DC_AS_CTX,
	DC_AS_TASK,
	DC_TASK_CONF,
	DC_TASK_ALLOC,
	DC_TASK_SET,
	DC_GET,
	DC_CAPABILITY,
	DC_N_KINDS
};

enum dc_role {
	DC_VALUE,
	DC_POINTER,
	DC_OBJECT,
	DC_CONST_OBJECT,
	DC_OUT, /* where the function stores an object */
	DC_CALLBACK,
	DC_DATA, /* union doca_data */
};

enum dc_returns { DC_RETURNS_ERROR, DC_RETURNS_NOTHING, DC_RETURNS_POINTER, DC_RETURNS_VALUE };

struct dc_param {
	uint8_t role;
	uint16_t type; /* enum dc_type_id of an object */
	uint8_t slot;  /* of a buffer of a task, or DC_NO_SLOT */
	uint8_t size;  /* bytes of the integer that a pointer refers to, or 0 */
};

struct dc_function {
	const char *name;
	uint8_t kind, returns, n_params;
	struct dc_param params[DC_MAX_PARAMS];
};

struct dc_type {
	const char *name;
	uint16_t cast; /* function that returns the object as context or task, or DC_N_FUNCTIONS */
	bool is_task;
};

extern const struct dc_function dc_functions[DC_N_FUNCTIONS];
extern const struct dc_type dc_types[DC_N_TYPES];

/* -- calls -- */

struct dc_call {
	uint16_t function;                        /* enum dc_function_id */
	bool nested;                              /* not made by the program */
	bool refused;                             /* not forwarded: `result` was decided here */
	const void *site;                         /* return address in the program */
	struct dc_object *engine;                 /* that this call marks as busy until its end */
	struct dc_object *previous_engine;        /* of the thread, around doca_pe_progress() */
	struct dc_object *objects[DC_MAX_PARAMS]; /* shadows of the arguments; NULL: none */
	uint64_t args[DC_MAX_PARAMS];
	uint64_t result;
};

/* Judge a call before it is forwarded. Returns false if it must not be forwarded. */
bool dc_begin(struct dc_call *call);
/* Judge the result, and update the shadow. */
void dc_end(struct dc_call *call);

/* Returns the function of the library below. Ends the process if there is none. */
void *dc_next(uint16_t function);
/* Call a function of the library below, by name: DC_NEXT(doca_ctx_get_state)(ctx, &state). */
#define DC_NEXT(name) ((__typeof__(&name))dc_next(DC_##name))
/* Returns true if the library below has the function. */
bool dc_has(uint16_t function);

/* Record that the program cannot be checked, if it has loaded a DOCA library by dlopen(). */
void dc_refuse_dlopen(void);

/* State of a thread. */
struct dc_thread {
	bool has_lock;            /* the thread holds dc_lock() */
	unsigned depth;           /* calls of DOCA in progress; 0: the program runs */
	struct dc_object *engine; /* whose doca_pe_progress() is in progress */
};
extern __thread struct dc_thread dc_thread __attribute__((tls_model("initial-exec")));

/* Enter and leave a callback of the program. */
static inline unsigned dc_enter_program(void)
{
	const unsigned depth = dc_thread.depth;

	dc_thread.depth = 0;
	return depth;
}

static inline void dc_leave_program(unsigned depth)
{
	dc_thread.depth = depth;
}

void dc_lock(void);
void dc_unlock(void);

/* -- shadow objects -- */

struct dc_conf {
	struct dc_conf *next;
	uint16_t function;    /* the set_conf function */
	uint64_t done, error; /* the callbacks of the program */
};

struct dc_range {
	uintptr_t start, end;
};

struct dc_object {
	struct dc_object *next;  /* of the same hash */
	struct dc_object *alias; /* the context or task that this object is; or itself */
	const void *address;
	uint16_t type;
	bool is_live;
	struct dc_object *parent; /* first object that it was created from */
	struct dc_object *dev;    /* its device, if known */
	const void *made_at, *ended_at;
	uint16_t made_by;      /* function */
	uint64_t serial;       /* 1 for the first object of the process */
	uint32_t n_users;      /* live objects created from it */
	bool is_started;       /* except of contexts, which have states */
	uint64_t callbacks[6]; /* the program's, for states and events */
	union {
		struct {
			struct dc_object *engine;
			struct dc_conf *confs;
			uint16_t set[16]; /* configuration functions that succeeded */
			uint8_t n_set;
			uint16_t failed; /* configuration function that failed, or 0 */
			uint64_t user_data;
			uint32_t n_in_flight;
			/* ns; since when it waits: for receives, or for an accepted send */
			uint64_t waits_since;
		} ctx;
		struct {
			struct dc_object *ctx;
			struct dc_conf *conf;
			struct dc_object *bufs[DC_MAX_SLOTS];
			bool reads[DC_MAX_SLOTS]; /* slot is a source */
			bool is_submitted;
			const void *submitted_at;
			struct dc_range ranges[DC_MAX_SLOTS];
			uint64_t sums[DC_MAX_SLOTS];
			/* of the ranges in the table of dc_task.c, plus 1 */
			uint16_t places[DC_MAX_SLOTS];
			uint64_t serial;
			uint64_t submitted_ns; /* for the trace */
		} task;
		struct {
			struct dc_object *mmap;
			uint32_t n_in_flight;
			uint32_t references;
			bool is_head; /* of a list */
		} buf;
		struct {
			struct dc_range range;
			uint32_t permissions;
			bool has_range, has_permissions, is_import;
			bool is_uncounted; /* the library does not count its buffers */
			struct dc_object *devs[DC_MAX_DEVS];
			uint8_t n_devs;
		} mmap;
		struct {
			int busy;               /* thread inside a call, or 0 */
			uint16_t busy_in;       /* function */
			uint64_t progressed_at; /* ns */
			bool has_work;          /* when it was last progressed */
			uint64_t scanned_at;    /* ns; when its consumers were looked at */
			uint32_t n_contexts, n_comch, n_in_flight;
		} pe;
		struct {
			struct dc_object *mmap;
		} pool;
		struct {
			uint32_t n_open;
		} device;
	};
};

/* Find the shadow of an object, live or ended. Returns NULL if the layer has not seen it. */
struct dc_object *dc_find(const void *address, uint16_t type);
/* Find a submitted task by its address. */
struct dc_object *dc_find_submitted(const void *address);
/* Add an object; a record of an ended object with the same address is used again. */
struct dc_object *dc_add(const void *address, uint16_t type, const struct dc_call *call);
/*
 * Add the second address of a context or task in the interface: that of its general type. A context
 * gets it when the program asks for it, since that changes the use of some objects.
 */
void dc_add_alias(struct dc_object *object, const void *address, uint16_t type);
/* Mark an object and its alias as ended. */
void dc_end_object(struct dc_object *object, const void *site);
/* Get the number of objects that were added so far. */
uint64_t dc_n_added(void);
/* Call `visit` with `arg` for each live object. */
void dc_each(void (*visit)(struct dc_object *object, void *arg), void *arg);
/* Get the context of an object: of a task, of a context, or of an object that is a context. */
struct dc_object *dc_ctx_of(struct dc_object *object);

/* -- rules -- */

#define DC_RULE(id, name, severity, section, text, remedy) DC_RULE_##id,
enum dc_rule_id {
#include "check/rules.def"
	DC_N_RULES
};
#undef DC_RULE

/* What the layer needs of a rule; the program of `gantry doca` has the rest. */
struct dc_rule {
	const char *name, *text, *remedy;
};

extern const struct dc_rule dc_rules[DC_N_RULES];

/*
 * Report that the program breaks a rule. `object` and `site` may be NULL. The text describes this
 * case: key=value pairs, separated by commas. Equal findings of one place are reported once.
 */
void dc_report(enum dc_rule_id rule, const struct dc_object *object, uint16_t function,
	       const void *site, const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* Get the time, in ns, after which an engine, send or consumer counts as stalled. */
uint64_t dc_stall_ns(void);

/* -- parts of the rules; all called with the lock held -- */

void dc_rules_before(struct dc_call *call);
void dc_rules_after(struct dc_call *call);

/* What a function needs beyond the rules of its kind. `after` sees the result. */
struct dc_hook {
	void (*before)(struct dc_call *call);
	void (*after)(struct dc_call *call);
};
extern const struct dc_hook dc_memory_hooks[DC_N_FUNCTIONS];
extern const struct dc_hook dc_comch_hooks[DC_N_FUNCTIONS];
extern const struct dc_hook dc_task_hooks[DC_N_FUNCTIONS];
/* Hooks of the kinds of functions that are about tasks. */
void dc_task_before_alloc(struct dc_call *call);
void dc_task_after_alloc(struct dc_call *call);
void dc_task_before_set(struct dc_call *call);
void dc_task_after_set(struct dc_call *call);
void dc_task_before_get(struct dc_call *call);

/* True if the call returned DOCA_SUCCESS. */
static inline bool dc_succeeded(const struct dc_call *call)
{
	return call->result == DOCA_SUCCESS;
}

/* The text of a finding that needs none; the compiler warns about an empty format. */
#define DC_NO_DETAILS "%s", ""

/* Report that a call breaks a rule, with its first object. */
#define DC_BREAKS(call, rule, ...) \
	dc_report(DC_RULE_##rule, (call)->objects[0], (call)->function, (call)->site, __VA_ARGS__)

/* State of a context, enum doca_ctx_states. */
int dc_state(const struct dc_object *ctx);
const char *dc_state_name(int state);
/* True for a server, client, consumer or producer. */
bool dc_is_comch(const struct dc_object *ctx);
/* The tasks that a function _set_conf() of the context has configured, or NULL. */
struct dc_conf *dc_find_conf(const struct dc_object *ctx, uint16_t function);
/* The entry of the device of an object, for functions that query capabilities; or NULL. */
const struct doca_devinfo *dc_devinfo(const struct dc_object *object);
/* True if the configuration function of the context succeeded. */
bool dc_is_set(const struct dc_object *ctx, uint16_t function);
/* Stop following the tasks of an object that has ended. */
void dc_task_forget(struct dc_object *task);
/* The library has called the completion callback of the task. */
void dc_task_completed(struct dc_object *task);
/* A Comch connection was reported to the program, or its end was. */
void dc_connection_begins(struct dc_object *ctx, const void *connection);
void dc_connection_ends(const void *connection);
/* Report what the program has not released. A child process reports only what it has created. */
void dc_report_leaks(void);

/* Replace the callbacks among the arguments of a call by functions of this layer. */
void dc_replace_callbacks(struct dc_call *call);

/* A coarse clock: its steps are some milliseconds. */
uint64_t dc_now_ns(void);

#endif
