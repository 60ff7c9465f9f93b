//! Implements `BF.INSERT`.

use crate::batch::{Batch, BatchItems, Family};
use crate::bf::reserve::{BloomOptions, parse_rate, stored_expansion};
use crate::command::argv::{Argv, parse_integer};
use crate::command::run::{Env, Outcome, Written};
use crate::insert::PartEnd;
use crate::settings::Settings;
use crate::text::{self, Text, bf};
use crate::value::Value;

/// Runs `BF.INSERT key [CAPACITY n] [ERROR e] [EXPANSION n] [NOCREATE] [NONSCALING] ITEMS item
/// [item ...]`.
pub(crate) fn insert(value: &mut Option<Value>, argv: Argv<'_>, env: &Env<'_>) -> Written {
    let args = parse(argv, env.settings)?;
    let args = args.ok_or_else(|| text::wrong_arity("bf.insert"))?;
    let mut created = None;
    let value = match value {
        Some(value) => value,
        None if args.is_nocreate => return Err(text::NOT_FOUND.into()),
        None => {
            let new = args.options.build(env.settings, args.is_reserved)?;
            created = Some(new.new_image());
            value.insert(new)
        }
    };
    let mut batch = Batch::default();
    batch.push_items(argv[1], args.items);
    let all = PartEnd { end: args.items.len(), ends_at_refusal: false };
    let outcome = batch.insert_into(Family::Bloom, value, all, env);
    let outcome = outcome.with_reply(batch.answers(ITEMS).next().expect("one command was pushed"));
    Ok(Outcome { created, ..outcome })
}

/// `BF.INSERT` first parses the options, then inserts the items as a batch.
const ITEMS: BatchItems = BatchItems { family: Family::Bloom, inserts: true, is_one: false };

struct InsertArgs<'w> {
    options: BloomOptions,
    /// True if the command gives a capacity.
    is_reserved: bool,
    is_nocreate: bool,
    items: Argv<'w>,
}

/// Returns the index of the first item after `ITEMS` in an insert with options. The first letters
/// identify an option, and the value of an option is a number.
pub(crate) fn items_start(argv: Argv<'_>) -> Option<usize> {
    let is_items = |word: &&[u8]| word.first().is_some_and(|c| c.eq_ignore_ascii_case(&b'i'));
    Some(argv.iter().skip(2).position(is_items)? + 3)
}

/// Parses the arguments. As in RedisBloom, the first letters identify an option. Returns `None` if
/// arguments are missing.
fn parse<'w>(argv: Argv<'w>, settings: &Settings) -> Result<Option<InsertArgs<'w>>, Text> {
    let (mut options, limits) = (BloomOptions::from_settings(settings), settings.limits);
    let (mut is_reserved, mut is_nocreate) = (false, false);
    let mut at = 2;
    while let Some(word) = argv.get(at) {
        let letter = |i: usize| word.get(i).map(u8::to_ascii_lowercase);
        let value = argv.get(at + 1);
        match letter(0) {
            Some(b'i') => {
                let items = &argv[at + 1..];
                let args = InsertArgs { options, is_reserved, is_nocreate, items };
                return Ok((!items.is_empty()).then_some(args));
            }
            Some(b'n') => {
                if letter(2) == Some(b'c') {
                    is_nocreate = true;
                } else {
                    options.is_scaling = false;
                }
                at += 1;
                continue;
            }
            Some(b'c' | b'e') if value.is_none() => return Ok(None),
            Some(b'c') => {
                let capacity = value.and_then(|word| parse_integer(word));
                let capacity = capacity.filter(|n| (1..=limits.capacity).contains(n));
                options.capacity = capacity.ok_or(bf::INSERT_CAPACITY)? as u64;
                is_reserved = true;
            }
            Some(b'e') if letter(1) == Some(b'r') => {
                let rate = value.and_then(|word| parse_rate(word, limits).ok().flatten());
                options.rate = rate.ok_or(bf::INSERT_RATE)?;
            }
            Some(b'e') => {
                let expansion = value.and_then(|word| parse_integer(word));
                let expansion = expansion.filter(|n| (0..=limits.expansion).contains(n));
                options.expansion = stored_expansion(expansion.ok_or(bf::INSERT_EXPANSION)?);
                options.is_scaling &= options.expansion != 0;
            }
            _ => return Err(bf::UNKNOWN_ARGUMENT),
        }
        at += 2;
    }
    Ok(None)
}
