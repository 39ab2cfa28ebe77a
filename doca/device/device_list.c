/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * device_list.c - the functions of this process: the defaults, and the entries of $GANTRY_DOCA_CONF
 *
 * The set is created at the first use and exists until the process ends: pointers to a devinfo
 * remain valid after its list is freed.
 */
#include "device/device_list.h"

#include "common/gd_log.h"

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

/* The configuration of a function; "": not set. */
struct function_conf {
	const char *pci, *ibdev, *iface, *card, *transport;
	uint32_t profile; /* 0: not set; else enum gd_side */
};

static const struct gantry_option function_options[] = {
	{"pci", GANTRY_OPT_STRING, offsetof(struct function_conf, pci), NULL, 0, 0, NULL, NULL,
	 "PCI address of the function."},
	{"ibdev", GANTRY_OPT_STRING, offsetof(struct function_conf, ibdev), "", 0, 0, NULL, NULL,
	 "Name of the RDMA device."},
	{"iface", GANTRY_OPT_STRING, offsetof(struct function_conf, iface), "", 0, 0, NULL, NULL,
	 "Name of the network interface."},
	{"card", GANTRY_OPT_STRING, offsetof(struct function_conf, card), THE_CARD, 0, 0, NULL,
	 NULL, "Emulated card of the function: functions of one card can connect."},
	{"profile", GANTRY_OPT_CHOICE, offsetof(struct function_conf, profile), "auto", 0, 0,
	 profile_words, NULL, "Side of the function; auto: dpu if it has representors."},
	{"transport", GANTRY_OPT_STRING, offsetof(struct function_conf, transport), NULL, 0, 0,
	 NULL, NULL, "Name of a transport plugin."},
	GANTRY_OPTION_END,
};

/* Keys of an entry that belong neither to a plugin nor to the core. */
static const char *const function_keys[] = {"pci",  "ibdev",   "iface",
					    "card", "profile", "representors"};

#define N_FUNCTION_KEYS (sizeof(function_keys) / sizeof(function_keys[0]))
#define KEYS_MAX 32

/* Fill `keys` with the keys of an entry that do not belong to a plugin, and NULL. */
static void list_keys(const char *keys[KEYS_MAX])
{
	size_t n = N_FUNCTION_KEYS;

	memcpy(keys, function_keys, sizeof(function_keys));
	for (size_t i = 0; gn_device_keys[i] && n < KEYS_MAX - 1; i++)
		keys[n++] = gn_device_keys[i];
	keys[n] = NULL;
}

struct rep_conf {
	const char *pci, *iface;
};

static const struct gantry_option rep_options[] = {
	{"pci", GANTRY_OPT_STRING, offsetof(struct rep_conf, pci), NULL, 0, 0, NULL, NULL,
	 "PCI address of the represented function."},
	{"iface", GANTRY_OPT_STRING, offsetof(struct rep_conf, iface), "", 0, 0, NULL, NULL,
	 "Name of the network interface."},
	GANTRY_OPTION_END,
};

/* The group `doca` of the configuration. */
static struct {
	uint32_t functions;
	uint64_t connect_ns;
} doca_conf = {.connect_ns = 5000000000};

static const struct gantry_option doca_options[] = {
	{"functions", GANTRY_OPT_CHOICE, offsetof(typeof(doca_conf), functions), "default", 0, 0,
	 function_words, NULL,
	 "none: only the functions of this file; default: also the two default functions."},
	{"connect_timeout", GANTRY_OPT_TIME, offsetof(typeof(doca_conf), connect_ns), "5s", 1000000,
	 600000000000, NULL, NULL,
	 "How long a Comch client waits for a server that does not answer."},
	GANTRY_OPTION_END,
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct doca_devinfo *infos[MAX_FUNCTIONS]; /* listed functions come first */
static struct gd_wire wires[MAX_FUNCTIONS];
static uint32_t n_infos, n_wires, n_listed;
/*
 * The parsed configuration. The entries refer to its strings. No code reads the variable; the
 * attribute keeps it, so that a leak checker finds the memory.
 */
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
		shown[n++] = *p; /* the transport uses the name in a file name */
	shown[n] = '\0';
	for (char *p = shown; *p != '\0'; p++)
		if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.",
			    *p))
			*p = '_';
	snprintf(service, 64, "%.2s.%.4s-%s-%016llx", pci + 5, pci + 8, shown,
		 (unsigned long long)h);
}

