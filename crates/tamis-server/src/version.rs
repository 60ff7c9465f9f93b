//! The versions that the server reports to clients.

/// The Redis version that Tamis is compatible with. Clients use the version to select features.
pub(crate) const REDIS_VERSION: &str = "7.4.0";

/// The version of `bf` in `MODULE LIST`: `major * 10000 + minor * 100 + patch`. Tamis is compatible
/// with the RedisBloom version that has this number.
pub(crate) const MODULE_VERSION: i64 = 81_000;
