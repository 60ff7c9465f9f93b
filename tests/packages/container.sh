#!/bin/sh
# Runs a container from a bundle of the container runtime `runc`.
#   container.sh run BUNDLE     runs the command of the bundle
#   container.sh serve BUNDLE   starts the server of the bundle, uses the server, and stops the server
#   container.sh docs BUNDLE    starts the web server of the bundle, and requests two pages
set -eu
. "$(dirname "$0")/support.sh"

# Replaces the current shell with runc. A caller that continues afterwards needs a subshell.
runc() {
    exec runc --root /run/tamis-test "$@"
}

# Removes the container, and its control groups, also if the test fails.
remove() {
    (runc delete --force "$name") 2>/dev/null || true
}

# Other test runs on this machine use other names.
name="tamis-test-$(basename "$(mktemp --dry-run)")"
if [ "$1" = run ]; then
    runc run --bundle "$2" "$name"
fi

ip link set lo up
trap remove EXIT
if [ "$1" = docs ]; then
    (runc run --bundle "$2" "$name") >"$2.log" 2>&1 &
    # Prints the status of a page: page PATH
    page() {
        timeout 10 bash -c 'exec 3<>/dev/tcp/127.0.0.1/8000 && printf "GET $0 HTTP/1.0\r\n\r\n" >&3 && IFS= read -r line <&3 &&
            echo "${line%?}"' "$1"
    }
    wait_for page /
    expect "HTTP/1.1 200 OK" page /
    expect "HTTP/1.1 200 OK" page /zh-CN/
    (runc kill "$name" KILL)
    wait || true
    exit
fi

(runc run --bundle "$2" "$name") >"$2.log" 2>&1 &
container=$!
(wait_for is_ready 6379) || {
    cat "$2.log"
    exit 1
}
(runc exec "$name" /usr/bin/tamis health) || fail "tamis health"
expect ":1" redis 6379 BF.ADD seen user:1
# The server ends after SIGTERM although a client is connected.
bash -c 'exec 3<>/dev/tcp/127.0.0.1/6379; sleep 60' &
client=$!
sleep 0.2
(runc kill "$name" TERM)
wait_for_end "$container" || fail "the server ended with status $?: $(cat "$2.log")"
grep -q "ready for Redis clients" "$2.log" || fail "no line of the server: $(cat "$2.log")"
kill "$client"