void gd_comch_service(char service[64], const struct doca_devinfo *info, const char pci[13],
		      const char *name)
{
	struct gn_conf_node *node = info->local ? info->local->node : NULL;
	const char *text = gn_service_text(node, name);

	if (text != name)
		snprintf(service, 64, "%s", text);
	else
		gd_service_name(service, pci, name);
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

	info->mac[0] = 0x02; /* a locally administered address */
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

static int set_reps(struct doca_devinfo *info, const struct rep_conf *conf, uint32_t n)
{
	struct doca_devinfo_rep *reps = calloc(n, sizeof(*reps));

	if (!reps)
		return -1;
	for (uint32_t i = 0; i < n; i++) {
		reps[i].of = info;
		snprintf(reps[i].pci, sizeof(reps[i].pci), "%s", conf[i].pci);
		snprintf(reps[i].iface, sizeof(reps[i].iface), "%s", conf[i].iface);
		snprintf(reps[i].vuid, sizeof(reps[i].vuid), "GANTRY-%s-%s", info->card,
			 conf[i].pci);
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

/* Apply the configuration of a function. A value that is not set does not change. */
static void describe(struct doca_devinfo *info, const char *name, const struct function_conf *conf)
{
	snprintf(info->name, sizeof(info->name), "%s", name);
	snprintf(info->card, sizeof(info->card), "%s", conf->card);
	if (conf->ibdev[0] != '\0')
		snprintf(info->ibdev, sizeof(info->ibdev), "%s", conf->ibdev);
	else if (info->ibdev[0] == '\0')
		snprintf(info->ibdev, sizeof(info->ibdev), "mlx5_%u", info->index);
	if (conf->iface[0] != '\0')
		snprintf(info->iface, sizeof(info->iface), "%s", conf->iface);
	if (conf->profile != 0)
		info->side = (enum gd_side)conf->profile;
	set_mac(info);
}

static int add_defaults(void)
{
	static const struct function_conf dpu = {"0000:03:00.0", "mlx5_0", "p0",
						 THE_CARD,       NULL,     GD_DPU};
	static const struct function_conf host = {"0000:b1:00.0", "mlx5_1", "ens1f0np0",
						  THE_CARD,       NULL,     GD_HOST};
	static const struct rep_conf rep = {"0000:b1:00.0", "pf0hpf"};
	const struct {
		const char *name;
		const struct function_conf *conf;
	} both[] = {{"dpu", &dpu}, {"host", &host}};

	for (int i = 0; i < 2; i++) {
		struct doca_devinfo *info = add_function(both[i].conf->pci);

		if (!info)
			return -1;
		describe(info, both[i].name, both[i].conf);
		info->comch = true;
		info->local = add_wire(both[i].name, GD_TRANSPORT_OF_THE_CARD, THE_CARD, NULL);
	}
	return set_reps(infos[0], &rep, 1);
}

/* -- the configuration -- */

static void parse_reps(struct doca_devinfo *info, struct gn_conf_node *list, struct gn_errs *errs)
{
	struct rep_conf conf[MAX_REPS];
	char pci[MAX_REPS][GD_PCI_FULL];
	uint32_t n = 0;

	if (!gn_conf_is_list(list) || gn_conf_length(list) == 0 ||
	    gn_conf_length(list) > MAX_REPS) {
		gn_conf_fault(
			errs, list,
			"is not a list of 1 to %d representors; write ( { pci = \"b1:00.0\"; } )",
			MAX_REPS);
		return;
	}
	for (; n < gn_conf_length(list); n++) {
		struct gn_conf_node *node = gn_conf_index(list, n);

		if (!gn_conf_is_group(node))
			gn_conf_fault(errs, node, "is not a group; write { pci = \"b1:00.0\"; }");
		else if (gn_conf_options(node, rep_options, &conf[n], NULL, errs) == 0 &&
			 !gd_pci_parse(conf[n].pci, pci[n]))
			gn_conf_fault_option(errs, node, "pci",
					     "is not a PCI address; write for example \"b1:00.0\"");
		conf[n].pci = pci[n];
	}
	if (errs->n == 0 && set_reps(info, conf, n) != 0)
		gn_errs_add(errs, "out of memory");
}

/* Returns whether the name is a misspelling of a required key that is missing. */
static bool is_misspelt(struct gn_conf_node *node, const char *name)
{
	for (const struct gantry_option *row = function_options; row->name; row++)
		if (!row->dflt && !gn_conf_child(node, row->name) &&
		    gn_config_near(name, row->name) >= 0)
			return true;
	return false;
}

/*
 * Returns the keys of the entry that function_options must accept, because they can belong to a
 * plugin. The plugin rejects unknown keys later. A misspelt "pci" or "transport" is left out, so
 * that it is reported here: without the key, no plugin is loaded.
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

static int read_function(struct gn_conf_node *node, struct function_conf *conf,
			 char pci[GD_PCI_FULL], struct gn_errs *errs)
{
	const char **names = all_names(node);
	int rc = !names ? -1 : gn_conf_options(node, function_options, conf, names, errs);

	free(names);
	if (rc != 0)
		return rc;
	if (!gd_pci_parse(conf->pci, pci)) {
		gn_conf_fault_option(errs, node, "pci",
				     "is not a PCI address; write for example \"03:00.0\"");
		return -1;
	}
	return 0;
}

static void attach(struct doca_devinfo *info, struct gd_wire *wire, struct gn_errs *errs)
{
	bool wide = gn_transport_is_network(wire->loaded->ops);
	struct gd_wire **place = wide ? &info->wide : &info->local;

	if (*place && (*place)->node)
		gn_conf_fault(
			errs, wire->node,
			"function %s already has a transport %s (entry \"%s\"); remove one of the two entries",
			info->pci, wide ? "on a network" : "within this machine", (*place)->name);
	*place = wire;
	if (wide)
		info->network = true;
	else
		info->comch = true;
}

/* Fill wire->auth. A network transport needs a statement about its peers. */
static void parse_auth(struct gd_wire *wire, struct gn_errs *errs)
{
	/* the plugin has reported unknown keys already */
	const char **names = all_names(wire->node), *missing;
	int rc = !names ? -1
			: gn_conf_options(wire->node, gn_auth_options, &wire->auth, names, errs);

	free(names);
	if (rc != 0 || !gn_transport_is_network(wire->loaded->ops))
		return;
	missing = gn_auth_missing(&wire->auth, true);
	if (wire->auth.mode == GN_AUTH_UNSET)
		gn_conf_fault(
			errs, wire->node,
			"does not say how peers on the network prove who they are (transport=%s): write auth = \"psk\" or "
			"\"x509\", see gantry-security(7); auth = \"none\" lets every host that reaches the device connect to programs "
			"that use it",
			wire->plugin);
	else if (missing)
		gn_conf_fault(errs, wire->node, "\"%s\" is missing; auth needs it", missing);
}

static void parse_entry(struct gn_conf_node *node, struct gn_errs *errs)
{
	struct doca_devinfo *info;
	struct gd_wire *wire;
	char pci[GD_PCI_FULL];
	const char *keys[KEYS_MAX];
	struct function_conf conf;

	if (!gn_conf_is_group(node)) {
		gn_conf_fault(
			errs, node,
			"is not a group; write { transport = \"NAME\"; pci = \"03:00.0\"; ... }");
		return;
	}
	if (read_function(node, &conf, pci, errs) != 0)
		return;
	info = find(pci);
	if (!info)
		info = add_function(pci);
	wire = add_wire(gn_conf_name(node), conf.transport, conf.card, node);
	if (!info || !wire) {
		gn_conf_fault(errs, node, "too many functions (limit %d), or out of memory",
			      MAX_FUNCTIONS);
		return;
	}
	describe(info, wire->name, &conf);
	list_keys(keys);
	if (gd_wire_load(wire, keys, errs) == 0) {
		parse_auth(wire, errs);
		gn_services_check(node, wire->loaded, wire->conf, errs);
		attach(info, wire, errs);
	}
	if (gn_conf_child(node, "representors"))
		parse_reps(info, gn_conf_child(node, "representors"), errs);
	if (info->side == 0)
		info->side = info->n_reps > 0 ? GD_DPU : GD_HOST;
}

static void parse_file(const char *path, struct gn_errs *errs)
{
	static const char *const sections[] = {"runtime",   "devices", "roles",
					       "observers", "doca",    NULL};
	struct gn_conf_node *root, *devices;

	config = gn_config_open(path, NULL, 0, errs);
	if (!config)
		return;
	root = gn_config_root(config);
	gn_conf_options(root, NULL, NULL, sections, errs);
	gn_conf_options(gn_conf_child(root, "doca"), doca_options, &doca_conf, NULL, errs);
	gd_plugin_dirs(gn_conf_child(gn_conf_child(root, "runtime"), "plugin_dirs"));
	if (errs->n == 0 && doca_conf.functions == 0 && add_defaults() != 0)
		gn_errs_add(errs, "out of memory");
	devices = gn_conf_child(root, "devices");
	if (devices && !gn_conf_is_group(devices))
		gn_conf_fault(errs, devices,
			      "is not a group; write devices = { NAME = { ... }; };");
	for (unsigned i = 0; i < gn_conf_length(devices) && errs->n == 0; i++)
		parse_entry(gn_conf_index(devices, i), errs);
}

/* Move the functions of the selected profile to the front. */
static void select_profile(struct gn_errs *errs)
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

/* Discard the incomplete set, so that the next call tries again. */
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
	select_profile(&errs);
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
	return doca_conf.connect_ns;
}
