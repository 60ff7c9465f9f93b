package io.lettuce.core.codec;

public class StringCodec implements RedisCodec<String, String> {
    public static final StringCodec UTF8 = new StringCodec();
}
