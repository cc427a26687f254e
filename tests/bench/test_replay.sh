#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# test_replay.sh BUILD_DIR: gpumem-replay, from the outside.  Prints a line a test, and how many passed.
set -u
tool=$(cd "$1" && pwd)/gpumem-replay
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

run() { # ARGUMENT...: the exit code in $code
	"$tool" "$@" >"$work/out" 2>"$work/err"
	code=$?
}

# The exit code of a call, and a text that it prints somewhere.
answers() { # NAME CODE TEXT ARGUMENT...
	name=$1
	want=$2
	text=$3
	shift 3
	run "$@"
	[ "$code" -eq "$want" ] && cat "$work/out" "$work/err" | grep -qF -e "$text"
	result "$name" $?
}

# A figure of the JSON of one policy: prints it.
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

# The model is PyTorch where it reserves what PyTorch did, within 3 %: see README.md of the traces.
reserves the_model_of_pytorch_reserves_what_it_did_for_1024_training pytorch 23292 24732 medium_1024_training.csv.gz
reserves the_model_of_pytorch_reserves_what_it_did_for_512_training pytorch 11712 12436 medium_512_training.csv.gz
reserves the_model_of_pytorch_reserves_what_it_did_for_1024_inference pytorch 2965 3147 medium_1024_inference.csv.gz
# Ours: at most 5 % more than PyTorch.
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
answers no_trace_is_wrong_usage 2 'no trace named'
answers an_unknown_policy_is_wrong_usage 2 'there are gpucache, pytorch and none' -p jax "$work/few.csv"
answers an_unknown_parameter_is_wrong_usage 2 'max_split_size_mb' -s max_splits:4 "$work/few.csv"
answers an_unknown_option_is_wrong_usage 2 '--polcy' --polcy x
answers a_size_that_is_none_is_wrong_usage 2 '--memory needs a size' -m much "$work/few.csv"
answers help_begins_with_examples 0 'Examples:' -h
answers the_version_is_told 0 'gpumem-replay ' -V

# The smallest device passes, and 2 MiB less does not.
run --json --smallest medium_1024_inference.csv.gz
smallest=$(figure smallest_device_bytes)
run -m "$smallest" medium_1024_inference.csv.gz
fits=$code
run -m $((smallest - 2097152)) medium_1024_inference.csv.gz
[ "$fits" -eq 0 ] && [ "$code" -eq 1 ]
result the_smallest_device_is_the_smallest $?

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
