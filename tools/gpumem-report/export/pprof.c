/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pprof's profile.proto, gzipped.  The messages are few and flat, so they are encoded by hand: a field is a varint of
 * (number << 3 | type), then a varint, or a length and bytes.
 *
 * Total requests (SITES) and bytes held are separate samples, each with zeros for the values of the other; pprof adds
 * them up.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "format/memory.h"
#include "tools/gpumem-report/export/export.h"

enum field {
	PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLE = 2,
	PROFILE_LOCATION = 4,
	PROFILE_FUNCTION = 5,
	PROFILE_STRING_TABLE = 6,
	PROFILE_TIME_NANOS = 9,
	PROFILE_DEFAULT_SAMPLE_TYPE = 14,
	SAMPLE_LOCATION = 1,
	SAMPLE_VALUE = 2,
	SAMPLE_LABEL = 3,
};

/* pprof shows the last one by default. */
static const char *const sample_types[][2] = { { "alloc_objects", "count" },
	{ "alloc_space", "bytes" }, { "inuse_objects", "count" }, { "inuse_space", "bytes" } };

#define N_TYPES (sizeof sample_types / sizeof sample_types[0])

struct bytes {
	unsigned char *data;
	size_t n;
	size_t room;
};

struct profile {
	const struct gpc_report *report;
	struct bytes out;
	struct gpc_map strings;
	struct gpc_export_numbers locations;
};

static void put(struct bytes *bytes, const void *data, size_t n)
{
	if (bytes->n + n > bytes->room) {
		bytes->room = 2 * (bytes->n + n) + 64;
		bytes->data = gpc_resize(bytes->data, bytes->room, 1);
	}
	memcpy(bytes->data + bytes->n, data, n);
	bytes->n += n;
}

static void put_varint(struct bytes *bytes, uint64_t value)
{
	unsigned char byte;

	do {
		byte = (unsigned char)(value & 0x7f);
		value >>= 7;
		byte = (unsigned char)(byte | (value ? 0x80 : 0));
		put(bytes, &byte, 1);
	} while (value);
}

static void put_number(struct bytes *bytes, unsigned field, uint64_t value)
{
	put_varint(bytes, field << 3);
	put_varint(bytes, value);
}

static void put_data(struct bytes *bytes, unsigned field, const void *data, size_t n)
{
	put_varint(bytes, field << 3 | 2);
	put_varint(bytes, n);
	if (n)
		put(bytes, data, n);
}

/* Appends a complete nested message. */
static void put_message(struct bytes *bytes, unsigned field, struct bytes *message)
{
	put_data(bytes, field, message->data, message->n);
	free(message->data);
	*message = (struct bytes){ 0 };
}

static uint64_t string_of(struct profile *profile, const char *text)
{
	bool is_new;
	uint64_t number = gpc_map_number(&profile->strings, text, &is_new);

	if (is_new)
		put_data(&profile->out, PROFILE_STRING_TABLE, text, strlen(text));
	return number;
}

/* Returns the number of the name's location, which has one line, and a function of the same number. */
static uint64_t location_of(
	struct profile *profile, const struct gpc_export_sample *sample, size_t i)
{
	const struct gpc_frame *frame = gpc_export_frame(profile->report, sample, i);
	GPC_TEXT(text, GPC_EXPORT_NAME_SIZE);
	struct bytes function = { 0 };
	struct bytes location = { 0 };
	struct bytes line = { 0 };
	unsigned number;
	bool is_new =
		gpc_export_number(&profile->locations, profile->report, sample, i, &text, &number);

	number++; /* the first is 1 */
	if (!is_new)
		return number;
	put_number(&function, 1, number);
	put_number(&function, 2,
		string_of(profile, frame && frame->function ? frame->function : text.buf));
	put_number(&function, 4, string_of(profile, frame && frame->file ? frame->file : ""));
	put_message(&profile->out, PROFILE_FUNCTION, &function);
	put_number(&line, 1, number);
	put_number(&line, 2, frame ? frame->line : 0);
	put_number(&location, 1, number);
	put_message(&location, 4, &line);
	put_message(&profile->out, PROFILE_LOCATION, &location);
	return number;
}

