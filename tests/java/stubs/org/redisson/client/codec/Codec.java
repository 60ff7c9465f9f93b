package org.redisson.client.codec;

public interface Codec {
}
