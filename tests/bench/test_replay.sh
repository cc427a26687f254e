#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# test_replay.sh BUILD_DIR: tests gpumem-replay by its command line, and what developers add to it (replay/kit.c).  Prints
# a line per test, then the counts.
set -u
build=$(cd "$1" && pwd)
tool=$build/gpumem-replay
kit=$build/tests/bench/replay/gpumem-replay
top=$(cd "$(dirname "$0")/../.." && pwd)
cd "$(dirname "$0")/traces" || exit 1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0
failed=0

result() { # NAME STATUS
	if [ "$2" -eq 0 ]; then
		echo "ok $1"
		passed=$((passed + 1))
	else
		echo "FAIL $1"
		sed 's/^/     /' "$work/out" "$work/err"
		failed=$((failed + 1))
	fi
}

run() { # ARGUMENT...; sets $code to the exit status
	"$tool" "$@" >"$work/out" 2>"$work/err"
	code=$?
}

# Runs the tool, and checks its exit status and that its output contains TEXT.
answers() { # NAME CODE TEXT ARGUMENT...
	name=$1
	want=$2
	text=$3
	shift 3
	run "$@"
	[ "$code" -eq "$want" ] && cat "$work/out" "$work/err" | grep -qF -e "$text"
	result "$name" $?
}

# Prints the last number with this key in the JSON of the last run.
figure() { # KEY
	sed -n "s/.*\"$1\": *\([0-9.]*\).*/\1/p" "$work/out" | tail -1
}

reserves() { # NAME POLICY LEAST_MIB MOST_MIB TRACE
	run --json -p "$2" "$5"
	mib=$(($(figure peak_reserved_bytes) / 1048576))
	[ "$code" -eq 0 ] && [ "$mib" -ge "$3" ] && [ "$mib" -le "$4" ]
	result "$1" $?
}

cat >"$work/few.csv" <<'END'
op,id,size,stream,time_us
alloc,1,5242880,0,0
alloc,2,3000000,7,5
free,1,5242880,0,9
alloc,1,100,7,10
END
cat >"$work/empty_cache.csv" <<'END'
op,id,size,stream,time_us
alloc,1,31457280,0,0
free,1,31457280,0,1
empty_cache,0,0,0,2
alloc,2,52428800,0,3
END
cat >"$work/rmm.csv" <<'END'
Thread,Time,Action,Pointer,Size,Stream
1,15:47:02.841961,allocate,0x10012400000,1048576,0
1,15:47:02.841971,allocate failure,(nil),99999999999,0x2
2,15:47:03.841961,free,0x10012400000,1048576,0x7f3
2,15:47:03.841961,free,0xdead,1048576,0
END
printf 'op,id,size,stream,time_us\nalloc,1,x,0,0\n' >"$work/bad.csv"
printf 'op,id,size,stream,time_us\nalloc,1,0,0,0\n' >"$work/zero.csv"
: >"$work/empty.csv"
head -c 3000 medium_512_training.csv.gz >"$work/cut.csv.gz"
gzip -c "$work/few.csv" >"$work/few.csv.gz"

# The model must reserve what PyTorch itself did, within 3 % (README.md of the traces).
reserves the_model_of_pytorch_reserves_what_it_did_for_1024_training pytorch 23292 24732 medium_1024_training.csv.gz
reserves the_model_of_pytorch_reserves_what_it_did_for_512_training pytorch 11712 12436 medium_512_training.csv.gz
reserves the_model_of_pytorch_reserves_what_it_did_for_1024_inference pytorch 2965 3147 medium_1024_inference.csv.gz
# An implementation of the same rules in Python, written independently, reserves exactly these sizes.
reserves expandable_segments_map_what_is_needed_for_1024_training expandable 23546 23546 medium_1024_training.csv.gz
reserves expandable_segments_map_what_is_needed_for_512_training expandable 11958 11958 medium_512_training.csv.gz
reserves expandable_segments_map_what_is_needed_for_1024_inference expandable 2764 2764 medium_1024_inference.csv.gz
# gpucache reserves at most 5 % more than PyTorch did.
reserves ours_reserves_little_more_than_pytorch_for_1024_training gpucache 23086 25212 medium_1024_training.csv.gz
reserves ours_reserves_little_more_than_pytorch_for_512_training gpucache 11851 12677 medium_512_training.csv.gz
reserves ours_reserves_little_more_than_pytorch_for_1024_inference gpucache 2745 3208 medium_1024_inference.csv.gz

