#!/bin/sh
# The package `tamis-redis-module` in a server of Debian.
#   module.sh redis|valkey
set -eu
. /project/tests/packages/support.sh

server=$1
install_packages "$server-server" /packages/tamis-redis-module_*.deb
"$server-server" --version
echo "include /etc/tamis/redis-module.conf" >>"/etc/$server/$server.conf"
start() {
    setpriv --reuid "$server" --regid "$server" --clear-groups "$server-server" "/etc/$server/$server.conf" \
        --daemonize no --appendonly yes >>/tmp/server.log 2>&1 &
    pid=$!
    (wait_for is_ready 6379) || {
        cat /tmp/server.log "/var/log/$server"/*.log
        exit 1
    }
}
start
expect "+OK" redis 6379 BF.RESERVE seen 0.01 1000000
expect ":1" redis 6379 BF.ADD seen user:1
expect ":0" redis 6379 BF.EXISTS seen user:2
kill -KILL "$pid"
wait "$pid" || true
start
expect ":1" redis 6379 BF.EXISTS seen user:1
kill -TERM "$pid"
wait_for_end "$pid" || fail "the server ended with status $?"
apt-get -qq purge --yes tamis-redis-module >/dev/null
[ ! -e /etc/tamis ] && [ ! -e /usr/lib/tamis ] || fail "the purge left files"
