/* SPDX-License-Identifier: BSD-3-Clause */
/* task_thread.c - see task_thread.h */
#include "task_thread.h"

#include <signal.h>

static void *thread_main(void *arg)
{
	struct task_thread *thread = arg;

	for (;;) {
		struct task *task, *next;

		while (sem_wait(&thread->wake) != 0)
			;
		task = task_take_all(&thread->tasks);
		if (!task && __atomic_load_n(&thread->ends, __ATOMIC_ACQUIRE))
			return NULL;
		for (; task; task = next) {
			next = task->next;
			thread->execute(thread->arg, task);
		}
	}
}

int task_thread_start(struct task_thread *thread, void (*execute)(void *arg, struct task *task),
		      void *arg)
{
	sigset_t all, before;
	int rc;

	*thread = (struct task_thread){.execute = execute, .arg = arg};
	sem_init(&thread->wake, 0, 0);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&thread->thread, NULL, thread_main, thread);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc != 0)
		sem_destroy(&thread->wake);
	return -rc;
}

void task_thread_stop(struct task_thread *thread)
{
	__atomic_store_n(&thread->ends, 1, __ATOMIC_RELEASE);
	sem_post(&thread->wake);
	pthread_join(thread->thread, NULL);
	sem_destroy(&thread->wake);
}

void task_thread_add(struct task_thread *thread, struct task *task)
{
	task_push(&thread->tasks, task);
	sem_post(&thread->wake);
}
