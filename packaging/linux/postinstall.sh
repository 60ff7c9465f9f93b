#!/bin/sh
# Runs after the files of the package `tamis` are in place. Debian passes "configure", RPM passes the number of
# installed versions.
set -e

if ! getent group tamis >/dev/null; then
    groupadd --system tamis
fi
if ! getent passwd tamis >/dev/null; then
    useradd --system --gid tamis --home-dir /var/lib/tamis --no-create-home --shell /usr/sbin/nologin \
        --comment "Tamis filter server" tamis
fi
# Only root may change the configuration, because systemd reads the files of secrets in this folder as root.
for file in serve.toml guard.toml; do
    if [ -f "/etc/tamis/$file" ]; then
        chown --no-dereference root:tamis "/etc/tamis/$file"
    fi
done

# Restarts the running services with the new program. The installation starts no other service.
if [ -d /run/systemd/system ]; then
    systemctl daemon-reload || true
    systemctl --no-block try-restart tamis.service tamis-guard.service || true
fi