answers the_heap_is_whole_after_every_operation 0 'result                          ok' --check medium_512_training.csv.gz
answers several_policies_stand_side_by_side 0 'gpucache       pytorch          none' -p gpucache -p pytorch -p none "$work/few.csv"
answers a_packed_trace_reads_as_a_plain_one 0 '4 operations on 2 streams' "$work/few.csv.gz"
answers a_log_of_rmm_is_read_with_its_failures 0 '1 requests had failed when the trace was taken' "$work/rmm.csv"
answers a_free_of_the_unknown_is_left_out_and_said 0 '1 frees of what the trace does not allocate' "$work/rmm.csv"
answers a_request_that_does_not_fit_is_named_with_its_event_and_line 1 'event 2 (line 3), a request of 2.86 MiB' -m 6MiB "$work/few.csv"
answers two_traces_make_two_tables 0 'rmm.csv' "$work/few.csv" "$work/rmm.csv"
answers parameters_change_what_is_reserved 0 'peak reserved' -s max_split_size_mb:200,roundup_power2_divisions:4 medium_1024_training.csv.gz
answers a_row_that_is_none_is_damage_with_its_line 4 'line 2' "$work/bad.csv"
answers a_request_of_no_bytes_is_damage 4 'line 2' "$work/zero.csv"
answers an_empty_file_is_damage 4 'empty' "$work/empty.csv"
answers a_file_cut_off_is_damage 4 'cut off' "$work/cut.csv.gz"
answers a_missing_trace_is_not_found 3 'No such file' "$work/nothing.csv"
answers sizes_choose_the_memory_themselves 2 '--sizes chooses the memory itself' --sizes -m 1GiB "$work/few.csv"
answers sizes_are_a_table 0 'without limit' --sizes -p gpucache -p pytorch -p none "$work/few.csv"
answers sizes_are_in_the_json 0 '"sizes":' --sizes --json "$work/few.csv"
answers where_it_does_not_fit_it_says_so 0 'fails' --sizes -p pytorch medium_1024_inference.csv.gz
answers driver_calls_are_counted_by_kind 0 '  memory returned            1,280' -p none medium_1024_inference.csv.gz
answers what_is_cached_goes_back_where_the_trace_says_so 0 'peak reserved            50.00 MiB     50.00 MiB' -p gpucache -p pytorch "$work/empty_cache.csv"
answers an_unknown_policy_is_wrong_usage 2 'there are gpucache, gpucache-on, pytorch, expandable, vmm, vmm-auto, none' -p jax "$work/few.csv"
answers an_unknown_parameter_is_wrong_usage 2 'max_split_size_mb' -s max_splits:4 "$work/few.csv"
answers an_unknown_option_is_wrong_usage 2 '--polcy' --polcy x
answers a_size_that_is_none_is_wrong_usage 2 '--memory needs a size' -m much "$work/few.csv"
answers help_begins_with_examples 0 'Examples:' -h
answers the_version_is_told 0 'gpumem-replay ' -V

# Recordings.  make_recordings.c describes their contents.
"${CC:-gcc}" -std=c11 -D_GNU_SOURCE -I"$top/include" -I"$top" -o "$work/make_recordings" \
	"$top/tests/bench/make_recordings.c" "$top/tests/unit/format/recording_builder.c" &&
	"$work/make_recordings" "$work" || exit 2
answers the_ring_is_replayed_after_what_was_held_before_it 0 'events 7..22 of 22 of the recording, GPU 0; 2 blocks of 18.00 MiB held before' "$work/ring.gpucache"
# The newest recording may be one of another test that runs at the same time, so any recording counts.
GPUCACHE_OUTPUT="$work/%p.gpucache" "$tool" >"$work/out" 2>"$work/err"
head -1 "$work/out" | grep -q '\.gpucache: [0-9,]* operations'
result without_a_trace_the_newest_recording_is_replayed $?
# Snapshots of PyTorch: on GPU 1 two blocks are older than the history; one is still live, the other is freed in it.
cat >"$work/snapshots.py" <<'END'
import json, pickle, sys

