package io.lettuce.core.codec;

public interface RedisCodec<K, V> {
}
