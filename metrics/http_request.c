/* A head is parsed when its empty line has come. Names of headers are compared without case. A bare LF ends a line as
 * CRLF does. Only what this program answers by is looked at; a body is never read, since no request has a use for one.
 */
#include "metrics/http_request.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

bool gw_http_text_is(struct gw_http_text text, const char *other)
{
	return text.bytes == strlen(other) && memcmp(text.at, other, text.bytes) == 0;
}

/* --- The request. --- */

static bool is_token(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
	       (c && strchr("!#$%&'*+-.^_`|~", c));
}

static bool is_token_text(struct gw_http_text text)
{
	for (size_t i = 0; i < text.bytes; i++)
		if (!is_token(text.at[i]))
			return false;
	return text.bytes > 0;
}

/* Cuts the text at the first `end`; *rest begins after it. Without one, the text is all, and rest is empty. */
static struct gw_http_text cut_at(struct gw_http_text text, char end, struct gw_http_text *rest)
{
	const char *found = text.bytes ? memchr(text.at, end, text.bytes) : NULL;
	const size_t bytes = found ? (size_t)(found - text.at) : text.bytes;
	*rest = (struct gw_http_text){text.at + bytes + (found != NULL), text.bytes - bytes - (found != NULL)};
	return (struct gw_http_text){text.at, bytes};
}

static struct gw_http_text trim(struct gw_http_text text)
{
	while (text.bytes && (*text.at == ' ' || *text.at == '\t')) {
		text.at++;
		text.bytes--;
	}
	while (text.bytes && (text.at[text.bytes - 1] == ' ' || text.at[text.bytes - 1] == '\t'))
		text.bytes--;
	return text;
}

static bool is_word(struct gw_http_text text, const char *name)
{
	return text.bytes == strlen(name) && strncasecmp(text.at, name, text.bytes) == 0;
}

/* The bytes up to the empty line, without it; 0: it has not come. */
static size_t head_bytes(const char *bytes, size_t count)
{
	for (size_t at = 0; at < count;) {
		const char *end = memchr(bytes + at, '\n', count - at);
		if (!end)
			return 0;
		size_t line = (size_t)(end - bytes) - at;
		if (at && (line == 0 || (line == 1 && bytes[at] == '\r')))
			return at;
		at += line + 1;
	}
	return 0;
}

/* "GET /path HTTP/1.1"; proxies write the path after the server's name: "http://host/path". */
static uint32_t parse_first(struct gw_http_text line, struct gw_http_request *out, bool *host_wanted)
{
	struct gw_http_text target, version, query;
	out->method = cut_at(line, ' ', &target);
	target = cut_at(target, ' ', &version);
	if (!is_token_text(out->method) || version.bytes != 8 || memcmp(version.at, "HTTP/", 5) != 0 ||
	    version.at[6] != '.')
		return 400;
	if (version.at[5] != '1')
		return 505;
	*host_wanted = version.at[7] != '0';
	if (target.bytes > 7 && strncasecmp(target.at, "http://", 7) == 0) {
		target = (struct gw_http_text){target.at + 7, target.bytes - 7};
		const char *path = memchr(target.at, '/', target.bytes);
		target = path ? (struct gw_http_text){path, target.bytes - (size_t)(path - target.at)}
			      : (struct gw_http_text){"/", 1};
	}
	for (size_t i = 0; i < target.bytes; i++)
		if (target.at[i] <= ' ' || target.at[i] > '~')
			return 400;
	if (!target.bytes || (*target.at != '/' && !gw_http_text_is(target, "*")))
		return 400;
	out->path = cut_at(target, '?', &query);
	out->head = gw_http_text_is(out->method, "HEAD");
	return 200;
}

uint32_t gw_http_request_parse(const char *bytes, size_t count, struct gw_http_request *out)
{
	*out = (struct gw_http_request){0};
	size_t all = head_bytes(bytes, count < GW_HTTP_REQUEST_MAX ? count : GW_HTTP_REQUEST_MAX);
	if (!all)
		return count < GW_HTTP_REQUEST_MAX ? 0 : 431;
	struct gw_http_text rest = {bytes, all};
	uint32_t hosts = 0, status = 0;
	bool host_wanted = false;
	while (rest.bytes) {
		struct gw_http_text line = cut_at(rest, '\n', &rest), value;
		if (line.bytes && line.at[line.bytes - 1] == '\r')
			line.bytes--;
		if (memchr(line.at, '\r', line.bytes) || memchr(line.at, '\0', line.bytes))
			return 400;
		if (!status) {
			status = parse_first(line, out, &host_wanted);
			if (status != 200)
				return status;
			continue;
		}
		struct gw_http_text name = cut_at(line, ':', &value);
		if (name.bytes == line.bytes || !is_token_text(name))
			return 400;
		hosts += is_word(name, "host");
		if (is_word(name, "accept") && !out->accept.at)
			out->accept = trim(value);
	}
	return hosts > 1 || (host_wanted && !hosts) ? 400 : 200;
}

