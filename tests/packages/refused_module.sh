#!/bin/sh
# apt-get does not install the module with a Redis that is too old.
set -eu
. /project/tests/packages/support.sh

apt-get -qq update
if apt-get -q install --yes --no-install-recommends /packages/tamis-redis-module_*.deb >/tmp/log 2>&1; then
    fail "apt-get installed the module with $(redis-server --version)"
fi
grep -q "Depends: redis-server (>= 5:7.0) but it is not going to be installed" /tmp/log || fail "apt-get does not name the dependency: $(cat /tmp/log)"
