#!/bin/sh
# The guard in front of a service with MariaDB: the files of packaging/compose/guard without containers.
set -eu
. /project/tests/packages/support.sh

install_packages mariadb-server mariadb-client python3-pymysql /packages/tamis_*.deb
echo "127.0.0.1 database shop" >>/etc/hosts
install -d -o mysql -g mysql /run/mysqld
mariadbd --user=mysql --log-bin --binlog-format=ROW --server-id=1 >/tmp/mariadb.log 2>&1 &
wait_for mariadb -e "SELECT 1"
mariadb -e "CREATE DATABASE shop"
mariadb </project/packaging/compose/guard/shop.sql
DB_PASSWORD=shop python3 /project/packaging/compose/guard/shop.py >/tmp/shop.log 2>&1 &
DB_PASSWORD=guard setpriv --reuid tamis --regid tamis --clear-groups \
    tamis guard --config /project/packaging/compose/guard/guard.toml >/tmp/guard.log 2>&1 &
wait_for tamis health http://127.0.0.1:9091/readyz

# Prints the status and the body of a response: page PATH
page() {
    python3 - "$1" <<'CODE'
import sys, urllib.error, urllib.request
try:
    response = urllib.request.urlopen("http://127.0.0.1:8080" + sys.argv[1], timeout=20)
except urllib.error.HTTPError as error:
    response = error
print(response.status, response.read().decode())
CODE
}
expect '200 {"id": 1, "name": "product 1"}' page /products/1
page /products/999 | grep -q '^404 .*产品不存在!' || fail "the response of the guard: $(page /products/999)"
mariadb -e "INSERT INTO shop.products VALUES (999, 'new')"
wait_for sh -c 'python3 -c "import urllib.request as r; r.urlopen(\"http://127.0.0.1:8080/products/999\")"'
