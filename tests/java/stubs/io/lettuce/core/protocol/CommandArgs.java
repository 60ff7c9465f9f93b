package io.lettuce.core.protocol;

import io.lettuce.core.codec.RedisCodec;

public class CommandArgs<K, V> {
    public CommandArgs(RedisCodec<K, V> codec) {
    }

    public CommandArgs<K, V> addKey(K key) {
        return this;
    }

    public CommandArgs<K, V> addValue(V value) {
        return this;
    }

    public CommandArgs<K, V> add(long number) {
        return this;
    }

    public CommandArgs<K, V> add(double number) {
        return this;
    }
}
