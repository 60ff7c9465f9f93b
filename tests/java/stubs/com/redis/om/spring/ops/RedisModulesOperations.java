package com.redis.om.spring.ops;

import com.redis.om.spring.ops.pds.BloomOperations;

public interface RedisModulesOperations<K> {
    BloomOperations<K> opsForBloom();
}
