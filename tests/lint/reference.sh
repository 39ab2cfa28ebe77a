#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# reference.sh - the comments of the headers from which reference pages are made are complete: each function has a description, a
# thread, what it returns unless it is void, and a description of each parameter
. "$(dirname "$0")/lib.sh"

seed()
{
	printf 'gantry-x.3: $(headers)/x.h\n' | put "$1/man/Makefile.am"
	cat <<-'END' | put "$1/include/gantry/x.h"
		/*
		 * x.h - a table
		 *
		 * self  the object
		 */
		/* Control thread. */
		struct x_ops {
			/* Count. Returns the number. */
			int (*sentences)(void *self);
			/*
			 * Count.
			 *
			 * n        limit
			 * fn       called with arg
			 * arg      the argument
			 * returns  0: all; -EAGAIN: some
			 * thread   any thread
			 */
			int (*fields)(void *self, int n, void (*fn)(void *arg),
				      void *arg);
			void (*undescribed)(void *self);
			/* Returns the number. */
			int (*returns_only)(void *self);
			int (*returns_nothing)(void *self); /* count */
			/* Set. */
			void (*parameter)(void *self, int value);
			/*
			 * Clear.
			 *
			 * value  not a parameter
			 */
			void (*stale)(void *self);
			int value;
		};
		struct y_ops {
			/* Clear. */
			void (*no_thread)(void *self);
		};
		/*
		 * x_get - get the value
		 *
		 * returns  the value
		 */
		static inline int x_get(const void *self)
		{
			return 0;
		}
	END
}

check()
{
	sed -n 's/^gantry-.*\.3: //p' "$1/man/Makefile.am" | tr ' ' '\n' | sed 's|.*/||' | sort -u | while read -r header; do
		(cd "$1" && $awk -v lint=1 -f "$top/man/reference.awk" "include/gantry/$header")
	done
}

run_lint 7 "each function of the reference pages is described"
