# SPDX-License-Identifier: BSD-3-Clause
# A copy of a product file reports each change of a state, see states.h; lines keep their numbers
s/^\(\t*\)\([a-z]\+\)->\(state\|phase\) = \([^;]*\);/\1SIM_STATE(\2, \3, \4);/
s/^\(\t*\)s->ending = 1;/\1SIM_ENDING(s);/
