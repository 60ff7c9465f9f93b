#!/bin/sh
# The program of the tar file runs from any folder.
set -eu
. /project/tests/packages/support.sh

(cd /packages && sha256sum --check --quiet SHA256SUMS) || fail "a checksum is wrong"
mkdir /opt/tamis
tar --extract --file /packages/tamis-*-linux-gnu.tar.gz --directory /opt/tamis --strip-components=1
PATH=/opt/tamis/bin:$PATH
tamis --version | grep -q '^tamis [0-9]' || fail "tamis --version"
expect "$(printf 'a\nb')" sh -c 'printf "a\nb\na\n" | tamis --quiet dedup'

# The tour of the README: a filter in a file.
seq 1000 | tamis --quiet build - -o numbers.tamis
expect 7 sh -c 'echo 7 | tamis check numbers.tamis'
tamis info numbers.tamis | grep -q '^numbers.tamis' || fail "tamis info"

# Other languages and character sets.
expect "$(printf '产品\n缓存')" sh -c 'printf "产品\n缓存\n产品\n" | LC_ALL=C tamis --quiet dedup'
LC_ALL=zh_CN.GB18030 tamis plan --items 1000 --rate 1% | grep -q split-block || fail "a locale that does not exist"

for file in share/man/man1/tamis.1.gz share/bash-completion/completions/tamis share/doc/tamis/licenses.txt.gz \
    share/doc/tamis/sbom.cdx.json lib/libtamis.so; do
    [ -s "/opt/tamis/$file" ] || fail "the tar file has no $file"
done
bash -n /opt/tamis/share/bash-completion/completions/tamis
