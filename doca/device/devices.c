/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * devices.c - which functions there are: those of the card that is always there, and what
 * $GANTRY_DOCA_CONF says.
 *
 * Made once, at the first question, and kept as long as the process: pointers to a devinfo stay
 * valid after its list is gone.
 */
#include "device/devices.h"

#include "common/log.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#define MAX_FUNCTIONS 64
#define MAX_REPS 64
#define THE_CARD "doca"

static const char *const profile_words[] = {"auto", "host", "dpu", NULL};
static const char *const function_words[] = {"default", "none", NULL};

/* What is said about a function; "" where nothing is. */
struct said {
	const char *pci, *ibdev, *iface, *card, *transport;
	uint32_t profile; /* 0: nothing; else enum gd_side */
	uint8_t insecure;
};

static const struct gantry_option said_options[] = {
	{"pci", GANTRY_OPT_STRING, offsetof(struct said, pci), NULL, 0, 0, NULL, NULL,
	 "PCI address of the function."},
	{"ibdev", GANTRY_OPT_STRING, offsetof(struct said, ibdev), "", 0, 0, NULL, NULL,
	 "Name of its RDMA device."},
	{"iface", GANTRY_OPT_STRING, offsetof(struct said, iface), "", 0, 0, NULL, NULL,
	 "Name of its network interface."},
	{"card", GANTRY_OPT_STRING, offsetof(struct said, card), THE_CARD, 0, 0, NULL, NULL,
	 "The emulated card that it is on: functions of one card meet."},
	{"profile", GANTRY_OPT_CHOICE, offsetof(struct said, profile), "auto", 0, 0, profile_words,
	 NULL, "Which side it belongs to; auto: dpu when it has representors."},
	{"transport", GANTRY_OPT_STRING, offsetof(struct said, transport), NULL, 0, 0, NULL, NULL,
	 "Name of a transport plugin."},
	{"insecure", GANTRY_OPT_BOOL, offsetof(struct said, insecure), "false", 0, 0, NULL, NULL,
	 "Let every host that reaches the device connect: on a network it must be true. Elsewhere it has no effect."},
	GANTRY_OPTION_END,
};

/* Names in an entry that no plugin knows. */
static const char *const ours[] = {"pci",       "ibdev",    "iface",        "card", "profile",
				   "transport", "insecure", "representors", NULL};

struct rep_said {
	const char *pci, *iface;
};

static const struct gantry_option rep_options[] = {
	{"pci", GANTRY_OPT_STRING, offsetof(struct rep_said, pci), NULL, 0, 0, NULL, NULL,
	 "The function that it stands for."},
	{"iface", GANTRY_OPT_STRING, offsetof(struct rep_said, iface), "", 0, 0, NULL, NULL,
	 "Name of its network interface."},
	GANTRY_OPTION_END,
};

/* What is said of the library as a whole. */
static struct {
	uint32_t functions;
	uint64_t connect_ns;
} doca_said = {.connect_ns = 5000000000};

static const struct gantry_option doca_options[] = {
	{"functions", GANTRY_OPT_CHOICE, offsetof(typeof(doca_said), functions), "default", 0, 0,
	 function_words, NULL,
	 "none: only those of this file; default: also those that are always there."},
	{"connect_timeout", GANTRY_OPT_TIME, offsetof(typeof(doca_said), connect_ns), "5s", 1000000,
	 600000000000, NULL, NULL,
	 "How long a Comch client waits for a server that does not answer."},
	GANTRY_OPTION_END,
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct doca_devinfo *infos[MAX_FUNCTIONS]; /* those that are listed come first */
static struct gd_wire wires[MAX_FUNCTIONS];
static uint32_t n_infos, n_wires, n_listed;
/* Strings of it are used. Never read: the attribute keeps it where a leak checker sees it. */
__attribute__((used)) static struct gn_config *config;
static bool loaded;
static doca_error_t load_result;

/* -- addresses -- */

static bool all_hex(const char *text, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!strchr("0123456789abcdefABCDEF", text[i]) || text[i] == '\0')
			return false;
	return true;
}