MIB = 1 << 20
entry = lambda action, addr, mib, us: dict(action=action, addr=addr, size=mib * MIB, stream=0, time_us=us, frames=[])
history = [entry("segment_alloc", 1 << 40, 20, 100), entry("alloc", 1 << 40, 7, 100), entry("free_requested", 3 << 40, 5, 200),
           entry("free_completed", 3 << 40, 5, 200), entry("oom", 0, 4096, 300), entry("free_requested", 1 << 40, 7, 400)]
segments = [dict(device=1, address=2 << 40, total_size=20 * MIB, stream=0,
                 blocks=[dict(size=4 * MIB, requested_size=3 * MIB, state="active_allocated"), dict(size=16 * MIB, state="inactive")])]
snapshot = dict(segments=segments, device_traces=[history[:1], history], allocator_settings={"none": None, "part": 0.5})
into = sys.argv[1]
json.dump(snapshot, open(into + "/snapshot.json", "w"))
for protocol in 2, 3, 4, 5:
    pickle.dump(snapshot, open(f"{into}/snapshot{protocol}.pickle", "wb"), protocol)
class Harm:
    def __reduce__(self):
        return open, (into + "/harmed", "w")
pickle.dump(dict(snapshot, segments=Harm()), open(into + "/harm.pickle", "wb"))
# How PyTorch took, freed and returned segments of these sizes; the last is still in use.
def life(name, *parts):
    history, where = [], {}
    for action, mib in parts:
        where.setdefault(mib, len(where) + 1 << 40)
        names = dict(take=["segment_alloc", "alloc"], free=["free_requested", "free_completed"], give=["segment_free"])
        history += [entry(name, where[mib], mib, len(history)) for name in names[action]]
    end = dict(segments[0], address=where[mib], total_size=mib * MIB, blocks=[dict(size=mib * MIB, state="active_allocated")])
    json.dump(dict(segments=[end], device_traces=[[], history]), open(f"{into}/{name}.json", "w"))
life("served", ("take", 30), ("free", 30), ("give", 30), ("take", 20))
life("refused", ("take", 30), ("take", 32), ("free", 30), ("free", 32), ("give", 30), ("give", 32), ("take", 40))
life("below", ("take", 90), ("free", 90), ("give", 90), ("take", 40), ("free", 40), ("give", 40), ("take", 50))
life("idle", ("take", 30), ("take", 32), ("free", 30), ("give", 30), ("free", 32), ("give", 32), ("take", 40))
write = lambda name, data: open(f"{into}/{name}.pickle", "wb").write(data)
write("deep", b"\x80\x04" + b"]" * 100000 + b"a" * 99999 + b".")
write("circle", b"\x80\x04]q\x00h\x00a.")
write("grown", b"\x80\x04]]q\x00ah\x00]aa.")
write("cut", open(into + "/snapshot5.pickle", "rb").read()[:-40])
END
python3 "$work/snapshots.py" "$work" || exit 2
for kind in 2.pickle 3.pickle 4.pickle 5.pickle .json; do
	answers "a_snapshot_of_pytorch_is_a_trace_as_$kind" 0 'events 1..6 of 6 of the recording, GPU 1; 2 blocks of 8.00 MiB held before' "$work/snapshot$kind"
