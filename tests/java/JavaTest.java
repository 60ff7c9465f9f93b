import com.sun.net.httpserver.HttpServer;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.ObjectOutputStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.regex.Matcher;
import java.util.stream.LongStream;
import org.springframework.data.redis.core.StringRedisTemplate;
import org.springframework.data.redis.core.ValueOperations;

/**
 * Runs the Java code and the configurations of {@code docs/java-spring.md}.
 *
 * <p>{@code cargo xtask test} compiles the code of the page with this class, and runs the class in the root folder:
 *
 * <ul>
 *   <li>{@code JavaTest serve TAMIS}: {@code BF.*} of {@code tamis serve}, and Guava's files;
 *   <li>{@code JavaTest guard TAMIS}: guards that read a bitmap in {@code tamis serve};
 *   <li>{@code JavaTest module TAMIS SERVER MODULE}: {@code BF.*} of Redis with the module, and a guard that reads a
 *       filter of Redisson.
 * </ul>
 */
public final class JavaTest {
    private static final String NO_PRODUCT = "{\"code\":404,\"message\":\"产品不存在!\"}";
    private static final String KEY = "product:ids";
    private static final String PASSWORD = "secret";
    private static final List<Long> IDS = LongStream.rangeClosed(1, 1000).boxed().toList();

    private final String tamis;
    private final Path folder;

    private JavaTest(String tamis, Path folder) {
        this.tamis = Path.of(tamis).toAbsolutePath().toString();
        this.folder = folder;
    }

    public static void main(String[] args) throws Exception {
        Path folder = Files.createTempDirectory("tamis-java");
        try {
            JavaTest test = new JavaTest(args[1], folder);
            Files.write(folder.resolve("ids.txt"), IDS.stream().map(String::valueOf).toList());
            switch (args[0]) {
                case "serve" -> test.serve();
                case "guard" -> test.guard();
                case "module" -> test.module(args[2], Path.of(args[3]).toAbsolutePath().toString());
                default -> throw new IllegalArgumentException(args[0]);
            }
        } finally {
            try (var paths = Files.walk(folder)) {
                paths.sorted(Comparator.reverseOrder()).forEach(path -> path.toFile().delete());
            }
        }
        System.out.println(args[0] + ": passed");
    }

    private void serve() throws Exception {
        try (var server = Programs.serve(tamis, folder, "--requirepass", PASSWORD);
                var redis = new Resp(server.port())) {
            equal("AUTH", "OK", redis.call("AUTH", PASSWORD));
            bloomCommands(redis);
            equal("EVAL of tamis serve", true, redis.call("EVAL", "return 1", 0) instanceof Resp.Failure);

            redis.call("DEL", KEY);
            for (long id : IDS) {
                redis.call("BF.ADD", KEY, id);
            }
            guard(server, withSource(source("REDIS_PASSWORD")));
        }
        files();
    }

    private void module(String program, String module) throws Exception {
        try (var server = Programs.redis(program, module, folder); var redis = new Resp(server.port())) {
            bloomCommands(redis);
            equal("a script", 1L, redis.call("EVAL", "return redis.call('bf.add', KEYS[1], ARGV[1])", 1, "script", "a"));
            redis.call("DEL", KEY);
            String url = "redis://127.0.0.1:" + server.port() + "/" + KEY;
            run("build", "--to", "redisson", "--items", "1M", "--to-funnel", "text", "--to-charset", "UTF-8", "ids.txt",
                    "-o", url);
            guard(server, configuration("/product:ids\", funnel = \"text\""));
        }
    }

    private void guard() throws Exception {
        offsets();
        try (var server = Programs.serve(tamis, folder); var redis = new Resp(server.port())) {
            var template = new Template(redis, KEY);
            var interceptor = new ProductInterceptor(template, () -> IDS);
            interceptor.load();
            equal("the interceptor passes 7", "", answer(interceptor, 7));
            equal("the interceptor refuses 777777", "404 " + NO_PRODUCT, answer(interceptor, 777_777));
            guard(server, configuration("format = \"redis-bitmap\""));

            // The same bitmap under the key of a RedisTemplate without settings.
            byte[] key = serialized(KEY);
            String source = source("/" + percentEncoded(key) + "\"");
            redis.call("RENAME", KEY, key);
            guard(server, withSource(source));
        }
    }

