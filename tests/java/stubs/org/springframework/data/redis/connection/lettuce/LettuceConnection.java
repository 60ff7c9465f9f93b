package org.springframework.data.redis.connection.lettuce;

import io.lettuce.core.output.CommandOutput;
import org.springframework.data.redis.connection.RedisConnection;

public class LettuceConnection implements RedisConnection {
    @Override
    public Object execute(String command, byte[]... args) {
        throw new UnsupportedOperationException("a stub");
    }

    @SuppressWarnings("rawtypes")
    public Object execute(String command, CommandOutput output, byte[]... args) {
        throw new UnsupportedOperationException("a stub");
    }

    @Override
    public void close() {
    }
}
