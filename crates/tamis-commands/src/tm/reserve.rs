//! Implements `TM.RESERVE`.

use tamis::{Kind, Plan, PlanInput};
use tamis_formats::TamisFile;
use tamis_resp::Reply;

use crate::command::argv::Argv;
use crate::command::run::{Env, Outcome, Written, error};
use crate::new_filter::new_filter;
use crate::text::{self, tm};
use crate::tm::clear::emptied;
use crate::tm::options::FilterOptions;
use crate::value::Value;

/// Runs `TM.RESERVE key KIND kind [ITEMS n] [RATE p] [MEMORY bytes] [COUNTER bits] [BUCKET slots]
/// [WINDOW millis | WINDOW n ITEMS] [SLICES n] [REFRESH]`. For the option `LIKE`, see
/// [`reserve_like`].
pub(crate) fn reserve(value: &mut Option<Value>, argv: Argv<'_>, env: &Env<'_>) -> Written {
    let options = FilterOptions::of_filter(&argv[2..])?;
    let plan = planned(&options, env)?;
    if plan.bytes() > env.settings.max_filter_bytes {
        return Err(text::NO_MEMORY_FOR_FILTER.into());
    }
    if value.is_some() {
        return Err(tm::EXISTS.into());
    }
    let hasher = env.settings.hasher;
    let filter = new_filter(&plan, hasher, options.window, options.refreshes, env.now_millis)
        .map_err(tm::because)?;
    Ok(Outcome::create(value, Value::Filter(Box::new(TamisFile::new(filter)))))
}

/// Creates an empty filter with the parameters of another filter, for [`reserve_like`].
///
/// # Errors
///
/// The error reply, if `other` is not a filter, or if there is not enough memory.
pub fn made_like(other: Option<&Value>, env: &Env<'_>) -> Result<Value, Reply> {
    emptied(other.ok_or_else(|| error(tm::NOT_FOUND))?, env.now_millis)
}

/// Runs `TM.RESERVE key LIKE other`: sets the value of a key to the filter that [`made_like`] created. Before this
/// call, the server reads the key `other` and releases its lock, so that no command holds the locks of two keys.
///
/// # Errors
///
/// The error reply, if the key exists.
pub fn reserve_like(value: &mut Option<Value>, made: Value) -> Written {
    if value.is_some() {
        return Err(tm::EXISTS.into());
    }
    Ok(Outcome::create(value, made))
}

/// Plans the filter. If the client gives no rate, the rate of the settings applies.
fn planned(options: &FilterOptions, env: &Env<'_>) -> Result<Plan, Reply> {
    let kind = options.kind.ok_or_else(|| error(tm::NO_KIND))?;
    let rate = options.rate.unwrap_or(env.settings.rate());
    let input = match (options.plan_input()?, options.items, options.memory_bytes) {
        (Some(input), ..) => input,
        (None, Some(items), _) => PlanInput::ItemsAndRate { items, rate },
        (None, None, Some(max_bytes)) => PlanInput::MemoryAndRate { max_bytes, rate },
        // The plan of a growing filter needs no number of items.
        (None, None, None) if kind == Kind::Growing => PlanInput::ItemsAndRate { items: 1, rate },
        (None, None, None) => return Err(error(tm::NO_SIZE)),
    };
    options.plan(kind, input).map_err(tm::because)
}
