#!/bin/sh
# keel-place from outside: bad input is one line and exit code 2 and leaves no file; the same seed gives the same CSV;
# an interrupted run is resumed to the same result. Usage: test_cli.sh path/to/keel-place
set -u
place=$1
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
bad=0
fail() { echo "FAIL: $*"; bad=1; }

refuse() {
    "$place" "$@" >"$dir/stdout" 2>"$dir/stderr"
    code=$?
    [ $code -eq 2 ] || fail "$* exits with $code"
    [ "$(wc -l <"$dir/stderr")" -eq 1 ] || fail "$* says $(wc -l <"$dir/stderr") lines"
    [ -s "$dir/stdout" ] && fail "$* writes to stdout"
}
refuse
refuse fly
refuse allocate
refuse allocate --grid 100000x100000
refuse allocate --grid 99999999999999999999x2
refuse allocate --grid 4x4 --spares '2D(3,1)'
refuse allocate --grid 4x4 --spares '2D(2,4)'
refuse allocate --grid 4x4 --spares '3D(1,1)'
refuse allocate --grid 4x4 --share 9
refuse allocate --grid 4x4 --nonsense
refuse allocate --grid
refuse allocate --grid 4x4 surplus
refuse allocate --grid 4x4 --plane q=1
refuse allocate --grid 4x4 --out ''
refuse simulate --grid 4x4 --cases 9 --links ''
refuse substitute --grid 4x4 --fail 4,0
refuse substitute --grid 4x4 --fail 16
refuse substitute --grid 4x4 --fail -- -1
refuse substitute --grid 4x4 --fail 1,2,3
refuse substitute --grid 4x4 --fail one
refuse substitute --grid 2x1 --spares '2D(1,1)' --fail 0 --fail 1 --fail 0
refuse substitute --grid 4x4 --method 3D --fail 0
refuse substitute --grid 4x4 --method 'hybrid(most)' --fail 0
refuse substitute --grid 4x4 --pattern 11p --fail 0
refuse substitute --grid 4x4 --pattern 7p --fail 0
refuse substitute --grid 4x4 --fattree 0,1 --fail 0
refuse substitute --grid 4x4x4 --plane q=1 --fail 0
refuse simulate --grid 4x4 --failures 17
refuse simulate --grid 4x4 --cases none
refuse simulate --grid 4x4 --cases 10 --out "$dir/no/such/folder.csv"
refuse simulate --grid 4x4 --resume
refuse simulate --grid 4x4 --resume --out "$dir/never-run.csv"
refuse simulate --grid 4x4 --worst --failures 99
refuse figure
refuse figure 9
refuse figure 3 --dir "$dir/no-folder"
[ "$(ls "$dir" | grep -cv '^std')" -eq 0 ] || fail "files left behind: $(ls "$dir")"
"$place" allocate --grid 4x4 >/dev/full 2>"$dir/stderr"
[ $? -eq 2 ] || fail "a full disk is not noticed"

"$place" simulate --grid 8x8 --cases 5000 --seed 3 --threads 1 --csv >"$dir/a" 2>/dev/null || fail "simulate"
"$place" simulate --grid 8x8 --cases 5000 --seed 3 --threads 4 --csv >"$dir/b" 2>/dev/null || fail "simulate"
cmp -s "$dir/a" "$dir/b" || fail "threads change the result"

# --out to something that is no file is written to, not replaced
mkfifo "$dir/pipe"
cat "$dir/pipe" >"$dir/from-pipe" &
reader=$!
"$place" simulate --grid 8x8 --cases 5000 --seed 3 --out "$dir/pipe" 2>/dev/null || fail "simulate into a pipe"
[ -p "$dir/pipe" ] || fail "--out replaced a pipe by a file"
wait $reader
cmp -s "$dir/a" "$dir/from-pipe" || fail "a pipe gets another result"

run="simulate --grid 16x16x16 --cases 100000 --seed 5 --threads 2"
"$place" $run --out "$dir/whole.csv" 2>/dev/null || fail "whole run"
"$place" $run --out "$dir/cut.csv" 2>/dev/null &
pid=$!
# In the middle of it: a processor has worked for it for a twentieth of a second.
until awk '{ exit !($14 + $15 >= 5 || $3 == "Z") }' "/proc/$pid/stat"; do sleep 0.01; done
kill -INT $pid
wait $pid
code=$?
if [ $code -eq 130 ]; then
    [ -s "$dir/cut.csv" ] || fail "an interrupted run leaves no result"
    "$place" $run --out "$dir/cut.csv" --resume 2>/dev/null || fail "resume"
fi
cmp -s "$dir/whole.csv" "$dir/cut.csv" || fail "a resumed run differs (interrupted: $code)"
[ -e "$dir/cut.csv.state" ] && fail "the state file stays"
exit $bad
