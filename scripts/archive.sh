#!/bin/sh
# archive.sh OUTPUT OBJCOPY AR COMPILER... -- OBJECT|ARCHIVE...: an archive of one object that gives programs the names that a shared library of the
# same objects gives them; all others, which a program may have for its own, stay inside.
set -eu
output=$1 objcopy=$2 ar=$3
shift 3
compiler=
while [ "$1" != -- ]; do
    compiler="$compiler $1"
    shift
done
shift
object=${output%.a}.o
$compiler -r -nostdlib -o "$object" -Wl,--start-group "$@" -Wl,--end-group
"$objcopy" --localize-hidden "$object"
rm -f "$output"
"$ar" rcs "$output" "$object"
rm -f "$object"
