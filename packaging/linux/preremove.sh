#!/bin/sh
# Runs before the files of the package `tamis` are removed. Stops and disables the services, except for an upgrade.
# Debian passes "remove" or "upgrade", RPM passes the number of versions that stay installed.
set -e

case "$1" in
    remove | 0)
        if [ -d /run/systemd/system ]; then
            systemctl --no-reload disable --now tamis.service tamis-guard.service || true
        fi
        ;;
esac
