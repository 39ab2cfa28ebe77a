/* SPDX-License-Identifier: BSD-3-Clause */
/* doca_error.c - names and descriptions of error codes */
#include <doca_error.h>

#include <stddef.h>

static const char unknown[] = "unrecognized error code";

#define E(name, text) [DOCA_##name] = {"DOCA_" #name, text}

static const struct {
	const char *name, *text;
} errors[] = {
	E(SUCCESS, "Success"),
	E(ERROR_UNKNOWN, "Unknown error"),
	E(ERROR_NOT_PERMITTED, "Operation is not permitted"),
	E(ERROR_IN_USE, "Resource is still in use"),
	E(ERROR_NOT_SUPPORTED, "Operation is not supported"),
	E(ERROR_AGAIN, "Temporarily not possible, try again"),
	E(ERROR_INVALID_VALUE, "Invalid argument"),
	E(ERROR_NO_MEMORY, "Out of memory, or the pool is empty"),
	E(ERROR_INITIALIZATION, "Initialization failed"),
	E(ERROR_TIME_OUT, "Timeout"),
	E(ERROR_SHUTDOWN, "Shutdown in progress"),
	E(ERROR_CONNECTION_RESET, "Connection was reset by the peer"),
	E(ERROR_CONNECTION_ABORTED, "Connection was aborted"),
	E(ERROR_CONNECTION_INPROGRESS, "Connection is not yet established"),
	E(ERROR_NOT_CONNECTED, "Not connected"),
	E(ERROR_NO_LOCK, "Lock could not be acquired"),
	E(ERROR_NOT_FOUND, "Not found"),
	E(ERROR_IO_FAILED, "Input or output failed"),
	E(ERROR_BAD_STATE, "Invalid in the current state"),
	E(ERROR_UNSUPPORTED_VERSION, "Version is not supported"),
	E(ERROR_OPERATING_SYSTEM, "Operating system call failure"),
	E(ERROR_DRIVER, "DOCA Driver call failure"),
	E(ERROR_UNEXPECTED, "Unexpected internal error"),
	E(ERROR_ALREADY_EXIST, "Already exists"),
	E(ERROR_FULL, "Container is full"),
	E(ERROR_EMPTY, "Container is empty"),
	E(ERROR_IN_PROGRESS, "Operation is in progress"),
	E(ERROR_TOO_BIG, "Value is too large"),
	E(ERROR_AUTHENTICATION, "Authentication failed"),
	E(ERROR_BAD_CONFIG, "Invalid configuration"),
	E(ERROR_SKIPPED, "Operation was skipped"),
};

const char *doca_error_get_name(doca_error_t error)
{
	return (size_t)error < sizeof(errors) / sizeof(errors[0]) ? errors[error].name : unknown;
}

const char *doca_error_get_descr(doca_error_t error)
{
	return (size_t)error < sizeof(errors) / sizeof(errors[0]) ? errors[error].text : unknown;
}
