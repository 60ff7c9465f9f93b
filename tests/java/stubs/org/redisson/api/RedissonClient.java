package org.redisson.api;

import org.redisson.client.codec.Codec;

public interface RedissonClient {
    <V> RBloomFilter<V> getBloomFilter(String name, Codec codec);
}
