# SPDX-License-Identifier: BSD-3-Clause
# Makes a copy of a product file report each change of a state, see states.h; line numbers do not change
s/^\(\t*\)\([a-z]\+\)->\(state\|phase\) = \([^;]*\);/\1SIM_STATE(\2, \3, \4);/
s/^\(\t*\)s->ending = 1;/\1SIM_ENDING(s);/
