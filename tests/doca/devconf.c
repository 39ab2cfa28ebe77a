/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The PCI functions (devices) that the environment and a configuration define. Each test runs in a
 * separate process.
 */
#include <doca_ctx.h>
#include <doca_dev.h>
#include <doca_pe.h>
#include <doca_rdma.h>

#include "captured.h"

#define TINY_DIR TEST_PLUGINDIR "/../../tests/.libs"

static char file[64];

static void print_functions(void)
{
	struct doca_devinfo **infos;
	uint32_t n_infos = 0;
	doca_error_t result = doca_devinfo_create_list(&infos, &n_infos);

	if (result != DOCA_SUCCESS)
		printf("%d\n", (int)result);
	for (uint32_t i = 0; i < n_infos; i++) {
		char pci[DOCA_DEVINFO_PCI_ADDR_SIZE], ibdev[DOCA_DEVINFO_IBDEV_NAME_SIZE];
		uint8_t net;

		doca_devinfo_get_pci_addr_str(infos[i], pci);
		doca_devinfo_get_ibdev_name(infos[i], ibdev, sizeof(ibdev));
		doca_devinfo_rep_cap_is_filter_net_supported(infos[i], &net);
		printf("%s %s %d\n", pci, ibdev, net);
	}
	if (result == DOCA_SUCCESS)
		doca_devinfo_destroy_list(infos);
}

static void write_file(const char *text)
{
	FILE *f = fopen(file, "w");

	TEST_ASSERT_NOT_NULL(f);
	fputs(text, f);
	fclose(f);
	setenv("GANTRY_DOCA_CONF", file, 1);
}

static void with_profile(const char *profile, const char *expected)
{
	setenv("GANTRY_DOCA_PROFILE", profile, 1);
	TEST_ASSERT_EQUAL_INT(0, captured(print_functions));
	unsetenv("GANTRY_DOCA_PROFILE");
	TEST_ASSERT_EQUAL_STRING(expected, captured_out);
}

static void profile_selects_one_side(void)
{
	with_profile("dpu", "0000:03:00.0 mlx5_0 1\n");
	with_profile("host", "0000:b1:00.0 mlx5_1 0\n");
	with_profile("", "0000:03:00.0 mlx5_0 1\n0000:b1:00.0 mlx5_1 0\n");
	with_profile("switch", "16\n");
	TEST_ASSERT_NOT_NULL(
		strstr(captured_err, "GANTRY_DOCA_PROFILE is \"switch\"; write host or dpu"));
}

static void configured(const char *text, const char *expected)
{
	write_file(text);
	TEST_ASSERT_EQUAL_INT(0, captured(print_functions));
	unsetenv("GANTRY_DOCA_CONF");
	TEST_ASSERT_EQUAL_STRING(expected, captured_out);
}

static void a_configuration_changes_and_adds_functions(void)
{
	configured(
		"devices = { a = { transport = \"shm-comch\"; pci = \"03:00.0\"; ibdev = \"mlx5_7\"; };\n"
		"b = { transport = \"shm-comch\"; pci = \"0000:C1:00.1\"; max_depth = 64;\n"
		"representors = ( { pci = \"e1:00.0\"; } ); }; };",
		"0000:03:00.0 mlx5_7 1\n0000:b1:00.0 mlx5_1 0\n0000:c1:00.1 mlx5_2 1\n");
	configured(
		"doca = { functions = \"none\"; };\n"
		"devices = { a = { transport = \"shm-comch\"; pci = \"04:00.0\"; profile = \"dpu\"; }; };",
		"0000:04:00.0 mlx5_0 0\n");
	configured("devices = { a = { transport = \"loop\"; pci = \"b1:00.0\"; }; };",
		   "0000:03:00.0 mlx5_0 1\n0000:b1:00.0 mlx5_1 0\n");
}

/*
 * Print the interface and the address that the last configured function reports, and the address
 * that its representor reports.
 */
static void print_interfaces(void)
{
	char iface[DOCA_DEVINFO_IFACE_NAME_SIZE];
	struct doca_devinfo **infos;
	struct doca_devinfo_rep **reps;
	struct doca_dev *dev;
	uint32_t n_infos, n_reps;
	uint8_t ip[4];

	doca_devinfo_create_list(&infos, &n_infos);
	printf("%s ", doca_error_get_name(doca_devinfo_get_iface_name(infos[n_infos - 1], iface,
								      sizeof(iface))));
	printf("%s ",
	       doca_error_get_name(doca_devinfo_get_ipv4_addr(infos[n_infos - 1], ip, sizeof(ip))));
	doca_dev_open(infos[n_infos - 1], &dev);
	if (doca_devinfo_rep_create_list(dev, 0, &reps, &n_reps) == DOCA_SUCCESS)
		printf("%s", doca_error_get_name(doca_devinfo_rep_get_iface_name(reps[0], iface,
										 sizeof(iface))));
}

