//! A batch of commands gives the replies and the value of the same commands run one by one, and
//! replaying its logged change gives that value too.

use proptest::prelude::*;
use tamis_commands::{
    Argv, Batch, BatchPart, BloomLayout, Change, Env, Handler, KeyHandler, Settings, Value, find,
};
use tamis_resp::{Protocol, Reply};

/// Commands that create the filter, one for each kind of value; the empty one leaves the key
/// without a value.
const SETUPS: &[&str] = &[
    "",
    "SET k text",
    "BF.RESERVE k 0.01 20 NONSCALING",
    "BF.RESERVE k 0.01 20",
    "BF.RESERVE k 0.01 1000",
    "CF.RESERVE k 16 MAXITERATIONS 2 EXPANSION 0",
    "CF.RESERVE k 64",
    "TM.RESERVE k KIND split-block ITEMS 100",
    "TM.RESERVE k KIND classic ITEMS 100",
    "TM.RESERVE k KIND counting ITEMS 100",
    "TM.RESERVE k KIND cuckoo ITEMS 16",
    "TM.RESERVE k KIND growing ITEMS 100",
    "TM.RESERVE k KIND window ITEMS 50 WINDOW 60000",
];

fn settings(layout: BloomLayout) -> Settings {
    let mut settings = Settings { bf_layout: layout, cf_max_expansions: 3, ..Settings::default() };
    settings.set_hash_key(Some(*b"0123456789abcdef"));
    settings
}

fn handler(name: &[u8]) -> KeyHandler {
    match find(name).expect("a command").handler {
        Handler::Key(handler) => handler,
        _ => panic!("the command is not about one key"),
    }
}

fn argv(words: &[Vec<u8>]) -> Vec<&[u8]> {
    words.iter().map(Vec::as_slice).collect()
}

fn created(setup: &str, env: &Env<'_>) -> Option<Value> {
    let mut value = None;
    if !setup.is_empty() {
        let words: Vec<&[u8]> = setup.split(' ').map(str::as_bytes).collect();
        let outcome = handler(words[0]).run(&mut value, &words, env);
        assert!(value.is_some(), "{setup}: {:?}", outcome.reply);
    }
    value
}

fn image(value: Option<&Value>) -> Option<Vec<u8>> {
    value.map(Value::to_image)
}

/// Applies a logged change.
fn replay(replayed: &mut Option<Value>, commands: &[Argv<'_>], change: Change, env: &Env<'_>) {
    let mut run = |argv: Argv<'_>| {
        let outcome = handler(argv[0]).run(replayed, argv, env);
        assert!(outcome.has_changed(), "{:?}", outcome.reply);
    };
    match change {
        Change::None => {}
        Change::Argv => commands.iter().copied().for_each(run),
        Change::Replaced(words) => run(&argv(&words)),
        Change::Inserted(hashes) => {
            let Some(Value::Bloom(filter)) = replayed else { panic!("it has no hashes") };
            filter.restore_hashes(&hashes).expect("there is memory");
        }
    }
}

