"""A shop: each product page needs a query of the database."""

import json
import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pymysql


def product(number: str) -> tuple[int, dict]:
    """Returns the status and the content of the page of a product."""
    connection = pymysql.connect(
        host=os.environ.get("DB_HOST", "127.0.0.1"),
        port=int(os.environ.get("DB_PORT", "3306")),
        user="shop",
        password=os.environ["DB_PASSWORD"],
        database="shop",
    )
    with connection, connection.cursor() as cursor:
        cursor.execute("SELECT id, name FROM products WHERE id = %s", (number,))
        row = cursor.fetchone()
    if row is None:
        return 404, {"message": "the database has no such product"}
    return 200, {"id": row[0], "name": row[1]}


class Shop(BaseHTTPRequestHandler):
    """Answers GET /products/NUMBER."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Sends the page of a product."""
        status, content = product(self.path.rsplit("/", 1)[-1])
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


if __name__ == "__main__":
    address = ("", int(os.environ.get("PORT", "9000")))
    print("the shop listens on port", address[1], flush=True)
    ThreadingHTTPServer(address, Shop).serve_forever()
