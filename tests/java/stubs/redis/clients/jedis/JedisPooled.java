package redis.clients.jedis;

import java.util.List;

public class JedisPooled implements AutoCloseable {
    public JedisPooled(String host, int port) {
    }

    public String bfReserve(String key, double errorRate, long capacity) {
        throw new UnsupportedOperationException("a stub");
    }

    public boolean bfAdd(String key, String item) {
        throw new UnsupportedOperationException("a stub");
    }

    public List<Boolean> bfMAdd(String key, String... items) {
        throw new UnsupportedOperationException("a stub");
    }

    public boolean bfExists(String key, String item) {
        throw new UnsupportedOperationException("a stub");
    }

    @Override
    public void close() {
    }
}
