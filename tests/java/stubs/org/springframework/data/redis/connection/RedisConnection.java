package org.springframework.data.redis.connection;

public interface RedisConnection extends AutoCloseable {
    Object execute(String command, byte[]... args);

    @Override
    void close();
}
