#!/bin/sh
# The services of the package `tamis` under systemd: hardening, restart, upgrade from an older version, removal.
#   services.sh [OLDER]    OLDER is the package of an older version
set -eu
. /project/tests/packages/support.sh

older=${1:-}
install_packages "${older:-$(echo /packages/tamis_*.deb)}"
expect "inactive" systemctl is-active tamis
expect "inactive" systemctl is-active tamis-guard
systemctl enable --now tamis
expect ":1" redis 6379 BF.ADD seen user:1
expect "+OK" redis 6379 SAVE
journalctl --quiet --unit tamis | grep -q "ready for Redis clients" || fail "the journal has no line of the server"

# systemd restarts a killed server.
systemctl kill --signal KILL tamis
wait_for is_ready 6379
expect ":1" redis 6379 BF.EXISTS seen user:1
echo 'maxmemory = "1gb"' >>/etc/tamis/serve.toml

# The guard in front of the console of the server, with ids in a file.
seq 100 >/etc/tamis/ids.txt
sed -e 's|^upstream = .*|upstream = "http://127.0.0.1:8379"|' -e 's|^# \[snapshots\]|[snapshots]|' \
    -e 's|^# folder = |folder = |' -i /etc/tamis/guard.toml
systemctl enable --now tamis-guard
expect "HTTP/1.0 404 Not Found" timeout 30 bash -c 'exec 3<>/dev/tcp/127.0.0.1/8080 &&
    printf "GET /pms/productInfo/777 HTTP/1.0\r\n\r\n" >&3 && IFS= read -r line <&3 && echo "${line%?}"'
systemctl reload tamis-guard
expect "active" systemctl is-active tamis-guard

for unit in tamis tamis-guard; do
    systemd-analyze verify --man=no "/usr/lib/systemd/system/$unit.service" || fail "systemd-analyze verify"
    # 0 is the most secure, 10 the least.
    systemd-analyze security --offline=true --threshold=25 "$unit.service" >/tmp/security || {
        cat /tmp/security
        fail "the exposure of $unit is above 2.5"
    }
done

if [ -n "$older" ]; then
    expect "tamis 0.0.9" tamis --version
    # An upgrade keeps changed configuration and data, and restarts the running services.
    install_packages /packages/tamis_*.deb
    wait_for is_ready 6379
    expect "$(printf 'active\nactive')" systemctl is-active tamis tamis-guard
    expect ":1" redis 6379 BF.EXISTS seen user:1
    grep -q '^maxmemory = ' /etc/tamis/serve.toml || fail "the upgrade changed /etc/tamis/serve.toml"
    running=$(readlink "/proc/$(systemctl show --property MainPID --value tamis)/exe")
    expect "/usr/bin/tamis" echo "$running"
fi

apt-get -qq remove --yes tamis >/dev/null
expect "inactive" systemctl is-active tamis
[ ! -L /etc/systemd/system/multi-user.target.wants/tamis.service ] || fail "the removal left tamis enabled"
[ ! -L /etc/systemd/system/multi-user.target.wants/tamis-guard.service ] || fail "the removal left tamis-guard enabled"
ls /var/lib/tamis/*.tamis >/dev/null || fail "the removal removed the data"