static void put_label(struct profile *profile, struct bytes *sample, const char *key, int64_t value)
{
	struct bytes label = { 0 };

	put_number(&label, 1, string_of(profile, key));
	put_number(&label, 3, (uint64_t)value);
	put_message(sample, SAMPLE_LABEL, &label);
}

static void put_sample(
	struct profile *profile, const struct gpc_export_sample *of, const uint64_t values[N_TYPES])
{
	struct bytes sample = { 0 };
	struct bytes numbers = { 0 };

	/* pprof wants the leaf first.  The GPU, name 0 of the path, becomes a label. */
	for (size_t i = gpc_export_depth(profile->report, of); --i > 0;)
		put_varint(&numbers, location_of(profile, of, i));
	put_message(&sample, SAMPLE_LOCATION, &numbers);
	for (size_t i = 0; i < N_TYPES; i++)
		put_varint(&numbers, values[i]);
	put_message(&sample, SAMPLE_VALUE, &numbers);
	put_label(profile, &sample, "gpu", of->device);
	if (profile->report->recording->header.rank >= 0)
		put_label(profile, &sample, "rank", profile->report->recording->header.rank);
	put_message(&profile->out, PROFILE_SAMPLE, &sample);
}

static void put_samples(struct profile *profile, const struct gpc_export_samples *samples)
{
	const struct gpc_recording *rec = profile->report->recording;
	struct gpucache_site site;

	for (size_t i = 0; i < samples->n; i++) {
		const struct gpc_export_sample *sample = &samples->rows[i];

		/* SITES has no contexts and modules. */
		put_sample(profile, sample,
			(uint64_t[N_TYPES]){ sample->what ? sample->n_blocks : 0,
				sample->what ? sample->bytes : 0, sample->n_blocks,
				sample->bytes });
	}
	for (uint64_t i = 1; i < rec->regions[GPUCACHE_REGION_SITES].count; i++) {
		if (!gpc_recording_read_site(rec, i, &site) || !site.total_bytes ||
			!gpc_report_wants(profile->report, site.device))
			continue;
		put_sample(profile,
			&(struct gpc_export_sample){ .device = site.device, .stack = site.stack },
			(uint64_t[N_TYPES]){ site.total_blocks, site.total_bytes, 0, 0 });
	}
}

static void put_profile(struct profile *profile, const struct gpc_export_samples *samples)
{
	struct bytes type = { 0 };

	string_of(profile, ""); /* number 0 */
	for (size_t i = 0; i < N_TYPES; i++) {
		put_number(&type, 1, string_of(profile, sample_types[i][0]));
		put_number(&type, 2, string_of(profile, sample_types[i][1]));
		put_message(&profile->out, PROFILE_SAMPLE_TYPE, &type);
	}
	put_number(&profile->out, PROFILE_TIME_NANOS,
		profile->report->recording->header.start_realtime_ns);
	put_number(&profile->out, PROFILE_DEFAULT_SAMPLE_TYPE,
		string_of(profile, sample_types[N_TYPES - 1][0]));
	put_samples(profile, samples);
}

/* Compresses fast, as Go's profiler does: better levels take longer than all the rest of the export. */
static bool print_compressed(FILE *out, const struct bytes *bytes)
{
	gzFile gz = gzdopen(dup(fileno(out)), "wb1");
	bool is_written = gz && gzfwrite(bytes->data, 1, bytes->n, gz) == bytes->n;

	return gz && gzclose(gz) == Z_OK && is_written;
}

enum gpc_exit gpc_export_pprof(struct gpc_report *report)
{
	struct profile profile = { .report = report };
	struct gpc_export_samples samples;
	enum gpc_exit code = GPC_EXIT_MADE;

	gpc_export_samples_create(&samples, report);
	put_profile(&profile, &samples);
	if (!print_compressed(report->out, &profile.out)) {
		gpc_complain("cannot write: %s", strerror(errno));
		code = GPC_EXIT_IO;
	}
	gpc_export_samples_fini(&samples);
	gpc_map_fini(&profile.strings);
	gpc_export_numbers_fini(&profile.locations);
	free(profile.out.data);
	return code;
}
