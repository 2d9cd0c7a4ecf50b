/* The plan of a part of --bytes: pages, registration, and the time to load it, from rates that are measured here.
 *
 *   first touch of fresh pages, digest, locking of resident pages; with --read FILE: reading from its disk
 *   -> gw_doctor_plan_make, arithmetic alone -> three findings
 *
 * A load first touches the arena's pages and then reads, while other threads compare digests (core/files/load.h):
 * touch + the longer of reading and digests. Registration does what mlock does, and more. The measurements take some
 * tenths of a second and 256 MiB at most; what is refused or missing is left out, and the finding says so. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/memory/arena.h"
#include "core/memory/memory.h"
#include "core/numbers/digest.h"
#include "core/system/clock.h"
#include "tools/doctor/doctor.h"

#define TOUCH_BYTES ((uint64_t)256 << 20)
#define PIECES      8u
#define PAGE_BYTES  4096u
#define HUGE_BYTES  ((uint64_t)2 << 20)
#define ENTRY_BYTES 8u /* of a card's table of translations, for each page: docs/SCALING.md */
#define READ_BYTES  ((size_t)4 << 20)
#define READ_MAX    ((uint64_t)1 << 30)
#define READ_NS     (1500 * GW_NS_PER_MS)

static uint64_t ceiling(uint64_t bytes, uint64_t unit)
{
	return bytes / unit + (bytes % unit != 0);
}

static double seconds(uint64_t bytes, double rate)
{
	return rate > 0 ? (double)bytes / rate : 0;
}

void gw_doctor_plan_make(uint64_t bytes, const struct gw_doctor_rates *rates, struct gw_doctor_plan *plan)
{
	const double threads = rates->threads ? rates->threads : 1, verifiers = threads > 1 ? threads - 1 : 1;
	*plan = (struct gw_doctor_plan){
		.pages = ceiling(bytes, PAGE_BYTES),
		.huge_pages = ceiling(bytes, HUGE_BYTES),
		.keys = ceiling(bytes, GW_ARENA_SLICE_MAX),
		.touch_s = seconds(bytes, rates->touch * threads),
		.digest_s = seconds(bytes, rates->digest * verifiers),
		.read_s = seconds(bytes, rates->read),
		.pin_s = seconds(bytes, rates->pin),
	};
	plan->translations = plan->pages * ENTRY_BYTES;
	plan->huge_translations = plan->huge_pages * ENTRY_BYTES;
	plan->load_s = plan->touch_s + (plan->read_s > plan->digest_s ? plan->read_s : plan->digest_s);
}

/* --- Rates. --- */

static double rate_of(uint64_t bytes, uint64_t began_ns)
{
	uint64_t ns = gw_now_ns() - began_ns;
	return (double)bytes / ((double)(ns ? ns : 1) / (double)GW_NS_PER_SECOND);
}

/* Other programs slow some pieces down. */
static void take_faster(double *rate, uint64_t bytes, uint64_t began_ns)
{
	double faster = rate_of(bytes, began_ns);
	*rate = faster > *rate ? faster : *rate;
}

static void measure_piece(struct gw_doctor_rates *rates, uint8_t *piece, uint64_t bytes)
{
	madvise(piece, bytes, MADV_HUGEPAGE); /* as an arena without a pool of huge pages */
	uint64_t began = gw_now_ns();
	for (uint64_t at = 0; at < bytes; at += PAGE_BYTES)
		*(volatile uint8_t *)(piece + at) = 1;
	take_faster(&rates->touch, bytes, began);
	began = gw_now_ns();
	volatile uint64_t digest = gw_digest(piece, bytes);
	(void)digest;
	take_faster(&rates->digest, bytes, began);
	began = gw_now_ns();
	if (mlock(piece, bytes) == 0)
		take_faster(&rates->pin, bytes, began);
}

/* In a small control group this touches little: the kernel would end this process, whose question is what the group
 * needs. Pieces that were touched stay until the end, since their pages would be used again while they are in caches.
 */
