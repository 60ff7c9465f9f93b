package org.springframework.data.redis.connection.lettuce;

import org.springframework.data.redis.connection.RedisConnection;

public class LettuceConnectionFactory {
    public RedisConnection getConnection() {
        return new LettuceConnection();
    }
}
