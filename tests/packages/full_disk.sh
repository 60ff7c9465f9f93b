#!/bin/sh
# An upgrade on a full disk fails with a message, and the old program still works. With space, the upgrade completes.
#   full_disk.sh OLDER    OLDER is the package of an older version
set -eu
. /project/tests/packages/support.sh

install_packages "$1"
# The rest of the disk, except some space for the database of dpkg.
dd if=/dev/zero of=/filler bs=1M >/dev/null 2>&1 || true
truncate --size=-4M /filler
if dpkg --install /packages/tamis_*.deb >/tmp/log 2>&1; then
    fail "dpkg installed the package on a full disk"
fi
grep -q "No space left on device" /tmp/log || fail "dpkg does not name the reason: $(cat /tmp/log)"
expect "tamis 0.0.9" tamis --version
expect a sh -c 'echo a | tamis --quiet dedup'
rm /filler
dpkg --install /packages/tamis_*.deb >/dev/null
tamis --version | grep -v 0.0.9 | grep -q '^tamis ' || fail "tamis --version"
