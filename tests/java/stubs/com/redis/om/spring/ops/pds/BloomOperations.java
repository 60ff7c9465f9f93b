package com.redis.om.spring.ops.pds;

public interface BloomOperations<K> {
    void createFilter(K name, long initCapacity, double errorRate);

    boolean add(K name, String value);

    boolean exists(K name, String value);
}
