/* SPDX-License-Identifier: BSD-3-Clause */
/* rxe_link.c - finds soft-RoCE devices in sysfs and creates them over netlink. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <net/if.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rdma/rdma_netlink.h>

#include "rxe.h"

/*
 * Read the network interface of a soft-RoCE device. Returns false for other RDMA devices, which
 * have no attribute `parent`.
 */
static int parent(const char *sysfs, const char *name, char *netdev, size_t size)
{
	char path[512];
	ssize_t n;
	int fd;

	if ((size_t)snprintf(path, sizeof(path), "%s/%s/parent", sysfs, name) >= sizeof(path))
		return 0;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	n = read(fd, netdev, size - 1);
	close(fd);
	if (n <= 0)
		return 0;
	netdev[n] = 0;
	netdev[strcspn(netdev, "\n")] = 0;
	return 1;
}

int rxe_is_one(const char *sysfs, const char *name)
{
	char netdev[64];

	return parent(sysfs, name, netdev, sizeof(netdev));
}

int rxe_find(const char *sysfs, const char *netdev, char name[RXE_NAME])
{
	DIR *dir = opendir(sysfs);
	struct dirent *entry;
	int n = 0;

	if (!dir)
		return errno == ENOMEM ? -ENOMEM : -ENODEV;
	while ((entry = readdir(dir))) {
		char of[64];

		if (entry->d_name[0] == '.' || !parent(sysfs, entry->d_name, of, sizeof(of)) ||
		    (*netdev && strcmp(of, netdev)))
			continue;
		snprintf(name, RXE_NAME, "%.63s", entry->d_name);
		n++;
	}
	closedir(dir);
	return n == 0 ? -ENODEV : n > 1 ? -ENOTUNIQ : 0;
}

static int put(struct nlmsghdr *head, size_t size, uint16_t type, const char *text)
{
	struct nlattr *attr = (void *)((char *)head + NLMSG_ALIGN(head->nlmsg_len));
	size_t bytes = strlen(text) + 1;

	if (NLMSG_ALIGN(head->nlmsg_len) + NLA_HDRLEN + bytes > size)
		return -EMSGSIZE;
	attr->nla_type = type;
	attr->nla_len = (uint16_t)(NLA_HDRLEN + bytes);
	memcpy((char *)attr + NLA_HDRLEN, text, bytes);
	head->nlmsg_len = NLMSG_ALIGN(head->nlmsg_len) + attr->nla_len;
	return 0;
}

int rxe_request(void *buf, size_t size, const char *name, const char *netdev)
{
	struct nlmsghdr *head = buf;
	int rc;

	memset(buf, 0, size);
	head->nlmsg_len = NLMSG_HDRLEN;
	head->nlmsg_type = RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_NEWLINK);
	head->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
	rc = put(head, size, RDMA_NLDEV_ATTR_DEV_NAME, name);
	if (!rc)
		rc = put(head, size, RDMA_NLDEV_ATTR_LINK_TYPE, "rxe");
	if (!rc)
		rc = put(head, size, RDMA_NLDEV_ATTR_NDEV_NAME, netdev);
	return rc ? rc : (int)head->nlmsg_len;
}

/* Send a request and read its reply. The kernel replies before send() returns. */
static int send_request(int fd, const void *request, size_t bytes)
{
	struct {
		struct nlmsghdr head;
		struct nlmsgerr err;
		char rest[512];
	} answer;
	ssize_t n;

	if (send(fd, request, bytes, 0) < 0)
		return -errno;
	n = recv(fd, &answer, sizeof(answer), MSG_DONTWAIT);
	if (n < 0)
		return -errno;
	if ((size_t)n < sizeof(answer.head) + sizeof(answer.err) ||
	    answer.head.nlmsg_type != NLMSG_ERROR)
		return -EPROTO;
	return answer.err.error;
}

static int request_kernel(const void *request, int bytes)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA), rc;

	if (fd < 0)
		return -errno;
	rc = send_request(fd, request, (size_t)bytes);
	close(fd);
	return rc;
}

static void name_of(const char *netdev, char name[RXE_NAME])
{
	snprintf(name, RXE_NAME, "rxe_%.48s", netdev);
}

int rxe_create(const char *netdev, char name[RXE_NAME])
{
	uint32_t request[64];
	int rc;

	name_of(netdev, name);
	rc = rxe_request(request, sizeof(request), name, netdev);
	return rc < 0 ? rc : request_kernel(request, rc);
}

int rxe_may_create(const char *sysfs, const char *netdev, char name[RXE_NAME])
{
	const struct nlmsghdr nameless = {
		.nlmsg_len = NLMSG_HDRLEN,
		.nlmsg_type = RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_NEWLINK),
		.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK};
	char path[512];
	int rc;

	name_of(netdev, name);
	if (!if_nametoindex(netdev))
		return -errno;
	snprintf(path, sizeof(path), "%.400s/%s", sysfs, name);
	if (access(path, F_OK) == 0)
		return -EEXIST;
	rc = request_kernel(&nameless, NLMSG_HDRLEN);
	/*
	 * The request has no names. The kernel checks the privilege before it looks for the names,
	 * so EINVAL means that this process has the privilege.
	 */
	return rc == -EINVAL ? 0 : rc;
}

const char *rxe_advice(int rc)
{
	switch (rc) {
	case -EPERM:
	case -EACCES:
		return "it needs CAP_NET_ADMIN: run `rdma link add` as root once, or give gantry the capability";
	case -EINVAL:
	case -EOPNOTSUPP:
	case -EPROTONOSUPPORT:
		return "the kernel has no soft-RoCE: run `modprobe rdma_rxe` as root";
	case -ENODEV:
		return "there is no such network interface: see `ip link`";
	case -EEXIST:
		return "another RDMA device has that name: see `rdma link`";
	default:
		return strerror(-rc);
	}
}
