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
	E(ERROR_AGAIN, "Not possible now, try again"),
	E(ERROR_INVALID_VALUE, "Invalid argument"),
	E(ERROR_NO_MEMORY, "Out of memory or of room in a pool"),
	E(ERROR_INITIALIZATION, "Could not be initialized"),
	E(ERROR_TIME_OUT, "Took too long"),
	E(ERROR_SHUTDOWN, "Is being shut down"),
	E(ERROR_CONNECTION_RESET, "Connection was reset by the peer"),
	E(ERROR_CONNECTION_ABORTED, "Connection was aborted"),
	E(ERROR_CONNECTION_INPROGRESS, "Connection is not there yet"),
	E(ERROR_NOT_CONNECTED, "Not connected"),
	E(ERROR_NO_LOCK, "Lock is not to be had"),
	E(ERROR_NOT_FOUND, "Not found"),
	E(ERROR_IO_FAILED, "Input or output failed"),
	E(ERROR_BAD_STATE, "Not possible in this state"),
	E(ERROR_UNSUPPORTED_VERSION, "Version is not supported"),
	E(ERROR_OPERATING_SYSTEM, "Operating system call failure"),
	E(ERROR_DRIVER, "DOCA Driver call failure"),
	E(ERROR_UNEXPECTED, "Something unexpected happened"),
	E(ERROR_ALREADY_EXIST, "Exists already"),
	E(ERROR_FULL, "No room left"),
	E(ERROR_EMPTY, "Nothing there"),
	E(ERROR_IN_PROGRESS, "Has begun and is not finished"),
	E(ERROR_TOO_BIG, "Too big"),
	E(ERROR_AUTHENTICATION, "Authentication failed"),
	E(ERROR_BAD_CONFIG, "Bad configuration"),
	E(ERROR_SKIPPED, "Was skipped"),
};

const char *doca_error_get_name(doca_error_t error)
{
	return (size_t)error < sizeof(errors) / sizeof(errors[0]) ? errors[error].name : unknown;
}

const char *doca_error_get_descr(doca_error_t error)
{
	return (size_t)error < sizeof(errors) / sizeof(errors[0]) ? errors[error].text : unknown;
}
