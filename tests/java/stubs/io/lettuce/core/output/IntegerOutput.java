package io.lettuce.core.output;

import io.lettuce.core.codec.RedisCodec;

public class IntegerOutput<K, V> extends CommandOutput<K, V, Long> {
    public IntegerOutput(RedisCodec<K, V> codec) {
        super(codec, null);
    }
}