bool gd_pci_parse(const char *text, char pci[GD_PCI_FULL])
{
	const char *short_form = text;
	size_t n = strnlen(text, GD_PCI_FULL);

	if (n == 12 && all_hex(text, 4) && text[4] == ':')
		short_form = text + 5;
	else if (n != 7)
		return false;
	if (!all_hex(short_form, 2) || short_form[2] != ':' || !all_hex(short_form + 3, 2) ||
	    short_form[5] != '.' || short_form[6] < '0' || short_form[6] > '7')
		return false;
	snprintf(pci, GD_PCI_FULL, "%.5s%.7s", n == 12 ? text : "0000:", short_form);
	for (char *p = pci; *p != '\0'; p++)
		if (*p >= 'A' && *p <= 'F')
			*p = (char)(*p - 'A' + 'a');
	return true;
}

static uint64_t hash(const char *text, uint64_t h)
{
	for (; *text != '\0'; text++)
		h = (h ^ (unsigned char)*text) * 0x100000001b3ull;
	return h;
}

void gd_service_name(char service[64], const char pci[13], const char *name)
{
	uint64_t h = hash(name, hash(pci, 0xcbf29ce484222325ull) * 31);
	char shown[24];
	size_t n = 0;

	for (const char *p = name; *p != '\0' && n + 1 < sizeof(shown); p++)
		shown[n++] = *p; /* the transport makes a file name of it */
	shown[n] = '\0';
	for (char *p = shown; *p != '\0'; p++)
		if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.",
			    *p))
			*p = '_';
	snprintf(service, 64, "%.2s.%.4s-%s-%016llx", pci + 5, pci + 8, shown,
		 (unsigned long long)h);
}

/* -- the set -- */

static struct doca_devinfo *find(const char *pci)
{
	for (uint32_t i = 0; i < n_infos; i++)
		if (strcmp(infos[i]->pci, pci) == 0)
			return infos[i];
	return NULL;
}

static void set_mac(struct doca_devinfo *info)
{
	uint64_t h = hash(info->card, hash(info->pci, 0xcbf29ce484222325ull));

	info->mac[0] = 0x02; /* of nobody's range */
	for (int i = 1; i < 6; i++)
		info->mac[i] = (uint8_t)(h >> 8 * i);
}

static struct doca_devinfo *add_function(const char *pci)
{
	struct doca_devinfo *info = n_infos < MAX_FUNCTIONS ? calloc(1, sizeof(*info)) : NULL;

	if (!info)
		return NULL;
	snprintf(info->pci, sizeof(info->pci), "%s", pci);
	info->index = n_infos;
	infos[n_infos++] = info;
	return info;
}

static int set_reps(struct doca_devinfo *info, const struct rep_said *said, uint32_t n)
{
	struct doca_devinfo_rep *reps = calloc(n, sizeof(*reps));

	if (!reps)
		return -1;
	for (uint32_t i = 0; i < n; i++) {
		reps[i].of = info;
		snprintf(reps[i].pci, sizeof(reps[i].pci), "%s", said[i].pci);
		snprintf(reps[i].iface, sizeof(reps[i].iface), "%s", said[i].iface);
		snprintf(reps[i].vuid, sizeof(reps[i].vuid), "GANTRY-%s-%s", info->card,
			 said[i].pci);
	}
	free(info->reps);
	info->reps = reps;
	info->n_reps = n;
	return 0;
}

static struct gd_wire *add_wire(const char *name, const char *plugin, const char *card,
				struct gn_conf_node *node)
{
	struct gd_wire *wire = n_wires < MAX_FUNCTIONS ? &wires[n_wires++] : NULL;

	if (!wire)
		return NULL;
	snprintf(wire->name, sizeof(wire->name), "%s", name);
	wire->plugin = plugin;
	wire->card = card;
	wire->node = node;
	return wire;
}

/* What is not said stays as it was. */
static void describe(struct doca_devinfo *info, const char *name, const struct said *said)
{
	snprintf(info->name, sizeof(info->name), "%s", name);
	snprintf(info->card, sizeof(info->card), "%s", said->card);
	if (said->ibdev[0] != '\0')
		snprintf(info->ibdev, sizeof(info->ibdev), "%s", said->ibdev);
	else if (info->ibdev[0] == '\0')
		snprintf(info->ibdev, sizeof(info->ibdev), "mlx5_%u", info->index);
	if (said->iface[0] != '\0')
		snprintf(info->iface, sizeof(info->iface), "%s", said->iface);
	if (said->profile != 0)
		info->side = (enum gd_side)said->profile;
	set_mac(info);
}