done
# PyTorch returned segments: its cache could have served the next request, or the driver had had more, or nobody asked.
answers memory_returned_although_it_would_have_served_was_an_empty_cache 0 'memory returned                1' -p pytorch "$work/served.json"
answers memory_returned_before_a_larger_request_was_a_refusal 0 'peak reserved           102.00 MiB' -p pytorch "$work/refused.json"
answers memory_returned_below_the_most_was_an_empty_cache 0 'memory returned                2' -p pytorch "$work/below.json"
answers memory_returned_before_no_request_was_an_empty_cache 0 'peak reserved            72.00 MiB' -p pytorch "$work/idle.json"
answers what_pytorch_held_counts_as_live 0 'peak live                15.00 MiB' "$work/snapshot.json"
answers an_oom_of_pytorch_may_fail_again 0 '1 requests had failed' "$work/snapshot5.pickle"
answers another_device_of_a_snapshot_can_be_chosen 0 '6 events of other GPUs were left out' --device 0 "$work/snapshot.json"
answers a_snapshot_without_the_device_is_damaged 4 'the snapshot has no GPU 2' --device 2 "$work/snapshot.json"
answers no_code_of_a_pickle_runs 4 'not plain data' "$work/harm.pickle"
[ ! -e "$work/harmed" ]
result nothing_of_a_pickle_has_run $?
answers a_deep_pickle_is_refused 4 'too deep' "$work/deep.pickle"
answers a_circle_is_refused 4 'too deep' "$work/circle.pickle"
answers a_list_that_grows_in_another_is_refused 4 'grows after' "$work/grown.pickle"
answers a_cut_pickle_is_refused 4 'cut off' "$work/cut.pickle"
printf '{}' | "$tool" /dev/stdin >"$work/out" 2>"$work/err"
[ $? -eq 4 ] && grep -q ': .*: the file is empty' "$work/err"
result a_pipe_whose_content_is_gone_is_refused_with_a_reason $?
printf '{"segments": [' >"$work/cut.json"
answers a_cut_snapshot_is_refused 4 'not JSON' "$work/cut.json"
echo '{"a": 1}' >"$work/other.json"
answers other_json_is_no_snapshot 4 'no device_traces' "$work/other.json"
answers what_was_held_before_counts_as_live 0 'peak live                19.00 MiB' "$work/ring.gpucache"
answers other_kinds_of_memory_are_held 0 '32.00 MiB of other kinds' "$work/ring.gpucache"
answers other_kinds_of_memory_take_room 1 'event 2, a request of 10.00 MiB' -p none -m 48MiB "$work/ring.gpucache"
answers an_oom_of_the_recording_may_fail_again 0 '1 requests had failed' "$work/ring.gpucache"
answers holes_are_counted 0 '2 events are missing' "$work/holes.gpucache"
answers a_lost_free_is_implied 0 'it is implied' "$work/holes.gpucache"
answers a_lost_allocation_leaves_its_free_out 0 '1 frees of what' "$work/holes.gpucache"
answers a_torn_block_is_left_out_and_said 0 '1 blocks are torn' "$work/holes.gpucache"
answers the_busiest_device_is_replayed 0 'GPU 1' "$work/devices.gpucache"
answers another_device_can_be_chosen 0 '3 events of other GPUs were left out' --device 0 "$work/devices.gpucache"
answers a_failure_names_the_event_of_the_recording 1 'event 3 (event of the recording 4), a request of 5.00 MiB' -p none -m 4MiB "$work/devices.gpucache"
answers the_reset_of_a_context_frees_what_it_held 0 'peak live                12.00 MiB' "$work/reset.gpucache"
answers what_is_whole_of_a_damaged_recording_is_replayed 4 'peak live                 8.00 MiB' "$work/damaged.gpucache"
answers a_recording_without_its_ring_still_has_its_blocks 4 'no events in the recording, GPU 0; 1 blocks of 8.00 MiB' "$work/no_events.gpucache"
answers a_recording_of_another_version_is_damage 4 'needs another gpumem-report' "$work/version.gpucache"
for name in ring damaged no_events version; do
	run "$work/$name.gpucache"
	"$build/gpumem-report" "$work/$name.gpucache" >"$work/out" 2>"$work/err"
	[ $? -eq "$code" ]
	result "exit_code_is_that_of_gpumem_report_for_$name" $?
done

# A recorded program: the replay's peak is that of the recording's counters.
GPUCACHE_OUTPUT=$work/pairs.gpucache "$build/gpucache-run" --sim 8GiB -- "$build/programs/train" >"$work/out" 2>"$work/err"
run --json "$work/pairs.gpucache"
replayed=$(figure peak_live_bytes)
"$build/gpumem-report" --json "$work/pairs.gpucache" >"$work/out" 2>"$work/err"
grep -qF "\"requested_bytes\": $replayed," "$work/out"
result the_peak_of_a_recorded_program_is_replayed $?

