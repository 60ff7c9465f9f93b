"""Makes the Parquet files of the guard's tests, with pyarrow 26.0.1."""
import uuid

import pyarrow as pa
import pyarrow.parquet as pq

ids = list(range(1, 1001))
uuids = [uuid.UUID(int=i).bytes for i in ids]
table = pa.table({
    "name": pa.array(["a product"] * 1000),
    "id": pa.array(ids, pa.int64()),
    "small": pa.array([i % 100 for i in ids], pa.int32()),
    "unsigned": pa.array([2**64 - i for i in ids], pa.uint64()),
    "nulls": pa.array([None if i % 7 == 0 else i for i in ids], pa.int64()),
    "text": pa.array([f"sku-{i}" for i in ids], pa.string()),
    "words": pa.array([f"word-{i % 50}" for i in ids], pa.dictionary(pa.int32(), pa.string())),
    "uuid": pa.array(uuids, pa.uuid()),
    "binary": pa.array(uuids, pa.binary(16)),
    "price": pa.array([i / 4 for i in ids], pa.float64()),
    "day": pa.array(ids, pa.date32()),
    "tags": pa.array([[i, -i] if i % 2 else [] for i in ids], pa.list_(pa.int64())),
    "shop": pa.array([{"id": i} for i in ids], pa.struct([("id", pa.int64())])),
})
pq.write_table(table, "columns.parquet", compression="zstd", row_group_size=400,
               data_page_size=1024, use_dictionary=["words", "small"],
               column_encoding={"id": "DELTA_BINARY_PACKED"})
for compression in ["none", "snappy", "gzip", "zstd", "lz4", "brotli"]:
    pq.write_table(table.select(["name", "id"]).slice(0, 300), f"{compression}.parquet",
                   compression=compression, row_group_size=100)
