# SPDX-License-Identifier: BSD-3-Clause
# Makes a copy of a product file report each change of a state, see states.h; line numbers do not change
s/^\(\t*\)s->phase = GN_SESSION_ENDING;/\1SIM_ENDING(s);/
# the phases of a server after this one always follow each other
/GN_SESSION_CLOS/b
s/^\(\t*\)\([a-z]\+\)->\(state\|phase\|step\) = \([^;]*\);/\1SIM_STATE(\2, \3, \4);/