# Checks that the trace fits on the device that --smallest finds, and fails on one with 2 MiB less.
smallest_is_right() { # NAME ARGUMENT...
	name=$1
	shift
	run --json --smallest "$@"
	smallest=$(figure smallest_device_bytes)
	run -m "$smallest" "$@"
	fits=$code
	run -m $((smallest - 2097152)) "$@"
	[ "$fits" -eq 0 ] && [ "$code" -eq 1 ]
	result "$name" $?
}
# A small network, with Adam: weights, gradients and activations of 1 to 10 MiB, most of which waste a part of 2 MiB.
small_network() { # LAYERS WEIGHT ACTIVATION (KiB; those of a layer differ by up to a half)
	awk -v n="$1" -v weight="$2" -v activation="$3" '
	function take(size) { size = int(size * 1024); sizes[++id] = size; print "alloc," id "," size ",0," ++now; return id }
	function give(block) { print "free," block "," sizes[block] ",0," ++now }
	function scale(l) { return 1 + (l * 7 % 11) / 22 }
	BEGIN {
		print "op,id,size,stream,time_us"
		for (l = 0; l < n; l++) w[l] = take(weight * scale(l))
		for (step = 0; step < 5; step++) {
			batch = 1 + (step * 3 % 4) / 5
			for (l = 0; l < n; l++) { t = take(activation * batch / 3); a[l] = take(activation * scale(l + 3) * batch); give(t) }
			for (l = n - 1; l >= 0; l--) { g[l] = take(weight * scale(l)); give(a[l]) }
			for (l = 0; l < n; l++) { if (!step) { take(weight * scale(l)); take(weight * scale(l)) } give(take(weight * scale(l))) }
			for (l = 0; l < n; l++) give(g[l])
		}
	}'
}

# Checks that ours needs at most 1 % more than the best of the others, and fits where it fits without a limit.
needs_no_larger_device() { # NAME TRACE
	run --json --smallest -p none "$2"
	least=$(figure smallest_device_bytes)
	run --json --smallest -p pytorch "$2"
	[ "$(figure smallest_device_bytes)" -lt "$least" ] && least=$(figure smallest_device_bytes)
	run --json --smallest "$2"
	smallest=$(figure smallest_device_bytes)
	[ "$code" -eq 0 ] && [ "$((smallest * 100))" -le "$((least * 101))" ] &&
		[ "$smallest" -le "$(figure peak_reserved_bytes)" ]
	result "$1" $?
}

for sizes in "24 2304 3000" "12 3700 5200" "40 1500 2600" "50 1100 1100"; do
	# shellcheck disable=SC2086  # words
	small_network $sizes >"$work/net.csv"
	needs_no_larger_device "a_small_network_needs_no_larger_device:${sizes%% *}_layers" "$work/net.csv"
done

smallest_is_right the_smallest_device_is_the_smallest medium_1024_inference.csv.gz
smallest_is_right the_smallest_device_of_a_recording_is_the_smallest "$work/ring.gpucache"
smallest_is_right the_smallest_device_of_expandable_segments_is_the_smallest -p expandable medium_1024_inference.csv.gz

# shellcheck disable=SC2046 # many words are meant
answers more_traces_than_there_is_room_for_are_wrong_usage 2 'at most 64 traces' $(yes x | head -65)
answers a_device_that_is_no_number_is_wrong_usage 2 '--device needs' --device first "$work/ring.gpucache"

# Every key of the JSON is in the help.
all_keys_are_in_the_help() {
	missing=$(
		for key in $(grep -o '"[a-z_]*":' "$work/out" | tr -d '":' | sort -u); do
			grep -qw "$key" "$work/help" || echo "$key"
		done)
	echo "not in the help: $missing" >"$work/err"
	[ -z "$missing" ]
}
run -h
cp "$work/out" "$work/help"
run --json -m 4MiB "$work/ring.gpucache"
all_keys_are_in_the_help
result the_help_names_every_key_of_the_json $?

