//! `TM.RESERVE`.

use tamis::{Kind, Plan, PlanInput};
use tamis_formats::TamisFile;
use tamis_resp::Reply;

use crate::argv::Argv;
use crate::new_filter::new_filter;
use crate::run::{Env, Outcome, error};
use crate::text::{self, tm};
use crate::tm::clear::emptied;
use crate::tm::options::Options;
use crate::value::Value;

/// `TM.RESERVE key KIND kind [ITEMS n] [RATE p] [MEMORY bytes] [COUNTER bits] [BUCKET slots]
/// [WINDOW millis | WINDOW n ITEMS] [SLICES n] [REFRESH]`; for `LIKE` see [`reserve_like`].
pub(crate) fn reserve(value: &mut Option<Value>, argv: Argv<'_>, env: &Env<'_>) -> Outcome {
    let made = Options::of_filter(&argv[2..]).and_then(|options| {
        let plan = planned(&options, env)?;
        if plan.bytes() > env.settings.max_filter_bytes {
            return Err(error(text::NO_MEMORY_FOR_FILTER));
        }
        if value.is_some() {
            return Err(error(tm::EXISTS));
        }
        let hasher = env.settings.hasher;
        new_filter(&plan, hasher, options.window, options.refreshes, env.now_millis)
            .map_err(tm::because)
    });
    match made {
        Ok(filter) => {
            let made = Value::Filter(Box::new(TamisFile::new(filter)));
            let image = made.new_image();
            *value = Some(made);
            Outcome::created(Reply::ok(), image)
        }
        Err(reply) => Outcome::unchanged(reply),
    }
}

/// Creates an empty filter for [`reserve_like`] with the parameters of the value of another key.
///
/// # Errors
///
/// The error reply, if the other value is not a filter, or there is not enough memory.
pub fn made_like(other: Option<&Value>, env: &Env<'_>) -> Result<Value, Reply> {
    emptied(other.ok_or_else(|| error(tm::NOT_FOUND))?, env.now_millis)
}

/// `TM.RESERVE key LIKE other`: sets the value of a key to the filter that [`made_like`] created.
/// The server reads the other key first, so that no command holds two keys.
pub fn reserve_like(value: &mut Option<Value>, made: Value) -> Outcome {
    if value.is_some() {
        return tm::EXISTS.into();
    }
    let image = made.new_image();
    *value = Some(made);
    Outcome::created(Reply::ok(), image)
}

/// Plans the filter. If the client gives no rate, the rate of the settings applies.
fn planned(options: &Options, env: &Env<'_>) -> Result<Plan, Reply> {
    let kind = options.kind.ok_or_else(|| error(tm::NO_KIND))?;
    let rate = options.rate.unwrap_or(env.settings.bf_rate);
    let input = match (options.plan_input()?, options.items, options.memory_bytes) {
        (Some(input), ..) => input,
        (None, Some(items), _) => PlanInput::ItemsAndRate { items, rate },
        (None, None, Some(max_bytes)) => PlanInput::MemoryAndRate { max_bytes, rate },
        // A growing filter needs no size.
        (None, None, None) if kind == Kind::Growing => PlanInput::ItemsAndRate { items: 1, rate },
        (None, None, None) => return Err(error(tm::NO_SIZE)),
    };
    options.plan(kind, input).map_err(tm::because)
}
