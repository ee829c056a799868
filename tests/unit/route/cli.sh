#!/bin/bash
# keel-route as a user meets it. Usage: cli.sh PATH-TO-KEEL-ROUTE
set -u
route=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failed=0

fail()
{
    echo "FAIL: $*"
    failed=1
}

# refused ARGS...: exit code 2 and one line on standard error
refused()
{
    "$route" "$@" >"$dir/out" 2>"$dir/err"
    local code=$?
    [ $code -eq 2 ] || fail "'$*' ended with $code, not 2"
    [ "$(wc -l <"$dir/err")" -eq 1 ] || fail "'$*' wrote $(wc -l <"$dir/err") lines: $(cat "$dir/err")"
    [ -s "$dir/out" ] && fail "'$*' wrote to standard output"
}

printf 'start,end,node,cause,downtime_min\n2003-11-12 14:42:00,2003-11-12 14:43:00,153,Interconnect,1\nrubbish\n' >"$dir/bad.csv"
printf 'start_us,end_us,router,port\n1,2,99999,0\n' >"$dir/bad-link"
: >"$dir/empty.csv"
refused
refused fly
refused simulate --no-such-option
refused simulate --topology 99999999999x3
refused simulate --topology 100000x100000
refused simulate --topology 2x2x2x2
refused simulate --load -0.1
refused simulate --rate -1
refused simulate --rate nan
refused simulate --failures -3
refused simulate --topology 4tx4t --failures 1000
refused simulate --buffer 99999999999999999999
refused simulate --buffer 10
refused simulate --sizes 1024,,5
refused simulate --sizes 99999999
refused simulate --time 1 --warmup 2
refused simulate --pattern spiral
refused simulate --topology 4tx8t --pattern transpose
refused simulate --method magic
refused simulate --method $'a\nb' # one line, whatever is given
refused trace $'no\nfile'
refused simulate --reps 0
refused simulate --seed x
for odd in ' 1' +1 0x1 $'1\n' inf; do # what the C library takes for a number, and nobody means
    refused simulate --load "$odd"
    refused simulate --seed "$odd"
    refused simulate --topology "tree:$odd,2"
done
"$route" simulate --seed $'\n1' 2>&1 | grep -qF "not '\n1'" || fail "an end of line is not shown"
refused simulate --trace "$dir/bad.csv" --topology 4tx4t --time 1 --reps 1
refused simulate --trace "$dir/empty.csv"
refused simulate --trace "$dir/none.csv"
refused simulate --failure-file "$dir/bad-link" --topology 4tx4t
refused simulate --failure-file "$dir" --topology 4tx4t
mkfifo "$dir/fifo" # nobody writes into it
refused simulate --failure-file "$dir/fifo" --topology 4tx4t
refused simulate --trace "$dir/fifo" --topology 4tx4t --time 1 --reps 1
printf '1,2,3,0\n\0' >"$dir/zero"
refused simulate --failure-file "$dir/zero" --topology 4tx4t
printf '\xef\xbb\xbf1,2,3,0\n' >"$dir/mark"
for how in --failure-file --trace; do
    "$route" simulate $how "$dir/mark" --topology 4tx4t --time 1 2>&1 | grep -q "byte order mark" || fail "$how: the mark is not named"
done
refused simulate --profile vax
refused simulate --system 12 --topology 4tx4t --time 1 --reps 1
refused simulate --all-failures --topology 4tx4t --time 1 --reps 1
refused simulate --skip-bad --topology 4tx4t --time 1 --reps 1
refused simulate --failures 3 --profile lanl12
refused trace "$dir/bad.csv"
refused trace
refused figure
refused figure nonsense
refused figure learning --out "$dir/bad.csv/none" --time 0.1 --reps 1 # told before the runs, so that there is one line
refused simulate --heat-image "$dir/it's.png" -t 4tx4t --time 0.1 --reps 1
printf 'start,end,node,cause,downtime_min\n2003-11-12 14:42:00,2003-11-12 14:43:00,153,Interconnect,1\n' >"$dir/name"$'\xff.csv'
refused trace "$dir/name"$'\xff.csv' --json
"$route" simulate -t 4tx4t --time 0.1 -r 1 --json >/dev/full 2>"$dir/err"
[ $? -eq 2 ] && grep -q 'standard output' "$dir/err" || fail "a full disk is not told"
grep -q 'bad.csv:3:' < <("$route" trace "$dir/bad.csv" 2>&1) || fail "the line of a bad row is not named"
"$route" trace "$dir/bad.csv" --skip-bad | grep -q '1 malformed' || fail "--skip-bad does not count"