static int add_defaults(void)
{
	static const struct said dpu = {"0000:03:00.0", "mlx5_0", "p0", THE_CARD, NULL, GD_DPU, 0};
	static const struct said host = {"0000:b1:00.0", "mlx5_1", "ens1f0np0", THE_CARD, NULL,
					 GD_HOST,        0};
	static const struct rep_said rep = {"0000:b1:00.0", "pf0hpf"};
	const struct {
		const char *name;
		const struct said *said;
	} both[] = {{"dpu", &dpu}, {"host", &host}};

	for (int i = 0; i < 2; i++) {
		struct doca_devinfo *info = add_function(both[i].said->pci);

		if (!info)
			return -1;
		describe(info, both[i].name, both[i].said);
		info->comch = true;
		info->local = add_wire(both[i].name, GD_TRANSPORT_OF_THE_CARD, THE_CARD, NULL);
	}
	return set_reps(infos[0], &rep, 1);
}

/* -- the configuration -- */

static void parse_reps(struct doca_devinfo *info, struct gn_conf_node *list, struct gn_errs *errs)
{
	struct rep_said said[MAX_REPS];
	char pci[MAX_REPS][GD_PCI_FULL];
	uint32_t n = 0;

	if (!gn_conf_is_list(list) || gn_conf_length(list) == 0 ||
	    gn_conf_length(list) > MAX_REPS) {
		gn_conf_fault(
			errs, list,
			"is no list of 1 to %d representors; write ( { pci = \"b1:00.0\"; } )",
			MAX_REPS);
		return;
	}
	for (; n < gn_conf_length(list); n++) {
		struct gn_conf_node *node = gn_conf_index(list, n);

		if (!gn_conf_is_group(node))
			gn_conf_fault(errs, node, "is no group; write { pci = \"b1:00.0\"; }");
		else if (gn_conf_options(node, rep_options, &said[n], NULL, errs) == 0 &&
			 !gd_pci_parse(said[n].pci, pci[n]))
			gn_conf_fault_option(errs, node, "pci",
					     "is no PCI address; write such as \"b1:00.0\"");
		said[n].pci = pci[n];
	}
	if (errs->n == 0 && set_reps(info, said, n) != 0)
		gn_errs_add(errs, "out of memory");
}

/* Is it a typing error of a key that must be there and is not? */
static bool is_misspelt(struct gn_conf_node *node, const char *name)
{
	for (const struct gantry_option *row = said_options; row->name; row++)
		if (!row->dflt && !gn_conf_child(node, row->name) &&
		    gn_config_near(name, row->name) >= 0)
			return true;
	return false;
}

/*
 * The names of options of a plugin that stand in the entry beside ours: said_options must let them
 * pass. Where it knows which plugin, that one tells of unknown keys; a misspelt "pci" or
 * "transport" keeps it from coming so far.
 */
static const char **all_names(struct gn_conf_node *node)
{
	unsigned n = gn_conf_length(node);
	const char **names = calloc(n + 1, sizeof(*names)), **next = names;

	for (unsigned i = 0; i < n && names; i++) {
		const char *name = gn_conf_name(gn_conf_index(node, i));

		if (!is_misspelt(node, name))
			*next++ = name;
	}
	return names;
}

static int read_said(struct gn_conf_node *node, struct said *said, char pci[GD_PCI_FULL],
		     struct gn_errs *errs)
{
	const char **names = all_names(node);
	int rc = !names ? -1 : gn_conf_options(node, said_options, said, names, errs);

	free(names);
	if (rc != 0)
		return rc;
	if (!gd_pci_parse(said->pci, pci)) {
		gn_conf_fault_option(errs, node, "pci",
				     "is no PCI address; write such as \"03:00.0\"");
		return -1;
	}
	return 0;
}

static void attach(struct doca_devinfo *info, struct gd_wire *wire, bool wide, struct gn_errs *errs)
{
	struct gd_wire **place = wide ? &info->wide : &info->local;

	if (*place && (*place)->node)
		gn_conf_fault(
			errs, wire->node,
			"function %s has such a transport already: \"%s\"; leave one of them out",
			info->pci, (*place)->name);
	*place = wire;
	if (wide)
		info->network = true;
	else
		info->comch = true;
}

/* Nothing authenticates the peers of a device on a network: its entry must accept that. */
static void check_access(const struct gd_wire *wire, const struct said *said, struct gn_errs *errs)
{
	if (gn_transport_is_network(wire->ops) && !said->insecure)
		gn_conf_fault(
			errs, wire->node,
			"the transport does not authenticate peers (transport=%s): every host that reaches the device could "
			"connect to programs that use it; to accept that, write insecure = true",
			wire->plugin);
}

