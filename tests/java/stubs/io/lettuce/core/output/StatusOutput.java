package io.lettuce.core.output;

import io.lettuce.core.codec.RedisCodec;

public class StatusOutput<K, V> extends CommandOutput<K, V, String> {
    public StatusOutput(RedisCodec<K, V> codec) {
        super(codec, null);
    }
}
