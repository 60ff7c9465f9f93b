package io.lettuce.core.output;

import io.lettuce.core.codec.RedisCodec;

public class BooleanOutput<K, V> extends CommandOutput<K, V, Boolean> {
    public BooleanOutput(RedisCodec<K, V> codec) {
        super(codec, null);
    }
}
