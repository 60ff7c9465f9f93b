import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** The programs that the test starts. Closing a program kills the process and waits for its end. */
final class Programs {
    /** The longest wait for the start or the end of a program, for a log line or for a reply. */
    static final int DEADLINE_MILLIS = 60_000;

    private Programs() {
    }

    /** A running program, whose log lines are read on a thread. */
    static final class Running implements AutoCloseable {
        private final String name;
        private final Process process;
        private final BlockingQueue<String> lines = new LinkedBlockingQueue<>();
        private final StringBuffer log = new StringBuffer();
        private final Thread reader = new Thread(this::read);

        Running(Path folder, List<String> words) throws IOException {
            name = String.join(" ", words);
            ProcessBuilder builder = new ProcessBuilder(words).directory(folder.toFile()).redirectErrorStream(true);
            builder.environment().put("REDIS_PASSWORD", "secret");
            process = builder.start();
            process.getOutputStream().close();
            reader.setDaemon(true);
            reader.start();
        }

        private void read() {
            try (var reader = new BufferedReader(
                    new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8))) {
                for (String line = reader.readLine(); line != null; line = reader.readLine()) {
                    log.append(line).append('\n');
                    lines.add(line);
                }
            } catch (IOException closed) {
                log.append(closed).append('\n');
            }
        }

        /** Waits for a log line that the pattern matches. Kills the program if the line does not come. */
        Matcher await(String pattern) throws InterruptedException {
            Pattern compiled = Pattern.compile(pattern);
            long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(DEADLINE_MILLIS);
            while (System.nanoTime() < end) {
                String line = lines.poll(50, TimeUnit.MILLISECONDS);
                Matcher matcher = compiled.matcher(line == null ? "" : line);
                if (matcher.find()) {
                    return matcher;
                }
                if (line == null && !process.isAlive() && lines.isEmpty()) {
                    throw new AssertionError(name + " ended before the line '" + pattern + "':\n" + log);
                }
            }
            close();
            throw new AssertionError(name + ": no line '" + pattern + "' within the deadline:\n" + log);
        }

        /** Waits for the end of the program, and returns its output. The exit status must be 0. */
        String finish() throws InterruptedException {
            if (!process.waitFor(DEADLINE_MILLIS, TimeUnit.MILLISECONDS)) {
                throw new AssertionError(name + " did not end within the deadline:\n" + log);
            }
            if (process.exitValue() != 0) {
                throw new AssertionError(name + " ended with status " + process.exitValue() + ":\n" + log);
            }
            reader.join(DEADLINE_MILLIS);
            return log.toString();
        }

        @Override
        public void close() throws InterruptedException {
            process.destroyForcibly();
            if (!process.waitFor(DEADLINE_MILLIS, TimeUnit.MILLISECONDS)) {
                throw new AssertionError(name + " did not end after SIGKILL");
            }
        }
    }

    /** A running server, and its port. */
    record Server(Running program, int port) implements AutoCloseable {
        @Override
        public void close() throws InterruptedException {
            program.close();
        }
    }

    /** Starts `tamis serve` on a free port. */
    static Server serve(String tamis, Path folder, String... options) throws IOException, InterruptedException {
        List<String> words = new ArrayList<>(List.of(tamis, "serve", "--port", "0", "--http-port", "no", "--dir", "data"));
        words.addAll(List.of(options));
        Running program = new Running(folder, words);
        return new Server(program, Integer.parseInt(program.await("is ready for .*address=\\S*:(\\d+)").group(1)));
    }

    /** Starts Redis with the module on a free port. Another program may take the port first, so the start is repeated. */
    static Server redis(String server, String module, Path folder) throws IOException, InterruptedException {
        for (int attempt = 1;; attempt++) {
            int port = freePort();
            List<String> words = List.of(server, "--port", "" + port, "--save", "", "--loadmodule", module);
            Running program = new Running(folder, words);
            if (!program.await("Ready to accept connections|Address already in use").group().startsWith("Address")) {
                return new Server(program, port);
            }
            program.close();
            if (attempt == 10) {
                throw new AssertionError("no free port in 10 attempts");
            }
        }
    }

    private static int freePort() throws IOException {
        try (var socket = new ServerSocket(0, 1, InetAddress.getByName("127.0.0.1"))) {
            return socket.getLocalPort();
        }
    }
}
