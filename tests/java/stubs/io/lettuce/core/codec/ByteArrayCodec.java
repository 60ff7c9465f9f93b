package io.lettuce.core.codec;

public class ByteArrayCodec implements RedisCodec<byte[], byte[]> {
    public static final ByteArrayCodec INSTANCE = new ByteArrayCodec();
}
