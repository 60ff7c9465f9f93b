package org.redisson.api;

public interface RBloomFilter<T> {
    boolean tryInit(long expectedInsertions, double falseProbability);

    boolean add(T object);

    boolean contains(T object);
}