    /** Compares offsets with those of the articles' code, from tests/golden/seeds_java/redis_helper.json. */
    private static void offsets() {
        var once = new BloomFilterHelper<String>((from, into) -> into.putString(from, StandardCharsets.UTF_8), 1000, 0.1);
        equal("java", "[2566, 2282, 780]", Arrays.toString(once.murmurHashOffset("java")));
        var twice = new BloomFilterHelper<String>(
                (from, into) -> into.putString(from, StandardCharsets.UTF_8).putString(from, StandardCharsets.UTF_8),
                1_000_000, 0.01);
        equal("产品不存在!", "[859658, 6106617, 1768518, 3430892, 7768991, 7063025, 2724926]",
                Arrays.toString(twice.murmurHashOffset("产品不存在!")));
    }

    /** Sends the commands that the snippets of the page send. */
    private static void bloomCommands(Resp redis) throws IOException {
        equal("BF.RESERVE", "OK", redis.call("BF.RESERVE", KEY, "0.01", 1_000_000));
        equal("BF.ADD of a new id", 1L, redis.call("BF.ADD", KEY, "42"));
        equal("BF.ADD of a repeated id", 0L, redis.call("BF.ADD", KEY, "42"));
        equal("BF.MADD", List.of(0L, 1L, 1L), redis.call("BF.MADD", KEY, "42", "43", "产品"));
        equal("BF.EXISTS of an id", 1L, redis.call("BF.EXISTS", KEY, "产品"));
        equal("BF.EXISTS of an absent id", 0L, redis.call("BF.EXISTS", KEY, "44"));
        equal("BF.MEXISTS", List.of(1L, 0L), redis.call("BF.MEXISTS", KEY, "43", "44"));
        equal("BF.CARD", 3L, redis.call("BF.CARD", KEY));
        equal("BF.RESERVE of a filter that exists", true,
                redis.call("BF.RESERVE", KEY, "0.01", 10) instanceof Resp.Failure);
    }

    /** Exchanges a file of Guava with the program. */
    private void files() throws Exception {
        Path file = folder.resolve("ids.guava");
        GuavaFile.write(file, IDS.stream().map(String::valueOf).toList());
        equal("tamis check", "1000\n", run("check", "-c", "ids.guava", "--funnel", "text", "--charset", "UTF-8", "ids.txt"));
        Files.writeString(folder.resolve("new.txt"), "产品\n");
        run("add", "ids.guava", "--funnel", "text", "--charset", "UTF-8", "new.txt");
        var filter = GuavaFile.read(file);
        equal("Guava has the new item", true, filter.mightContain("产品") && filter.mightContain("7"));
        equal("Guava has no other item", false, filter.mightContain("absent"));
    }

    /** Starts a guard with a configuration of the page, and requests present and absent ids. */
    private void guard(Programs.Server server, String configuration) throws Exception {
        try (var upstream = new Upstream()) {
            String text = configuration.replace("127.0.0.1:8080", "127.0.0.1:0")
                    .replace("127.0.0.1:9000", "127.0.0.1:" + upstream.port())
                    .replace("127.0.0.1:6379", "127.0.0.1:" + server.port());
            Files.writeString(folder.resolve("guard.toml"), text);
            String report = run("guard", "audit", "--config", "guard.toml", "--ids", "ids.txt");
            equal("the audit", true, report.lines().anyMatch(line -> line.matches("products +1000 +0 +100000 .*")));
            var words = List.of(tamis, "guard", "--config", "guard.toml");
            try (var guard = new Programs.Running(folder, words)) {
                String port = guard.await("is ready for requests address=\\S*:(\\d+)").group(1);
                guard.await("the ids are synced");
                for (long id : new long[] {1, 7, 1000}) {
                    equal("id " + id, "200 product " + id, get(port, id));
                }
                for (long id : new long[] {777_777, 1_234_567}) {
                    equal("id " + id, "404 " + NO_PRODUCT, get(port, id));
                }
                equal("requests that reached the upstream", 3, upstream.requests.get());
            }
        }
    }

    private static String get(String port, long id) throws Exception {
        Duration limit = Duration.ofMillis(Programs.DEADLINE_MILLIS);
        HttpClient client = HttpClient.newBuilder().connectTimeout(limit).build();
        URI uri = URI.create("http://127.0.0.1:" + port + "/pms/productInfo/" + id);
        var request = HttpRequest.newBuilder(uri).timeout(limit).build();
        var response = client.send(request, HttpResponse.BodyHandlers.ofString());
        return response.statusCode() + " " + response.body();
    }

    /** The Spring program behind the guard: has a product for each id. */
    private static final class Upstream implements AutoCloseable {
        final AtomicInteger requests = new AtomicInteger();
        private final HttpServer server =
                HttpServer.create(new InetSocketAddress(InetAddress.getByName("127.0.0.1"), 0), 0);

