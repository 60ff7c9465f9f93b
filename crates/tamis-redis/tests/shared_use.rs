//! Every client can be shared between threads and tasks. The compiler checks the assertions.

use tamis_redis::{
    BitmapsFilter, ClusterNodes, HelperFilter, RedisDraft, RedisFilter, RedisNodes, RedisRebuild,
    RedissonFilter, SentinelNode, SingleNode, Transport,
};

fn is_shared<T: Clone + Send + Sync + 'static>() {}

fn is_sent<T: Send + Sync>() {}

fn are_shared<T: Transport + Clone + 'static>() {
    is_shared::<T>();
    is_shared::<RedisFilter<T>>();
    is_shared::<HelperFilter<T>>();
    is_shared::<BitmapsFilter<T>>();
    is_shared::<RedissonFilter<T>>();
    is_sent::<RedisDraft<T>>();
    is_sent::<RedisRebuild<'_, T>>();
}

#[test]
fn blocking_clients_are_shared_between_threads() {
    are_shared::<SingleNode>();
    are_shared::<ClusterNodes>();
    are_shared::<SentinelNode>();
    are_shared::<RedisNodes>();
}

#[cfg(feature = "async")]
#[test]
fn asynchronous_clients_are_shared_between_tasks() {
    use tamis_redis::{
        AsyncClusterNodes, AsyncRedisFilter, AsyncRedisRebuild, AsyncSentinelNode, AsyncSingleNode,
        AsyncTransport, RedisPlan,
    };

    fn of_task<F: Future + Send>(_: F) {}

    fn are_shared<T: AsyncTransport + Clone + 'static>() {
        is_shared::<T>();
        is_shared::<AsyncRedisFilter<T>>();
        is_sent::<AsyncRedisRebuild<'_, T>>();
        // The function is compiled and never called.
        let _ = |node: T, filter: AsyncRedisFilter<T>, plan: RedisPlan| {
            of_task(AsyncRedisFilter::open_or_create(node, "f", &plan));
            of_task(filter.insert("a"));
            of_task(filter.contains(&7_u64));
            of_task(filter.insert_each(&["a"]));
            of_task(filter.contains_each(&["a"]));
            of_task(filter.info());
            of_task(filter.flush());
            of_task(filter.expire_at(None));
            of_task(filter.delete());
            of_task(filter.merge(&filter));
            of_task(filter.abort_rebuild());
            of_task(async {
                let rebuild = filter.rebuild(&plan).await?;
                rebuild.insert_each(&["a"]).await;
                rebuild.swap().await
            });
        };
    }

    are_shared::<AsyncSingleNode>();
    are_shared::<AsyncClusterNodes>();
    are_shared::<AsyncSentinelNode>();
}
