import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.sql.Timestamp;
import java.time.Instant;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TimeZone;
import java.util.TreeMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hive.common.type.HiveDecimal;
import org.apache.hadoop.hive.ql.exec.vector.*;
import org.apache.orc.*;

/**
 * Writes whole ORC files with ORC 2.3.0, whose jars are in the Python package pyspark 4.3.0:
 * {@code java -cp 'jars/*' Make.java FOLDER}, on OpenJDK 17.
 */
public class Make {
  static final int ROWS = 60;
  static final String SCHEMA =
      "struct<b:boolean,i8:tinyint,i64:bigint,s:string,c:char(6),v:varchar(5),day:date,ts:timestamp,"
          + "ti:timestamp with local time zone,dec:decimal(12,2),big:decimal(38,4),f:float,d:double,bin:binary,"
          + "a:struct<b:int,c:string>>";

  /** The values of each column as texts. */
  static final Map<String, List<String>> TEXTS = new TreeMap<>();

  public static void main(String[] args) throws Exception {
    TimeZone.setDefault(TimeZone.getTimeZone("America/Los_Angeles"));
    var original = OrcFile.BloomFilterVersion.ORIGINAL;
    // The streams BLOOM_FILTER and BLOOM_FILTER_UTF8 of each column.
    write(args[0] + "/java.orc", options(CompressionKind.ZLIB).bloomFilterVersion(original));
    writeTexts(args[0] + "/java.json");
    write(args[0] + "/lzo.orc", options(CompressionKind.LZO).bloomFilterColumns("s"));
    var keys = new InMemoryKeystore().addKey("pii", EncryptionAlgorithm.AES_CTR_128, new byte[16]);
    write(
        args[0] + "/encrypted.orc",
        options(CompressionKind.ZLIB).bloomFilterColumns("s,i64").setKeyProvider(keys).encrypt("pii:s"));
  }

  static OrcFile.WriterOptions options(CompressionKind kind) {
    return OrcFile.writerOptions(new Configuration())
        .setSchema(TypeDescription.fromString(SCHEMA))
        .compress(kind)
        .bloomFilterColumns("b,i8,i64,s,c,v,day,ts,ti,dec,big,f,d,bin,a.b,a.c")
        .bloomFilterFpp(0.05)
        .rowIndexStride(1000)
        .overwrite(true);
  }

  static void write(String path, OrcFile.WriterOptions options) throws Exception {
    Writer writer = OrcFile.createWriter(new Path("file://" + path), options);
    VectorizedRowBatch batch = options.getSchema().createRowBatch(ROWS);
    for (int i = 0; i < ROWS; i++) {
      int row = batch.size++;
      longs(batch.cols[0], row, i % 2);
      longs(batch.cols[1], row, i - 30);
      longs(batch.cols[2], row, i * 1_000_000_000_007L - 5);
      bytes(batch.cols[3], row, "text é中 " + i);
      bytes(batch.cols[4], row, "c" + i);
      bytes(batch.cols[5], row, "v" + i + "longer");
      longs(batch.cols[6], row, i * 300 - 3000);
      Timestamp time = Timestamp.from(Instant.ofEpochSecond(1_700_000_000L + i * 777_777L, i * 1_234_567L));
      ((TimestampColumnVector) batch.cols[7]).set(row, time);
      ((TimestampColumnVector) batch.cols[8]).set(row, time);
      decimal(batch.cols[9], row, BigInteger.valueOf(i * 5 - 150), 2);
      decimal(batch.cols[10], row, BigInteger.valueOf(i - 30).multiply(BigInteger.TEN.pow(30)), 4);
      ((DoubleColumnVector) batch.cols[11]).vector[row] = (float) (i * 0.1 - 3);
      ((DoubleColumnVector) batch.cols[12]).vector[row] = i * 0.1 - 3;
      bytes(batch.cols[13], row, "bytes " + i);
      var struct = (StructColumnVector) batch.cols[14];
      longs(struct.fields[0], row, i * 3);
      bytes(struct.fields[1], row, "member" + i);
      text("i8", i - 30);
      text("i64", i * 1_000_000_000_007L - 5);
      text("s", "text é中 " + i);
      text("v", ("v" + i + "longer").substring(0, 5));
      text("day", java.time.LocalDate.ofEpochDay(i * 300 - 3000));
      var nanos = DateTimeFormatter.ofPattern("yyyy-MM-dd HH:mm:ss.nnnnnnnnn");
      text("ts", nanos.withZone(ZoneId.systemDefault()).format(time.toInstant()));
      text("ti", nanos.withZone(ZoneOffset.UTC).format(time.toInstant()) + "Z");
      text("dec", BigDecimal.valueOf(i * 5 - 150, 2).toPlainString());
      text("big", new BigDecimal(BigInteger.valueOf(i - 30).multiply(BigInteger.TEN.pow(30)), 4).toPlainString());
      text("f", (float) (i * 0.1 - 3));
      text("d", i * 0.1 - 3);
      text("bin", "bytes " + i);
      text("a.b", i * 3);
      text("a.c", "member" + i);
    }
    writer.addRowBatch(batch);
    writer.close();
  }

  static void text(String column, Object value) {
    TEXTS.computeIfAbsent(column, name -> new ArrayList<>()).add(value.toString());
  }

  /** Writes the texts of the first file as JSON. No text has a character that JSON escapes. */
  static void writeTexts(String path) throws Exception {
    var lines = new ArrayList<String>();
    TEXTS.forEach((column, texts) -> lines.add("\"" + column + "\": [\"" + String.join("\", \"", texts) + "\"]"));
    Files.writeString(java.nio.file.Path.of(path), "{\n" + String.join(",\n", lines) + "\n}\n");
  }

  static void longs(ColumnVector column, int row, long value) {
    ((LongColumnVector) column).vector[row] = value;
  }

  static void bytes(ColumnVector column, int row, String value) {
    ((BytesColumnVector) column).setVal(row, value.getBytes(StandardCharsets.UTF_8));
  }

  static void decimal(ColumnVector column, int row, BigInteger unscaled, int scale) {
    ((DecimalColumnVector) column).set(row, HiveDecimal.create(new BigDecimal(unscaled, scale)));
  }
}
