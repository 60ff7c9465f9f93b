#!/bin/sh
# The package `tamis` on a Debian without systemd: installation, first commands, a killed server, removal.
set -eu
. /project/tests/packages/support.sh

install_packages /packages/tamis_*.deb
tamis --version | grep -q '^tamis [0-9]' || fail "tamis --version"
expect "$(printf 'a\nb')" sh -c 'printf "a\nb\na\n" | tamis --quiet dedup'
[ -s /usr/share/man/man1/tamis-dedup.1.gz ] || fail "no manual page"
expect "root:tamis 640" stat -c '%U:%G %a' /etc/tamis/serve.toml
expect "root:root 755" stat -c '%U:%G %a' /etc/tamis
[ -z "$(dpkg --verify tamis)" ] || fail "dpkg --verify: $(dpkg --verify tamis)"

# The server with the command of the unit.
install -d -o tamis -g tamis -m 750 /var/lib/tamis
serve() {
    setpriv --reuid tamis --regid tamis --clear-groups tamis serve --config /etc/tamis/serve.toml \
        >>/tmp/serve.log 2>&1 &
    server=$!
    wait_for is_ready 6379
}
serve
expect ":1" redis 6379 BF.ADD seen user:1
kill -KILL "$server"
wait "$server" || true
serve
expect ":1" redis 6379 BF.EXISTS seen user:1
expect ":0" redis 6379 BF.EXISTS seen user:2
expect "-ERR the config file was not changed: Permission denied" redis 6379 CONFIG REWRITE
kill -TERM "$server"
wait_for_end "$server" || fail "the server ended with status $?"

# A removal keeps configuration and data, a purge removes both.
apt-get -qq remove --yes tamis >/dev/null
[ ! -e /usr/bin/tamis ] || fail "the removal left the program"
[ -s /etc/tamis/serve.toml ] || fail "the removal removed the configuration"
ls /var/lib/tamis/*.tamis >/dev/null || fail "the removal removed the data"
apt-get -qq purge --yes tamis >/dev/null
left=$(find / -xdev -name '*tamis*' -not -path '/packages/*' -not -path '/project/*' -not -path '/proc/*' \
    -not -path '/var/cache/*' -not -path '/var/log/*')
[ -z "$left" ] || fail "the purge left: $left"
