-- The database of the example.
USE shop;
CREATE TABLE products (id BIGINT PRIMARY KEY, name VARCHAR(100) NOT NULL) CHARACTER SET utf8mb4;
INSERT INTO products SELECT seq, CONCAT('product ', seq) FROM seq_1_to_100;
CREATE USER shop IDENTIFIED BY 'shop';
GRANT SELECT, INSERT ON shop.* TO shop;
CREATE USER guard IDENTIFIED BY 'guard';
GRANT SELECT ON shop.products TO guard;
GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO guard;