/// Runs several calls of the same command as a batch, under shared access if that is possible, or else under exclusive access. `part` decides whether the batch runs as a whole or in short parts. Applies
/// the logged changes to `replayed`.
fn run_batch(
    value: &mut Option<Value>,
    replayed: &mut Option<Value>,
    commands: &[Argv<'_>],
    part: BatchPart,
    env: &Env<'_>,
) -> Vec<Reply> {
    let KeyHandler::Items(items) = handler(commands[0][0]) else { panic!("it has no items") };
    let mut batch = Batch::default();
    commands.iter().for_each(|argv| batch.push(argv));
    if batch.run(items, value.as_ref(), env.now_millis).is_some() {
        if items.inserts {
            replay(replayed, commands, Change::Inserted(batch.new_hashes()), env);
        }
    } else {
        while !batch.is_done() {
            let outcome = batch.insert(items, value, part, env);
            if let Some(image) = outcome.created {
                *replayed = Some(Value::read_logged_image(&image).expect("an image"));
            }
            replay(replayed, commands, outcome.change, env);
        }
    }
    batch.answers(items).map(|answer| answer.reply).collect()
}

/// The commands of the batches.
const NAMES: [&str; 7] =
    ["BF.ADD", "BF.MADD", "TM.ADD", "TM.MADD", "BF.MEXISTS", "TM.EXISTS", "CF.MEXISTS"];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_batch_equals_its_commands_one_by_one(
        setup in prop::sample::select(SETUPS),
        layout in prop::sample::select(vec![BloomLayout::Tamis, BloomLayout::RedisBloom]),
        part in prop::sample::select(vec![BatchPart::All, BatchPart::Short]),
        batches in prop::collection::vec(
            (
                prop::sample::select(NAMES.to_vec()),
                prop::collection::vec(prop::collection::vec(0_u8..60, 1..8), 1..12),
            ),
            1..6,
        ),
    ) {
        let settings = settings(layout);
        let env = Env::new(&settings, Protocol::Resp2, 1_700_000_000_000);
        let (mut one, mut all, mut replayed) =
            (created(setup, &env), created(setup, &env), created(setup, &env));
        for (name, commands) in batches {
            let takes_one = !name.contains(".M");
            let words = |items: Vec<u8>| -> Vec<Vec<u8>> {
                let items = items.into_iter().take(if takes_one { 1 } else { 8 });
                let items = items.map(|item| format!("item {item}").into_bytes());
                [name.into(), b"k".to_vec()].into_iter().chain(items).collect()
            };
            let commands: Vec<_> = commands.into_iter().map(words).collect();
            let commands: Vec<Vec<&[u8]>> = commands.iter().map(|words| argv(words)).collect();
            let commands: Vec<Argv<'_>> = commands.iter().map(Vec::as_slice).collect();
            let mut run = |argv: &Argv<'_>| handler(argv[0]).run(&mut one, argv, &env).reply;
            let singles: Vec<Reply> = commands.iter().map(&mut run).collect();
            let together = run_batch(&mut all, &mut replayed, &commands, part, &env);
            prop_assert_eq!(&singles, &together, "{} on {:?}", name, setup);
            for other in [&all, &replayed] {
                let images = [&one, other].map(|value| image(value.as_ref()));
                prop_assert_eq!(&images[0], &images[1], "{} on {:?}", name, setup);
            }
        }
    }
}

#[test]
fn a_full_cuckoo_filter_releases_its_lock_after_each_refused_command() {
    let settings = settings(BloomLayout::Tamis);
    let env = Env::new(&settings, Protocol::Resp2, 0);
    let mut value = created("TM.RESERVE k KIND cuckoo ITEMS 1000", &env);
    let items: Vec<Vec<u8>> = (0..2000).map(|i| format!("item {i}").into_bytes()).collect();
    let commands: Vec<[&[u8]; 3]> =
        items.iter().map(|item| [b"TM.ADD".as_slice(), b"k", item]).collect();
    let KeyHandler::Items(row) = handler(b"TM.ADD") else { panic!("it has no items") };
    let mut batch = Batch::default();
    commands.iter().for_each(|argv| batch.push(argv));
    assert!(batch.run(row, value.as_ref(), 0).is_none());
    let mut parts = 0;
    while !batch.is_done() {
        batch.insert(row, &mut value, BatchPart::Short, &env);
        parts += 1;
    }
    let refused = batch.answers(row).filter(|it| matches!(it.reply, Reply::Error(_))).count();
    assert!(refused > 500 && parts >= refused, "{parts} parts, {refused} refused items");
}

#[test]
fn a_command_of_many_items_runs_under_one_lock() {
    let settings = settings(BloomLayout::Tamis);
    let env = Env::new(&settings, Protocol::Resp2, 0);
    let mut value = created("TM.RESERVE k KIND cuckoo ITEMS 1000", &env);
    let items: Vec<Vec<u8>> = (0..2000).map(|i| format!("item {i}").into_bytes()).collect();
    let mut argv: Vec<&[u8]> = vec![b"TM.MADD", b"k"];
    argv.extend(items.iter().map(Vec::as_slice));
    let KeyHandler::Items(row) = handler(b"TM.MADD") else { panic!("it has no items") };
    let mut batch = Batch::default();
    batch.push(&argv);
    batch.push(&argv[..3]);
    batch.insert(row, &mut value, BatchPart::Short, &env);
    let Some(Value::Filter(file)) = &value else { panic!("it is a filter") };
    assert!(file.added >= 1000, "{} items", file.added);
    assert!(!batch.is_done(), "the second command needs another call");
}