        Upstream() throws IOException {
            server.createContext("/pms/productInfo/", exchange -> {
                requests.incrementAndGet();
                String path = exchange.getRequestURI().getPath();
                byte[] body = ("product " + path.substring(path.lastIndexOf('/') + 1)).getBytes(StandardCharsets.UTF_8);
                exchange.sendResponseHeaders(200, body.length);
                exchange.getResponseBody().write(body);
                exchange.close();
            });
            server.start();
        }

        int port() {
            return server.getAddress().getPort();
        }

        @Override
        public void close() {
            server.stop(0);
        }
    }

    /** A template whose bits are in the server. */
    private static final class Template extends StringRedisTemplate {
        private final Resp redis;
        private final String key;

        Template(Resp redis, String key) {
            this.redis = redis;
            this.key = key;
        }

        @Override
        public ValueOperations<String, String> opsForValue() {
            return new ValueOperations<>() {
                @Override
                public Boolean setBit(String key, long offset, boolean value) {
                    return bit("SETBIT", key, offset, value ? 1 : 0);
                }

                @Override
                public Boolean getBit(String key, long offset) {
                    return bit("GETBIT", key, offset);
                }
            };
        }

        private boolean bit(Object... words) {
            equal("the key", key, words[1]);
            try {
                return redis.call(words).equals(1L);
            } catch (IOException failure) {
                throw new UncheckedIOException(failure);
            }
        }
    }

    /** Returns the status and the body that the interceptor writes, or "" if the request passes. */
    private static String answer(ProductInterceptor interceptor, long id) throws Exception {
        StringWriter body = new StringWriter();
        int[] code = {0};
        HttpServletRequest request = () -> "/pms/productInfo/" + id;
        HttpServletResponse response = new HttpServletResponse() {
            @Override
            public void setStatus(int status) {
                code[0] = status;
            }

            @Override
            public void setContentType(String type) {
                equal("the content type", "application/json; charset=utf-8", type);
            }

            @Override
            public PrintWriter getWriter() {
                return new PrintWriter(body, true);
            }
        };
        return interceptor.preHandle(request, response, new Object()) ? "" : code[0] + " " + body;
    }

    /** Returns the bytes that JdkSerializationRedisSerializer of Spring writes: Java's serialized form. */
    private static byte[] serialized(String text) throws IOException {
        var bytes = new ByteArrayOutputStream();
        try (var out = new ObjectOutputStream(bytes)) {
            out.writeObject(text);
        }
        return bytes.toByteArray();
    }

    /** Encodes the bytes that are not printable, as the URL of a key needs. */
    private static String percentEncoded(byte[] bytes) {
        StringBuilder text = new StringBuilder();
        for (byte next : bytes) {
            text.append(next > ' ' && next < 127 ? "" + (char) next : String.format("%%%02X", next));
        }
        return text.toString();
    }

    /** Returns the configuration of the page that contains a text. */
    private static String configuration(String text) throws IOException {
        return blocks().stream().filter(block -> block.startsWith("proxy") && block.contains(text)).findFirst()
                .orElseThrow(() -> new AssertionError("the page has no configuration with " + text));
    }

    /** Returns the line of the page that is a source and contains a text. */
    private static String source(String text) throws IOException {
        return blocks().stream().filter(block -> block.startsWith("source") && block.contains(text)).findFirst()
                .orElseThrow(() -> new AssertionError("the page has no source with " + text)).strip();
    }

    /** Returns a configuration of the page with another source. */
    private static String withSource(String source) throws IOException {
        String text = configuration("format = \"redis-bitmap\"");
        return text.replaceFirst("(?m)^source = .*$", Matcher.quoteReplacement(source));
    }

    private static List<String> blocks() throws IOException {
        String page = Files.readString(Path.of("docs/java-spring.md"));
        String[] parts = page.split("(?m)^```toml\n");
        return Arrays.stream(parts).skip(1).map(part -> part.substring(0, part.indexOf("```"))).toList();
    }

    /** Runs `tamis` with arguments, and returns its output. */
    private String run(String... words) throws Exception {
        String[] all = new String[words.length + 1];
        all[0] = tamis;
        System.arraycopy(words, 0, all, 1, words.length);
        try (var program = new Programs.Running(folder, List.of(all))) {
            return program.finish();
        }
    }

    private static void equal(String what, Object expected, Object found) {
        if (!expected.equals(found)) {
            throw new AssertionError(what + ": expected " + expected + ", found " + found);
        }
    }
}