static void measure_memory(struct gw_doctor_rates *rates)
{
	struct gw_memory memory;
	gw_memory_read("", -1, &memory);
	uint64_t bytes = memory.available / 4 < TOUCH_BYTES ? memory.available / 4 : TOUCH_BYTES;
	uint64_t piece = ceiling(bytes / PIECES, HUGE_BYTES) * HUGE_BYTES;
	uint8_t *pages = mmap(NULL, TOUCH_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (pages == MAP_FAILED)
		return;
	for (uint64_t at = 0; piece > 0 && at + piece <= bytes; at += piece)
		measure_piece(rates, pages + at, piece);
	munmap(pages, TOUCH_BYTES);
}

/* Past the page cache, as a load reads. */
static gw_status measure_read(struct gw_doctor_rates *rates, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_DIRECT);
	if (fd < 0 && errno == EINVAL)
		fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return gw_fail_errno(GW_IO, errno, "--read %s", path);
	void *piece = mmap(NULL, READ_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (piece == MAP_FAILED) {
		close(fd);
		return gw_fail(GW_NO_MEMORY, "no memory for one read");
	}
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	uint64_t began = gw_now_ns(), done = 0;
	ssize_t n;
	int error = 0;
	do {
		n = read(fd, piece, READ_BYTES);
		error = n < 0 ? errno : 0;
		done += n > 0 ? (uint64_t)n : 0;
	} while (n > 0 && done < READ_MAX && gw_now_ns() < began + READ_NS);
	rates->read = done ? rate_of(done, began) : 0;
	munmap(piece, READ_BYTES);
	close(fd);
	if (error)
		return gw_fail_errno(GW_IO, error, "--read %s", path);
	return done ? GW_OK : gw_fail(GW_INVALID, "--read %s: the file is empty; name a large file of the parts", path);
}

gw_status gw_doctor_rates_measure(struct gw_doctor_rates *rates, uint32_t threads, const char *file)
{
	*rates = (struct gw_doctor_rates){.threads = threads, .file = file};
	measure_memory(rates);
	return file ? measure_read(rates, file) : GW_OK;
}

/* --- Findings. --- */

static const char *rate_text(char text[GW_UNIT_TEXT_MAX + 2], double rate)
{
	char bytes[GW_UNIT_TEXT_MAX];
	snprintf(text, GW_UNIT_TEXT_MAX + 2, "%s/s", gw_text_bytes(bytes, rate));
	return text;
}

static void plan_load(struct gw_doctor *doctor, const struct gw_doctor_rates *rates, const struct gw_doctor_plan *plan)
{
	struct gw_doctor_finding *finding = gw_doctor_find(doctor, GW_DOCTOR_OK, "load time");
	char time[GW_UNIT_TEXT_MAX], rate[GW_UNIT_TEXT_MAX + 2];
	gw_doctor_value(finding, "%s: ", gw_text_duration(time, plan->load_s));
	gw_doctor_value(finding, "first touch of pages %s, %s in each of %u threads; ",
			gw_text_duration(time, plan->touch_s), rate_text(rate, rates->touch), rates->threads);
	gw_doctor_value(finding, "digests %s, %s a thread; ", gw_text_duration(time, plan->digest_s),
			rate_text(rate, rates->digest));
	if (rates->read > 0)
		gw_doctor_value(finding, "reading %s, %s from %s", gw_text_duration(time, plan->read_s),
				rate_text(rate, rates->read), rates->file);
	else
		gw_doctor_value(finding, "reading is not measured");
	if (!(rates->read > 0)) {
		gw_doctor_raise(finding, GW_DOCTOR_NOTE);
		gw_doctor_fix(finding,
			      "graphwire doctor --bytes SIZE --read FILE, a large file on the disk of the parts");
	}
	gw_doctor_figure(finding, "load_s", plan->load_s);
	gw_doctor_figure(finding, "touch_bytes_per_second", rates->touch);
	gw_doctor_figure(finding, "digest_bytes_per_second", rates->digest);
	if (rates->read > 0)
		gw_doctor_figure(finding, "read_bytes_per_second", rates->read);
}

static void plan_registration(struct gw_doctor *doctor, const struct gw_doctor_rates *rates,
			      const struct gw_doctor_plan *plan)
{
	struct gw_doctor_finding *finding = gw_doctor_find(doctor, GW_DOCTOR_OK, "registration");
	char time[GW_UNIT_TEXT_MAX], rate[GW_UNIT_TEXT_MAX + 2], small[GW_UNIT_TEXT_MAX], huge[GW_UNIT_TEXT_MAX];
	if (rates->pin > 0)
		gw_doctor_value(finding, "at least %s a device, %s by mlock in one thread, without the card's part; ",
				gw_text_duration(time, plan->pin_s), rate_text(rate, rates->pin));
	else
		gw_doctor_value(finding, "the time is not measured: mlock is refused; ");
	gw_doctor_value(finding,
			"%llu keys; a card's translations take %s on pages of 2 MiB (%llu pages), %s on pages of 4 KiB",
			(unsigned long long)plan->keys, gw_text_bytes(huge, (double)plan->huge_translations),
			(unsigned long long)plan->huge_pages, gw_text_bytes(small, (double)plan->translations));
	if (!(rates->pin > 0))
		gw_doctor_raise(finding, GW_DOCTOR_NOTE);
	gw_doctor_figure(finding, "keys", (double)plan->keys);
	gw_doctor_figure(finding, "huge_pages", (double)plan->huge_pages);
	gw_doctor_figure(finding, "translation_bytes", (double)plan->translations);
	gw_doctor_figure(finding, "huge_translation_bytes", (double)plan->huge_translations);
	if (rates->pin > 0)
		gw_doctor_figure(finding, "pin_s", plan->pin_s);
}

void gw_doctor_plan(struct gw_doctor *doctor)
{
	struct gw_doctor_plan plan;
	if (!doctor->bytes || !doctor->rates)
		return;
	gw_doctor_plan_make(doctor->bytes, doctor->rates, &plan);
	plan_load(doctor, doctor->rates, &plan);
	plan_registration(doctor, doctor->rates, &plan);
}
