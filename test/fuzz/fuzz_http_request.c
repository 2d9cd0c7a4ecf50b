/* Any bytes as an HTTP request, and any text as a label: refused, or taken without a look past their end. A request is
 * understood the same in however many pieces it comes. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "metrics/exposition.h"
#include "metrics/http_request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int is_inside(struct gw_http_text text, const char *bytes, size_t size)
{
	/* "/" of a target without a path is a constant */
	return !text.at || (text.at >= bytes && text.at + text.bytes <= bytes + size) ||
	       (text.bytes == 1 && *text.at == '/');
}

static void parse(const uint8_t *data, size_t size)
{
	struct gw_http_request request, again;
	char head[GW_HTTP_HEAD_MAX];
	/* copies of exact size, so that a sanitizer sees a read past them */
	char *bytes = calloc(size + !size, 1), *longer = calloc(size + 64, 1);
	if (size)
		memcpy(bytes, data, size);
	memcpy(longer, bytes, size);
	memset(longer + size, 'x', 64);
	uint32_t status = gw_http_request_parse(bytes, size, &request);
	assert(status == 0 || status == 200 || status == 400 || status == 431 || status == 505);
	assert(status != 0 || size < GW_HTTP_REQUEST_MAX);
	if (status == 200) {
		assert(request.method.bytes && request.path.bytes);
		assert(is_inside(request.method, bytes, size) && is_inside(request.path, bytes, size) &&
		       is_inside(request.accept, bytes, size));
		gw_http_wants_openmetrics(request.accept);
	}
	if (status == 200 || status == 400 || status == 505) {
		assert(gw_http_request_parse(longer, size + 64, &again) == status);
		assert(again.path.bytes == request.path.bytes);
	}
	if (status)
		assert(gw_http_head_print(head, status, "text/plain", size, (time_t)size) < sizeof(head));
	free(bytes);
	free(longer);
}

/* Quotes, lines and backslashes are escaped, so a label ends where its quote is. */
static void label(const uint8_t *data, size_t size)
{
	char labels[GW_EXPOSITION_LABELS_MAX] = "";
	char *value = malloc(size + 1);
	if (size)
		memcpy(value, data, size);
	value[size] = '\0';
	gw_exposition_label(labels, "a", value);
	gw_exposition_label(labels, "b", value);
	size_t length = strlen(labels), quotes = 0;
	assert(length < sizeof(labels));
	for (size_t i = 0; i < length; i++) {
		assert((unsigned char)labels[i] >= ' ');
		if (labels[i] == '\\') {
			i++;
			assert(labels[i] == '\\' || labels[i] == '"' || labels[i] == 'n');
		} else {
			quotes += labels[i] == '"';
		}
	}
	assert(quotes == 0 || quotes == 2 || quotes == 4);
	assert(!length || labels[length - 1] == '"');
	free(value);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	if (data[0] % 4 == 0)
		label(data + 1, size - 1);
	else
		parse(data + 1, size - 1);
	return 0;
}
