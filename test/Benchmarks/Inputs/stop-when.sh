#!/bin/sh
# stop-when.sh FILE COMMAND [ARGUMENT ...]: runs the command, and stops it and all that it has started
# once it has written FILE.
file=$1
shift
rm -f "$file"
setsid "$@" &
while [ ! -s "$file" ] && kill -0 $! 2>/dev/null; do sleep 0.1; done
kill -TERM -$!
wait $!
