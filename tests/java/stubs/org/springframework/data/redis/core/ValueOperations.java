package org.springframework.data.redis.core;

public interface ValueOperations<K, V> {
    Boolean setBit(K key, long offset, boolean value);

    Boolean getBit(K key, long offset);
}
