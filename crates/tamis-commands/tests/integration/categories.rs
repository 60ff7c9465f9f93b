//! The access categories are those that Redis documents, so ACL rules written for Redis mean the
//! same in Tamis.

use tamis_commands::{Category, Flag, Permission};

fn members(category: Category) -> Vec<String> {
    let mut names: Vec<String> =
        Permission::all().filter(|it| it.is_in(category)).map(Permission::name).collect();
    names.sort_unstable();
    names
}

#[test]
fn categories_have_the_commands_that_redis_has_there() {
    const ADMIN: &str = "acl|deluser acl|dryrun acl|getuser acl|list acl|load acl|log acl|save acl|setuser \
            acl|users bgrewriteaof bgsave client|kill client|list client|no-evict config \
            config|get config|resetstat config|rewrite config|set debug debug|reload lastsave \
            latency latency|doctor latency|graph latency|histogram latency|history \
            latency|latest latency|reset module module|list monitor save shutdown slowlog \
            slowlog|get slowlog|len slowlog|reset";
    for (category, names) in [
        (Category::Admin, ADMIN),
        (Category::Dangerous, &format!("{ADMIN} flushall flushdb info keys restore")),
        (
            Category::Keyspace,
            "copy dbsize del dump exists expire expireat expiretime flushall flushdb keys object \
                object|encoding object|freq object|help object|idletime object|refcount persist \
                pexpire pexpireat pexpiretime pttl randomkey rename renamenx restore scan touch \
                ttl type unlink",
        ),
        (Category::Bitmap, "bitcount bitfield bitfield_ro bitop bitpos getbit setbit"),
        (
            Category::String,
            "append decr decrby get getex getrange incr incrby mget mset psetex set setex setnx \
                setrange strlen",
        ),
        (
            Category::Connection,
            "auth client client|getname client|help client|id client|info client|kill client|list \
                client|no-evict client|no-touch client|reply client|setinfo client|setname command \
                command|count command|docs command|getkeys command|help command|info command|list \
                echo hello ping quit reset select",
        ),
        (Category::Transaction, "discard exec multi unwatch watch"),
    ] {
        let mut expected: Vec<&str> = names.split_whitespace().collect();
        expected.sort_unstable();
        assert_eq!(members(category), expected, "@{}", category.name());
    }
    for (category, prefix) in
        [(Category::Bloom, "bf."), (Category::Cuckoo, "cf."), (Category::Tamis, "tm.")]
    {
        let names = Permission::all().map(Permission::name);
        let named: Vec<String> = names.filter(|name| name.starts_with(prefix)).collect();
        assert_eq!(members(category), named);
    }
}

#[test]
fn commands_are_fast_or_slow_as_in_redis() {
    const FAST: &str = "auth bf.card bf.info bf.reserve bitfield_ro cf.info cf.reserve dbsize decr decrby \
        discard echo exists expire expireat expiretime get getbit hello incr incrby lastsave multi \
        persist pexpire pexpireat pexpiretime ping pttl quit renamenx reset select strlen time ttl \
        type unlink unwatch watch";
    const SLOW: &str = "bf.add bf.exists bf.insert bf.loadchunk bf.madd bf.mexists bf.scandump bgsave \
        bitcount bitfield bitop bitpos cf.add cf.count cf.exists cf.mexists client command config \
        del dump exec flushall getrange info keys memory module object randomkey rename restore \
        save scan set setbit setrange shutdown";
    for (category, names) in [(Category::Fast, FAST), (Category::Slow, SLOW)] {
        let found = members(category);
        let is_there = |name: &str| assert!(found.iter().any(|it| it == name), "{name}");
        names.split_whitespace().for_each(is_there);
    }
}

#[test]
fn categories_follow_from_what_a_command_does_to_keys() {
    for action in Permission::all().filter(|it| it.subcommand.is_none()) {
        let command = action.command;
        assert_eq!(action.is_in(Category::Write), command.has(Flag::Write), "{}", command.name);
        if command.has(Flag::ReadOnly) && command.subcommands.is_empty() {
            assert!(action.is_in(Category::Read), "{}", command.name);
        }
    }
}
