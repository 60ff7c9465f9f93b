# Functions of the scripts in this folder.

# Ends the test with a message.
fail() {
    echo "FAILED: $*"
    exit 1
}

# Compares the output of a command with the expected text: expect TEXT COMMAND...
expect() {
    expected=$1
    shift
    got=$("$@" 2>&1) || true
    [ "$got" = "$expected" ] || fail "$*: printed '$got' instead of '$expected'"
}

# Runs a command until the command succeeds, for about 60 seconds.
wait_for() {
    deadline=$(($(date +%s) + 60))
    while ! "$@" >/dev/null 2>&1; do
        [ "$(date +%s)" -lt "$deadline" ] || fail "this command did not succeed within 60 s: $*"
        sleep 0.1
    done
}

# Installs packages with apt-get: names, or paths of files.
install_packages() {
    apt-get -qq update >/dev/null 2>&1 || true
    apt-get -qq install --yes --no-install-recommends "$@" >/tmp/apt.log 2>&1 || {
        cat /tmp/apt.log
        fail "apt-get install $*"
    }
}

# Sends a command to the server on a port, and prints the first line of the reply: redis PORT WORD...
redis() {
    timeout 30 bash -c 'exec 3<>"/dev/tcp/127.0.0.1/$0" && printf "%s\r\n" "$*" >&3 && IFS= read -r -t 20 line <&3 &&
        printf "%s\n" "${line%?}"' "$@"
}

# Tests whether the server on a port replies to PING: is_ready PORT
is_ready() {
    [ "$(redis "$1" PING)" = "+PONG" ]
}

# Waits until a process that this script started ends, and kills the process after 60 seconds. Returns the status of the
# process: wait_for_end PID
wait_for_end() {
    (sleep 60; echo "the process $1 did not end within 60 s"; kill -KILL "$1") &
    watchdog=$!
    status=0
    wait "$1" || status=$?
    kill "$watchdog" 2>/dev/null || true
    return "$status"
}
