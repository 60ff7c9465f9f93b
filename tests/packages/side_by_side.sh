#!/bin/sh
# Two versions on one system: the package of an older version, and the tar file. Both run at the same time, but not on the
# same data.
#   side_by_side.sh OLDER    OLDER is the package of an older version
set -eu
. /project/tests/packages/support.sh

install_packages "$1"
mkdir /opt/tamis
tar --extract --file "$(echo /packages/tamis-*-linux-gnu.tar.gz)" --directory /opt/tamis --strip-components=1
expect "tamis 0.0.9" tamis --version
/opt/tamis/bin/tamis --version | grep -v 0.0.9 | grep -q "^tamis " || fail "/opt/tamis/bin/tamis --version"

tamis serve --dir /srv/older >/tmp/older.log 2>&1 &
older=$!
wait_for is_ready 6379
expect ":1" redis 6379 BF.ADD seen user:1
if /opt/tamis/bin/tamis serve --dir /srv/older --port 6380 >/tmp/newer.log 2>&1; then
    fail "two servers use one folder"
fi
grep -q "/srv/older" /tmp/newer.log || fail "the message does not name the folder: $(cat /tmp/newer.log)"
/opt/tamis/bin/tamis serve --dir /srv/newer --port 6380 >/tmp/newer.log 2>&1 &
wait_for is_ready 6380
expect ":0" redis 6380 BF.EXISTS seen user:1

# The newer version reads the data of the older version, and a filter of the older version in a file.
kill -TERM "$older"
wait_for_end "$older" || fail "the older server ended with status $?"
/opt/tamis/bin/tamis serve --dir /srv/older --port 6381 >/tmp/newer.log 2>&1 &
wait_for is_ready 6381
expect ":1" redis 6381 BF.EXISTS seen user:1
seq 1000 | tamis --quiet build - -o numbers.tamis
expect 7 sh -c 'echo 7 | /opt/tamis/bin/tamis check numbers.tamis'
