package io.lettuce.core.protocol;

public interface ProtocolKeyword {
    byte[] getBytes();

    @Override
    String toString();
}
