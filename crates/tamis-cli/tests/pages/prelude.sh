# What differs from a reader's terminal: servers listen on free ports but show the usual ones, run in the background until the next one
# starts or the page ends, and `redis-cli` finds them.

set -o pipefail
trap stop EXIT

stop() {
    [ -z "$server" ] || { kill "$server"; wait "$server"; } 2>/dev/null
    server=
}

# `tamis publish` runs until the page ends, and `tamis pull` finds it.
publish() {
    local log="$HIDDEN/publisher.log"
    : >"$log"
    command tamis "$@" --listen 127.0.0.1:0 >"$log" 2>&1 &
    trap "kill $!; stop" EXIT
    until grep -q 'address=' "$log"; do
        kill -0 $! 2>/dev/null || { cat "$log"; return 1; }
        sleep 0.01
    done
    published=$(sed -n 's/.*address=[^ ]*:\([0-9]*\).*/\1/p' "$log")
    sed "s/:$published\b/:8380/" "$log"
}

# Without a URL, it asks the console.
health() {
    [[ " $*" == *://* ]] || set -- "$@" http://127.0.0.1:8379/healthz
    set -- "${@/:8379/:$console}"
    command tamis health "${@/:6379/:$PORT}" 2>&1 | sed "s/:$PORT\b/:6379/; s/:$console\b/:8379/"
}

tamis() {
    case $1 in
        publish) publish "$@"; return ;;
        pull) command tamis "${@/:8380\//:$published/}"; return ;;
        health) health "${@:2}"; return ;;
    esac
    [ "$1" = serve ] || { command tamis "$@"; return; }
    stop
    local words=() before= word
    for word; do
        case $before in
            --port | --tls-port | --http-port) [ "$word" = no ] || word=0 ;;
        esac
        words+=("$word")
        before=$word
    done
    local log="$HIDDEN/server.log"
    : >"$log"
    TAMIS_PORT=0 TAMIS_HTTP_PORT=0 command tamis "${words[@]}" >"$log" 2>&1 &
    server=$!
    until grep -q ' url=http' "$log"; do
        kill -0 "$server" 2>/dev/null || { cat "$log"; return 1; }
        sleep 0.01
    done
    PORT=$(sed -n 's/.* is ready .*address=[^ ]*:\([0-9]*\).*/\1/p' "$log" | head -n 1)
    console=$(sed -n 's/.* url=http:.*:\([0-9]*\).*/\1/p' "$log" | head -n 1)
    sed "s/:$PORT\b/:6379/; s/:$console\b/:8379/" "$log"
}

# To a terminal it writes replies as `--no-raw` does.
redis-cli() {
    command "$REDIS_CLI" --no-raw -p "$PORT" "$@"
}
