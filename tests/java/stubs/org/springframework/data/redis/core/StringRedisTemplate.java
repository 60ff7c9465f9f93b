package org.springframework.data.redis.core;

public class StringRedisTemplate extends RedisTemplate<String, String> {
}
