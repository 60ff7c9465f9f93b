package io.lettuce.core.output;

import io.lettuce.core.codec.RedisCodec;

public abstract class CommandOutput<K, V, T> {
    protected CommandOutput(RedisCodec<K, V> codec, T output) {
    }
}
