/* Parses and prints addresses: a scheme, a host and a port. A colon inside brackets belongs to an IPv6 address. Two
 * ambiguous forms are errors: two colons without brackets ("::1:80"), and a number alone, which may mean a port. */
#include "transport/address.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "transport/scheme.h"

#define SCHEME_BYTES sizeof(((struct gw_address *)NULL)->scheme)

static gw_status address_malformed(const char *text, const char *what)
{
	return gw_fail(GW_INVALID, "address \"%.300s\": %s; give host:port, [v6]:port, shm:name or memory:name", text,
		       what);
}

/* False: the bytes do not fit. */
static bool address_copy(char *out, size_t out_bytes, const char *from, size_t n)
{
	if (n == 0 || n >= out_bytes)
		return false;
	memcpy(out, from, n);
	out[n] = 0;
	return true;
}

static gw_status parse_port(const char *text, const char *digits, uint16_t *port)
{
	size_t n = strlen(digits);
	if (n == 0 || n > 5 || strspn(digits, "0123456789") != n)
		return address_malformed(text, "the port is not a number");
	long value = strtol(digits, NULL, 10);
	if (value > 65535)
		return address_malformed(text, "the port is above 65535");
	*port = (uint16_t)value;
	return GW_OK;
}

/* Returns the rest of the text. "tcp" without a colon is a host name. */
static const char *parse_scheme(const char *text, char scheme[16])
{
	for (size_t i = 0; i < GW_SCHEMES; i++) {
		size_t n = strlen(gw_schemes[i].name);
		if (strncmp(text, gw_schemes[i].name, n) != 0 || text[n] != ':')
			continue;
		snprintf(scheme, SCHEME_BYTES, "%s", gw_schemes[i].name);
		text += n + 1;
		return strncmp(text, "//", 2) == 0 ? text + 2 : text;
	}
	snprintf(scheme, SCHEME_BYTES, "%s", gw_schemes[GW_SCHEME_TCP].name);
	return text;
}

/* An IPv6 address, with or without a scope ("%eth0"). */
static bool is_v6(const char *host)
{
	char digits[INET6_ADDRSTRLEN];
	struct in6_addr ignored;
	size_t n = strcspn(host, "%");
	return address_copy(digits, sizeof(digits), host, n) && (!host[n] || host[n + 1]) &&
	       inet_pton(AF_INET6, digits, &ignored) == 1;
}

static gw_status parse_host_and_port(const char *text, const char *rest, struct gw_address *out)
{
	const char *colon;
	if (*rest == '[') {
		const char *end = strchr(rest, ']');
		if (!end)
			return address_malformed(text, "the bracket is not closed");
		if (!address_copy(out->host, sizeof(out->host), rest + 1, (size_t)(end - rest - 1)) ||
		    !is_v6(out->host))
			return address_malformed(text, "no IPv6 address in the brackets");
		if (end[1] && end[1] != ':')
			return address_malformed(text, "something other than a port follows the bracket");
		colon = end[1] ? end + 1 : NULL;
	} else {
		colon = strchr(rest, ':');
		if (colon && strchr(colon + 1, ':'))
			return address_malformed(text, "an IPv6 address needs brackets");
		size_t n = colon ? (size_t)(colon - rest) : strlen(rest);
		if (!address_copy(out->host, sizeof(out->host), rest, n))
			return address_malformed(text, n ? "the host name is too long" : "no host");
		if (strspn(out->host, "0123456789") == n)
			return address_malformed(text, "a number, but no host");
	}
	for (const char *c = out->host; *c; c++)
		if (!isalnum((unsigned char)*c) && !strchr(".-_:%", *c))
			return address_malformed(text, "a character that no host name has");
	return colon ? parse_port(text, colon + 1, &out->port) : GW_OK;
}

/* Whether the scheme has names instead of host and port. */
static bool is_named(const struct gw_address *address)
{
	const struct gw_scheme *scheme = gw_scheme_find(address->scheme);
	return scheme && scheme->local;
}

bool gw_address_name_check(const char *name)
{
	size_t n = strlen(name);
	for (const char *c = name; *c; c++)
		if (!isalnum((unsigned char)*c) && !strchr(".-_", *c))
			return false;
	return n > 0 && n <= GW_ADDRESS_NAME_MAX;
}

gw_status gw_address_parse(const char *text, struct gw_address *out)
{
	*out = (struct gw_address){.port = GW_PORT_DEFAULT};
	if (strlen(text) >= GW_ADDRESS_MAX)
		return address_malformed(text, "too long");
	const char *rest = parse_scheme(text, out->scheme);
	if (!is_named(out))
		return parse_host_and_port(text, rest, out);
	out->port = 0;
	if (!address_copy(out->host, sizeof(out->host), rest, strlen(rest)))
		return address_malformed(text, "no name");
	if (gw_scheme_find(out->scheme)->is_file && !gw_address_name_check(out->host))
		return address_malformed(text, "a character that is not allowed in a name");
	return GW_OK;
}

char *gw_address_text(const struct gw_address *address, char buffer[GW_ADDRESS_MAX])
{
	const char *prefix = strcmp(address->scheme, gw_schemes[GW_SCHEME_TCP].name) == 0 ? "" : address->scheme;
	const char *colon = *prefix ? ":" : "";
	if (is_named(address))
		snprintf(buffer, GW_ADDRESS_MAX, "%s:%s", address->scheme, address->host);
	else if (strchr(address->host, ':'))
		snprintf(buffer, GW_ADDRESS_MAX, "%s%s[%s]:%u", prefix, colon, address->host, address->port);
	else
		snprintf(buffer, GW_ADDRESS_MAX, "%s%s%s:%u", prefix, colon, address->host, address->port);
	return buffer;
}

bool gw_address_has_port(const struct gw_address *address)
{
	return !is_named(address);
}

bool gw_address_is_loopback(const struct gw_address *address)
{
	if (is_named(address))
		return true;
	return strcasecmp(address->host, "localhost") == 0 || strcmp(address->host, "::1") == 0 ||
	       (strncmp(address->host, "127.", 4) == 0 &&
		strspn(address->host, "0123456789.") == strlen(address->host));
}
