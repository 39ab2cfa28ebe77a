/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * task_thread.h - lists of tasks that threads pass to each other, and a thread that executes tasks
 *
 * A task is a member of the object to be processed. It is in one list at a time.
 */
#ifndef TASK_THREAD_H
#define TASK_THREAD_H

#include <pthread.h>
#include <semaphore.h>
#include <stddef.h>

struct task {
	struct task *next;
};

/* Add a task to a list, whose first value is NULL. Any thread. */
static inline void task_push(struct task **list, struct task *task)
{
	task->next = __atomic_load_n(list, __ATOMIC_RELAXED);
	while (!__atomic_compare_exchange_n(list, &task->next, task, 1, __ATOMIC_RELEASE,
					    __ATOMIC_RELAXED))
		;
}

/* Returns true if the list has a task. Any thread. */
static inline int task_is_waiting(struct task *const *list)
{
	return __atomic_load_n(list, __ATOMIC_RELAXED) != NULL;
}

/* Take all tasks of a list. Returns them, oldest first; NULL: none. Any thread. */
static inline struct task *task_take_all(struct task **list)
{
	struct task *task = __atomic_exchange_n(list, NULL, __ATOMIC_ACQUIRE), *next;
	struct task *oldest = NULL;

	for (; task; task = next) {
		next = task->next;
		task->next = oldest;
		oldest = task;
	}
	return oldest;
}

struct task_thread {
	void (*execute)(void *arg, struct task *task);
	void *arg;
	pthread_t thread;
	sem_t wake;         /* one post for each task, and one for the end */
	struct task *tasks; /* a list as above */
	int ends;           /* __atomic */
};

/*
 * Start a thread that executes tasks, oldest first, with all signals blocked. `execute` may add the
 * task to another list. Returns 0 or -errno.
 */
int task_thread_start(struct task_thread *thread, void (*execute)(void *arg, struct task *task),
		      void *arg);
/* Wait until all tasks are executed, and end the thread. No other thread may add a task. */
void task_thread_stop(struct task_thread *thread);
/* Add a task. Any thread. */
void task_thread_add(struct task_thread *thread, struct task *task);

#endif
