#!/bin/sh
# Runs after the files of the package `tamis` are removed. Only Debian's "purge" removes data.
set -e

if [ -d /run/systemd/system ]; then
    systemctl daemon-reload || true
fi
# The user stays: files of the user in other folders must not belong to the next new user.
if [ "$1" = purge ]; then
    rm -f /etc/tamis/serve.env /etc/tamis/guard.env
    rmdir --ignore-fail-on-non-empty /etc/tamis 2>/dev/null || true
    # A folder that is a mount point stays.
    rm -rf /var/lib/tamis /var/lib/tamis-guard || true
fi