/* --- What the client accepts. --- */

/* "0.5" as 500; a malformed weight counts as 0. */
static uint32_t weight_of(struct gw_http_text text)
{
	uint32_t weight = 0, digit = 1000;
	if (!text.bytes || (*text.at != '0' && *text.at != '1') || (text.bytes > 1 && text.at[1] != '.') ||
	    text.bytes > 5)
		return 0;
	for (size_t i = 0; i < text.bytes; i++) {
		if (i == 1)
			continue;
		if (text.at[i] < '0' || text.at[i] > '9')
			return 0;
		weight += (uint32_t)(text.at[i] - '0') * digit;
		digit /= 10;
	}
	return weight < 1000 ? weight : 1000;
}

/* The weight of one media range, and the version that it asks for. */
static uint32_t read_parameters(struct gw_http_text parameters, struct gw_http_text *version)
{
	uint32_t weight = 1000;
	*version = (struct gw_http_text){NULL, 0};
	while (parameters.bytes) {
		struct gw_http_text value, name = trim(cut_at(cut_at(parameters, ';', &parameters), '=', &value));
		value = trim(value);
		if (value.bytes > 1 && *value.at == '"' && value.at[value.bytes - 1] == '"')
			value = (struct gw_http_text){value.at + 1, value.bytes - 2};
		if (is_word(name, "version"))
			*version = value;
		else if (is_word(name, "q"))
			weight = weight_of(value);
	}
	return weight;
}

bool gw_http_wants_openmetrics(struct gw_http_text accept)
{
	uint32_t open = 0, plain = 0;
	while (accept.bytes) {
		struct gw_http_text parameters, version,
			type = trim(cut_at(cut_at(accept, ',', &accept), ';', &parameters));
		uint32_t weight = read_parameters(parameters, &version);
		if (is_word(type, "application/openmetrics-text")) {
			if ((!version.at || gw_http_text_is(version, "1.0.0")) && weight > open)
				open = weight;
		} else if ((is_word(type, "text/plain") && (!version.at || gw_http_text_is(version, "0.0.4"))) ||
			   is_word(type, "text/*") || is_word(type, "*/*")) {
			plain = weight > plain ? weight : plain;
		}
	}
	return open > 0 && open >= plain;
}

/* --- The response. --- */

static const char *reason_of(uint32_t status)
{
	static const struct {
		uint32_t status;
		const char *reason;
	} reasons[] = {{200, "OK"},
		       {400, "Bad Request"},
		       {404, "Not Found"},
		       {405, "Method Not Allowed"},
		       {408, "Request Timeout"},
		       {431, "Request Header Fields Too Large"},
		       {500, "Internal Server Error"},
		       {503, "Service Unavailable"},
		       {505, "HTTP Version Not Supported"}};
	for (size_t i = 0; i < sizeof(reasons) / sizeof(*reasons); i++)
		if (reasons[i].status == status)
			return reasons[i].reason;
	return "Error";
}

size_t gw_http_head_print(char out[GW_HTTP_HEAD_MAX], uint32_t status, const char *content_type, uint64_t body_bytes,
			  time_t now)
{
	/* strftime would write them in the language of the program's locale. */
	static const char *const days[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
	static const char *const months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
					     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
	struct tm date = {.tm_mday = 1};
	gmtime_r(&now, &date);
	int bytes = snprintf(out, GW_HTTP_HEAD_MAX,
			     "HTTP/1.1 %u %s\r\nDate: %s, %02d %s %d %02d:%02d:%02d GMT\r\nContent-Type: %s\r\n"
			     "Content-Length: %llu\r\nCache-Control: no-store\r\n%sConnection: close\r\n\r\n",
			     status, reason_of(status), days[date.tm_wday % 7], date.tm_mday, months[date.tm_mon % 12],
			     date.tm_year + 1900, date.tm_hour, date.tm_min, date.tm_sec, content_type,
			     (unsigned long long)body_bytes, status == 405 ? "Allow: GET, HEAD\r\n" : "");
	return (size_t)bytes;
}