answers users_generate_nothing 2 'unknown option' -g random

# What developers add.
tool=$kit
# With little memory, idle pages are unmapped and mapped where they are needed.
answers no_page_moves_under_work 0 'races                            0' --check -m 3400MiB -p vmm -g random:steps=6000

# Workloads: kernels still use memory when it is freed; only a policy that orders its reuse passes the race detector.
for spec in training:steps=2,layers=6,bucket=4 inference:requests=6 pipeline:items=300 random:steps=2000; do
	short=${spec%%:*}
	answers "no_policy_races_in_$short" 0 'races                            0             0             0             0             0             0             0             0' \
		--check -p gpucache -p fence -p host -p gpucache-on -p pytorch -p expandable -p vmm -p vmm-auto -p none -g "$spec"
	answers "without_fences_there_are_races_in_$short" 1 'reused memory too early' -p unsafe -g "$spec"
	run -g "$spec" --save "$work/$short.csv"
	run -g "$spec" --save "$work/again.csv"
	cmp "$work/$short.csv" "$work/again.csv" >"$work/err" && run -g "$spec,seed=2" --save "$work/again.csv" &&
		! cmp -s "$work/$short.csv" "$work/again.csv"
	result "a_seed_makes_the_same_${short}_each_time" $?
	run --json -g "$spec"
	made=$(figure n_streams),$(figure peak_live_bytes)
	run --json "$work/$short.csv"
	[ "$made" = "$(figure n_streams),$(figure peak_live_bytes)" ]
	result "a_saved_${short}_keeps_streams_and_sizes" $?
done
run -g random --save "$work/random.csv.gz"
answers a_workload_can_be_saved_packed 0 'on 4 streams' "$work/random.csv.gz"
answers a_recording_can_be_saved 0 'peak live' --save "$work/ring.csv" "$work/ring.gpucache"
answers what_was_saved_of_a_recording_has_its_failure 0 '1 requests had failed' "$work/ring.csv"
answers a_place_that_cannot_be_written_is_said 5 'cannot be written: No such file' -g random:steps=10 --save "$work/none/x.csv"
answers a_full_disk_is_said 5 'cannot be written: No space left' -g random:steps=9000 --save /dev/full

run --json -p unsafe -g pipeline:items=100
[ "$code" -eq 1 ] && [ "$(figure n_races)" -gt 0 ] && [ "$(figure event)" -gt 0 ] && grep -q 'reused while work' "$work/out"
result a_race_is_a_failure_with_its_event $?
run --json -p none -g pipeline:items=100
[ "$(figure n_waits)" -eq 100 ] && [ "$(figure waited_ns)" -gt 0 ]
result the_plain_driver_waits_for_the_device_in_each_free_of_work_in_flight $?
run --json -p gpucache -g pipeline:items=64
[ "$(figure n_waits)" -eq 0 ] && [ "$(figure peak_pending_bytes)" -eq 0 ]
result ours_waits_for_nothing_and_holds_nothing_back $?
run --json -p fence -g pipeline:items=64
[ "$(figure n_waits)" -eq 0 ] && [ "$(figure peak_pending_bytes)" -gt 0 ]
result fences_keep_pending_what_is_in_flight $?
smallest_is_right the_smallest_device_of_a_workload_is_the_smallest -g training:steps=2,layers=6
smallest_is_right the_smallest_device_of_pytorchs_rules_is_the_smallest -p pytorch -g random:steps=3000

answers an_unknown_workload_is_wrong_usage 2 'there are training, inference, pipeline, random' -g sleeping
answers an_unknown_key_is_wrong_usage 2 'is no key=value of workload random' -g random:stepps=4
answers a_key_without_a_value_is_wrong_usage 2 'is no key=value' -g random:steps
answers a_value_out_of_range_is_wrong_usage 2 'is no key=value' -g random:streams=33
answers two_traces_cannot_be_saved_into_one 2 'one trace' -g random -g training --save "$work/x.csv"
run -h
cp "$work/out" "$work/help"
run --json -g pipeline:items=10
grep -q "\"n_races\": 0" "$work/out" && all_keys_are_in_the_help
result the_help_names_every_key_of_work $?

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
