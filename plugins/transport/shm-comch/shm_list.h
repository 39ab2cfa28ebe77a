/* SPDX-License-Identifier: BSD-3-Clause */
/* shm_list.h - doubly linked list whose links are members of the entries. Thread: control. */
#ifndef COMCH_LIST_H
#define COMCH_LIST_H

#include <stddef.h>

struct comch_link {
	struct comch_link *next, *prev;
};

struct comch_list {
	struct comch_link head;
};

static inline void comch_list_init(struct comch_list *list)
{
	list->head.next = list->head.prev = &list->head;
}

static inline int comch_list_empty(const struct comch_list *list)
{
	return list->head.next == &list->head;
}

/* Insert a link before `at`. Before the head is the end of the list. */
static inline void comch_list_insert(struct comch_link *at, struct comch_link *link)
{
	link->next = at;
	link->prev = at->prev;
	at->prev->next = link;
	at->prev = link;
}

static inline void comch_list_append(struct comch_list *list, struct comch_link *link)
{
	comch_list_insert(&list->head, link);
}

static inline void comch_list_remove(struct comch_link *link)
{
	link->prev->next = link->next;
	link->next->prev = link->prev;
	link->next = link->prev = link;
}

#define comch_entry(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

/* The current entry may be removed during the loop, its successor may not. */
#define comch_list_each(pos, next_, list) \
	for (pos = (list)->head.next, next_ = pos->next; pos != &(list)->head; \
	     pos = next_, next_ = pos->next)

#endif