# Any number of threads, the same bytes.
run=(simulate -t 6tx6t -f 6 --time 1 -r 5 --no-progress)
for threads in 1 3; do
    "$route" "${run[@]}" -j $threads --json >"$dir/$threads.json" 2>"$dir/$threads.err" || fail "a run ended with $?"
    "$route" "${run[@]}" -j $threads --csv >"$dir/$threads.csv" 2>/dev/null
done
cmp "$dir/1.json" "$dir/3.json" || fail "JSON depends on the threads"
cmp "$dir/1.csv" "$dir/3.csv" || fail "CSV depends on the threads"
[ "$(wc -l <"$dir/1.csv")" -eq 11 ] || fail "CSV has $(wc -l <"$dir/1.csv") lines, not 11"
python3 -c 'import json, sys; j = json.load(open(sys.argv[1])); assert j["runs"][1]["repetitions"] == 5' "$dir/1.json" ||
    fail "JSON does not parse"
grep -q 'million events per second' "$dir/1.err" || fail "events per second are not printed"

# A generated log can be read and run.
"$route" trace --generate --profile lanl19 >"$dir/made.csv" || fail "--generate"
"$route" trace "$dir/made.csv" | grep -q '58 failures kept' || fail "the generated log has not 58 failures"
"$route" simulate -t 6tx6t --trace "$dir/made.csv" --time 1 -r 2 --no-progress 2>/dev/null | grep -q degradation || fail "--trace"
"$route" simulate -t 8tx8t -f 6 --permanent --time 1 -r 1 --no-progress --heat 2>/dev/null | grep -q X || fail "--heat shows no broken link"

# Without gnuplot there is a line that says so, no picture, and the results all the same.
PATH=$dir/none "$route" simulate -t 4tx4t --time 0.1 -r 1 --no-progress --heat-image "$dir/heat.png" >"$dir/out" 2>"$dir/err"
[ $? -eq 2 ] && grep -q 'gnuplot cannot be started' "$dir/err" || fail "it is not told that gnuplot is missing"
grep -q latency "$dir/out" || fail "results are lost where gnuplot is missing"
PATH=$dir/none "$route" figure deadlock --time 0.1 -r 1 --no-progress --out "$dir/plain" >/dev/null 2>"$dir/err"
[ $? -eq 2 ] && grep -q 'gnuplot cannot be started' "$dir/err" || fail "a figure does not tell that gnuplot is missing"
[ "$(cd "$dir/plain" && echo *)" = 'deadlock.csv deadlock.gp' ] || fail "without gnuplot a figure leaves $(ls "$dir/plain")"
[ -e "$dir/heat.png" ] && fail "an empty picture is left where gnuplot is missing"

# A cut-off endpoint is reported and the run ends.
printf '0,,5,0\n0,,5,1\n0,,5,2\n0,,5,3\n' >"$dir/island"
"$route" simulate -t 4tx4t --failure-file "$dir/island" --time 1 -r 1 --no-progress 2>/dev/null | grep -q undeliverable ||
    fail "undeliverable messages are not reported"

# An interrupted figure that has nothing to draw yet leaves no file: the first run of each of these takes a second.
for figure in uniform latency; do
    timeout 600 "$route" figure $figure -r 1 -j 1 --no-progress --out "$dir/$figure" 2>"$dir/figure.err" &
    pid=$!
    until [ -d "$dir/$figure" ]; do sleep 0.01; done
    kill -INT "$(pgrep -P $pid)"
    wait $pid
    code=$?
    [ $code -eq 130 ] || fail "an interrupted figure $figure ended with $code"
    grep -q interrupted "$dir/figure.err" || fail "an interrupted figure $figure does not say so"
    [ -z "$(ls "$dir/$figure")" ] || fail "an interrupted figure $figure leaves $(ls "$dir/$figure")"
done

# Ctrl-C leaves what was done.
timeout 600 "$route" simulate -t 4tx4t -f 2 --time 1 -r 100000 -j 1 --progress --csv >"$dir/cut.csv" 2>"$dir/cut.err" &
pid=$!
until grep -qE ' ([4-9]|[0-9]{2,}) of [0-9]+ runs' "$dir/cut.err"; do # the bar counts four runs at least
    kill -0 $pid 2>/dev/null || break
    sleep 0.1
done
kill -INT "$(pgrep -P $pid)" 2>/dev/null
wait $pid
code=$?
[ $code -eq 130 ] || fail "interrupted run ended with $code"
[ "$(wc -l <"$dir/cut.csv")" -gt 2 ] || fail "an interrupted run left nothing"
[ "$(wc -l <"$dir/cut.csv")" -lt 200000 ] || fail "the interruption came too late to matter"
grep -q interrupted "$dir/cut.err" || fail "an interrupted run does not say so"
exit $failed