static void interfaces(const char *text, const char *expected)
{
	write_file(text);
	TEST_ASSERT_EQUAL_INT(0, captured(print_interfaces));
	unsetenv("GANTRY_DOCA_CONF");
	TEST_ASSERT_EQUAL_STRING(expected, captured_out);
}

static void a_function_may_have_no_interface_or_one_without_address(void)
{
	interfaces("devices = { a = { transport = \"shm-comch\"; pci = \"04:00.0\";\n"
		   "representors = ( { pci = \"e1:00.0\"; } ); }; };",
		   "DOCA_ERROR_OPERATING_SYSTEM DOCA_SUCCESS DOCA_ERROR_OPERATING_SYSTEM");
	interfaces(
		"devices = { a = { transport = \"shm-comch\"; pci = \"04:00.0\"; iface = \"none0\";\n"
		"representors = ( { pci = \"e1:00.0\"; iface = \"e0\"; } ); }; };",
		"DOCA_SUCCESS DOCA_SUCCESS DOCA_SUCCESS");
}

/*
 * An emulated interface has the address of this machine; the interface of a network device has its
 * own address, or no address.
 */
static void an_interface_of_a_network_may_have_no_address(void)
{
	char plugin[256];

	snprintf(plugin, sizeof(plugin), "%s/rxe.so",
		 getenv("GANTRY_PLUGINS") ? getenv("GANTRY_PLUGINS") : ".");
	if (access(plugin, R_OK) != 0)
		TEST_IGNORE_MESSAGE("no transport of a network is built");
	interfaces(
		"devices = { a = { transport = \"rxe\"; pci = \"04:00.0\"; iface = \"none0\"; auth = \"none\"; }; };",
		"DOCA_SUCCESS DOCA_ERROR_NOT_FOUND ");
}

static void mistake(const char *text, const char *message)
{
	configured(text, "16\n");
	TEST_ASSERT_NOT_NULL_MESSAGE(strstr(captured_err, message), captured_err);
}

static void configuration_errors_are_reported_with_their_line(void)
{
	mistake("devices = {\n a = { transport = \"shm-comch\"; };\n};", ":2: ");
	mistake("devices = {\n a = { transport = \"shm-comch\";\n pci = \"3:0\"; };\n};",
		":3: devices.a.pci: is not a PCI address");
	mistake("devices = {\n a = { transport = \"shm-comch\"; pci = \"03:00.0\";\n services = \"x\"; };\n};",
		":3: devices.a.services: is not a group");
	mistake("devices = {\n a = { transport = \"rope\"; pci = \"03:00.0\"; };\n};",
		":2: devices.a.transport: no transport plugin");
	mistake("devices = {\n a = { transport = \"shm-comch\"; pci = \"03:00.0\";\n max_dept = 3; };\n};",
		":3: ");
	mistake("devices = {\n a = { transport = \"shm-comch\"; pci = \"03:00.0\";\n ring_slots = 300; };\n};",
		":3: devices.a.ring_slots: 300 is not a power of two");
	mistake("devices = {\n a = { transport = \"shm-comch\"; pci = \"03:00.0\";\n representors = ( { pci = \"x\"; } ); };\n};",
		"is not a PCI address");
	mistake("devices = {\n a = { transport = \"shm-comch\"; pci = \"03:00.0\"; };\n"
		" b = { transport = \"shm-comch\"; pci = \"03:00.0\"; };\n};",
		"already has a transport within this machine");
	mistake("devicez = { };", "devicez");
	mistake("devices = {\n a = { transport = \"shm-comch\";\n pic = \"03:00.0\"; max_depth = 64; };\n};",
		":3: devices.a.pic: unknown key; did you mean \"pci\"?");
	/* the plugin knows max_depth, so no message names it */
	TEST_ASSERT_NULL_MESSAGE(strstr(captured_err, "max_depth"), captured_err);
	mistake("devices = {\n a = { pci = \"03:00.0\";\n transprot = \"shm-comch\"; max_depth = 64; };\n};",
		":3: devices.a.transprot: unknown key; did you mean \"transport\"?");
	TEST_ASSERT_NULL_MESSAGE(strstr(captured_err, "max_depth"), captured_err);
	mistake("devices = {\n a = { transport = \"shm-comch\"; pci = \"03:00.0\";\n ifcae = \"p0\"; };\n};",
		":3: devices.a.ifcae: unknown key; did you mean \"iface\"?");
	setenv("GANTRY_DOCA_CONF", "/nonexistent/file", 1);
	TEST_ASSERT_EQUAL_INT(0, captured(print_functions));
	unsetenv("GANTRY_DOCA_CONF");
	TEST_ASSERT_EQUAL_STRING("16\n", captured_out);
}

