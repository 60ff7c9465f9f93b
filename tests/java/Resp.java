import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/** A connection to a Redis server: RESP2 over a socket. A reply that does not arrive in time is an error. */
final class Resp implements AutoCloseable {
    /** The text of an error reply. */
    record Failure(String text) {
    }

    private final Socket socket = new Socket();
    private final BufferedInputStream in;

    Resp(int port) throws IOException {
        socket.connect(new InetSocketAddress("127.0.0.1", port), Programs.DEADLINE_MILLIS);
        socket.setSoTimeout(Programs.DEADLINE_MILLIS);
        socket.setTcpNoDelay(true);
        in = new BufferedInputStream(socket.getInputStream());
    }

    /** Sends a command and returns the reply. A word is a text, a number or a byte array. */
    Object call(Object... words) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        bytes.writeBytes(line('*', words.length));
        for (Object word : words) {
            byte[] text = word instanceof byte[] raw ? raw : word.toString().getBytes(StandardCharsets.UTF_8);
            bytes.writeBytes(line('$', text.length));
            bytes.writeBytes(text);
            bytes.writeBytes(new byte[] {'\r', '\n'});
        }
        socket.getOutputStream().write(bytes.toByteArray());
        return reply();
    }

    private static byte[] line(char kind, int number) {
        return (kind + "" + number + "\r\n").getBytes(StandardCharsets.US_ASCII);
    }

    private Object reply() throws IOException {
        String line = readLine();
        String rest = line.substring(1);
        switch (line.charAt(0)) {
            case '+':
                return rest;
            case '-':
                return new Failure(rest);
            case ':':
                return Long.parseLong(rest);
            case '$':
                return bulk(Integer.parseInt(rest));
            case '*':
                List<Object> replies = new ArrayList<>();
                for (int left = Integer.parseInt(rest); left > 0; left--) {
                    replies.add(reply());
                }
                return replies;
            default:
                throw new IOException("not RESP2: " + line);
        }
    }

    private String bulk(int length) throws IOException {
        if (length < 0) {
            return null;
        }
        byte[] bytes = in.readNBytes(length + 2);
        if (bytes.length < length + 2) {
            throw new EOFException("the server closed the connection within a reply");
        }
        return new String(bytes, 0, length, StandardCharsets.UTF_8);
    }

    private String readLine() throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        for (int next = in.read(); next != '\n'; next = in.read()) {
            if (next < 0) {
                throw new EOFException("the server closed the connection");
            }
            bytes.write(next);
        }
        String line = bytes.toString(StandardCharsets.UTF_8);
        return line.substring(0, line.length() - 1);
    }

    @Override
    public void close() throws IOException {
        socket.close();
    }
}
