package org.redisson.client.codec;

public class StringCodec implements Codec {
    public static final StringCodec INSTANCE = new StringCodec();
}