/* Print the result of starting a context on the function that was configured last. */
static void start_rdma(void)
{
	struct doca_devinfo **infos;
	struct doca_rdma *rdma;
	struct doca_dev *dev;
	struct doca_pe *pe;
	uint32_t n;

	setenv("GANTRY_PLUGIN_PATH", TINY_DIR ":" TEST_PLUGINDIR, 1);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_devinfo_create_list(&infos, &n));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_dev_open(infos[n - 1], &dev));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_rdma_create(dev, &rdma));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_pe_create(&pe));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_pe_connect_ctx(pe, doca_rdma_as_ctx(rdma)));
	printf("%s", doca_error_get_name(doca_ctx_start(doca_rdma_as_ctx(rdma))));
}

/* The plugin tiny represents any transport whose flags do not limit it to this machine. */
static void a_network_needs_an_explicit_statement(void)
{
	static const char why[] =
		":2: devices.a: does not say how peers on the network prove who they are (transport=tiny): "
		"write auth = \"psk\" or \"x509\"";

	if (access(TINY_DIR "/tiny.so", R_OK))
		TEST_IGNORE_MESSAGE("built without the test plugin tiny");
	setenv("GANTRY_PLUGIN_PATH", TINY_DIR ":" TEST_PLUGINDIR, 1);
	mistake("devices = {\n a = { transport = \"tiny\"; pci = \"c1:00.0\"; };\n};", why);
	mistake("devices = {\n a = { transport = \"tiny\"; pci = \"c1:00.0\"; auth = \"unset\"; };\n};",
		why);
	mistake("devices = {\n a = { transport = \"tiny\"; pci = \"c1:00.0\"; auth = \"psk\"; };\n};",
		":2: devices.a: \"auth_keys\" is missing; auth needs it");
	configured(
		"doca = { functions = \"none\"; };\n"
		"devices = { a = { transport = \"tiny\"; pci = \"c1:00.0\"; auth = \"none\"; }; };",
		"0000:c1:00.0 mlx5_0 0\n");
	configured(
		"doca = { functions = \"none\"; };\n"
		"devices = { a = { transport = \"shm-comch\"; pci = \"c1:00.0\"; auth = \"none\"; }; };",
		"0000:c1:00.0 mlx5_0 0\n");
}

/* Opening the device prints one line. */
static void opening_a_network_device_logs_a_warning(void)
{
	static const char text[] =
		"device a: the transport does not authenticate peers (transport=tiny): every host that "
		"reaches the device can connect to this program (auth = \"none\")";
	const char *at;

	if (access(TINY_DIR "/tiny.so", R_OK))
		TEST_IGNORE_MESSAGE("built without the test plugin tiny");
	write_file(
		"devices = { a = { transport = \"tiny\"; pci = \"c1:00.0\"; auth = \"none\"; }; };");
	TEST_ASSERT_EQUAL_INT(0, captured(start_rdma));
	unsetenv("GANTRY_DOCA_CONF");
	at = strstr(captured_err, text);
	TEST_ASSERT_NOT_NULL_MESSAGE(at, captured_err);
	TEST_ASSERT_NULL(strstr(at + 1, text));
}

static void transport_without_a_function_of_its_capability_is_not_opened(void)
{
	if (access(TINY_DIR "/tiny.so", R_OK))
		TEST_IGNORE_MESSAGE("built without the test plugin tiny");
	write_file(
		"devices = { a = { transport = \"tiny\"; pci = \"c1:00.0\"; notes = true; auth = \"none\"; }; };");
	TEST_ASSERT_EQUAL_INT_MESSAGE(0, captured(start_rdma), captured_out);
	unsetenv("GANTRY_DOCA_CONF");
	TEST_ASSERT_EQUAL_STRING("DOCA_ERROR_INITIALIZATION", captured_out);
	TEST_ASSERT_NOT_NULL_MESSAGE(
		strstr(captured_err,
		       "plugin tiny reports a capability without its function \"rma_write_imm\""),
		captured_err);
}

int main(void)
{
	const char *tmp = getenv("TMPDIR");
	int fd;

	if (getenv("GANTRY_PLUGINS"))
		setenv("GANTRY_PLUGIN_PATH", getenv("GANTRY_PLUGINS"), 1);
	unsetenv("GANTRY_DOCA_CONF");
	unsetenv("GANTRY_DOCA_PROFILE");
	snprintf(file, sizeof(file), "%.40s/gantry-dev.XXXXXX", tmp ? tmp : "/tmp");
	fd = mkstemp(file);
	if (fd < 0)
		return 1;
	close(fd);
	UNITY_BEGIN();
	RUN_TEST(profile_selects_one_side);
	RUN_TEST(a_configuration_changes_and_adds_functions);
	RUN_TEST(a_function_may_have_no_interface_or_one_without_address);
	RUN_TEST(an_interface_of_a_network_may_have_no_address);
	RUN_TEST(configuration_errors_are_reported_with_their_line);
	RUN_TEST(a_network_needs_an_explicit_statement);
	RUN_TEST(opening_a_network_device_logs_a_warning);
	RUN_TEST(transport_without_a_function_of_its_capability_is_not_opened);
	unlink(file);
	return UNITY_END();
}