static void parse_entry(struct gn_conf_node *node, struct gn_errs *errs)
{
	struct doca_devinfo *info;
	struct gd_wire *wire;
	char pci[GD_PCI_FULL];
	struct said said;
	bool wide;

	if (!gn_conf_is_group(node)) {
		gn_conf_fault(
			errs, node,
			"is no group; write { transport = \"NAME\"; pci = \"03:00.0\"; ... }");
		return;
	}
	if (read_said(node, &said, pci, errs) != 0)
		return;
	info = find(pci);
	if (!info)
		info = add_function(pci);
	wire = add_wire(gn_conf_name(node), said.transport, said.card, node);
	if (!info || !wire) {
		gn_conf_fault(errs, node, "there are more than %d functions, or there is no memory",
			      MAX_FUNCTIONS);
		return;
	}
	describe(info, wire->name, &said);
	if (gd_wire_load(wire, ours, errs, &wide) == 0) {
		check_access(wire, &said, errs);
		attach(info, wire, wide, errs);
	}
	if (gn_conf_child(node, "representors"))
		parse_reps(info, gn_conf_child(node, "representors"), errs);
	if (info->side == 0)
		info->side = info->n_reps > 0 ? GD_DPU : GD_HOST;
}

static void parse_file(const char *path, struct gn_errs *errs)
{
	static const char *const sections[] = {"runtime", "devices", "roles", "doca", NULL};
	struct gn_conf_node *root, *devices;

	config = gn_config_open(path, NULL, 0, errs);
	if (!config)
		return;
	root = gn_config_root(config);
	gn_conf_options(root, NULL, NULL, sections, errs);
	gn_conf_options(gn_conf_child(root, "doca"), doca_options, &doca_said, NULL, errs);
	gd_plugin_dirs(gn_conf_child(gn_conf_child(root, "runtime"), "plugin_dirs"));
	if (errs->n == 0 && doca_said.functions == 0 && add_defaults() != 0)
		gn_errs_add(errs, "out of memory");
	devices = gn_conf_child(root, "devices");
	if (devices && !gn_conf_is_group(devices))
		gn_conf_fault(errs, devices, "is no group; write devices = { NAME = { ... }; };");
	for (unsigned i = 0; i < gn_conf_length(devices) && errs->n == 0; i++)
		parse_entry(gn_conf_index(devices, i), errs);
}

/* Put what the profile leaves over to the front. */
static void choose(struct gn_errs *errs)
{
	const char *profile = getenv("GANTRY_DOCA_PROFILE");
	uint32_t side = 0;

	if (profile && profile[0] != '\0') {
		side = strcmp(profile, "host") == 0  ? GD_HOST
		       : strcmp(profile, "dpu") == 0 ? GD_DPU
						     : 0;
		if (side == 0)
			gn_errs_add(
				errs,
				"GANTRY_DOCA_PROFILE is \"%.32s\"; write host or dpu, or unset it",
				profile);
	}
	for (uint32_t i = 0; i < n_infos; i++) {
		struct doca_devinfo *info = infos[i];

		if (side != 0 && info->side != side)
			continue;
		infos[i] = infos[n_listed];
		infos[n_listed++] = info;
	}
}

/* Nothing was there yet: the next question begins again. */
static doca_error_t no_memory(void)
{
	while (n_infos > 0) {
		free(infos[--n_infos]->reps);
		free(infos[n_infos]);
	}
	n_wires = 0;
	return DOCA_ERROR_NO_MEMORY;
}

static doca_error_t load(void)
{
	const char *path = getauxval(AT_SECURE) ? NULL : getenv("GANTRY_DOCA_CONF");
	struct gn_errs errs = {.n = 0};

	if (path && path[0] != '\0')
		parse_file(path, &errs);
	else if (add_defaults() != 0)
		return no_memory();
	choose(&errs);
	if (errs.n == 0)
		return DOCA_SUCCESS;
	n_listed = 0;
	gd_log_errs(&errs);
	return DOCA_ERROR_NOT_FOUND;
}

doca_error_t gd_devices(struct doca_devinfo *const **infos_p, uint32_t *n_p)
{
	pthread_mutex_lock(&lock);
	if (!loaded)
		load_result = load();
	loaded = load_result != DOCA_ERROR_NO_MEMORY;
	pthread_mutex_unlock(&lock);
	*infos_p = infos;
	*n_p = n_listed;
	return load_result;
}

uint64_t gd_connect_ns(void)
{
	return doca_said.connect_ns;
}
