//! Implements `TM.PLAN`.

use tamis::{Kind, Plan, PlanInput};
use tamis_resp::Reply;

use crate::command::argv::Argv;
use crate::command::run::{Env, error};
use crate::filter_info::curve::{RatePoint, plan_curve};
use crate::text::tm;
use crate::tm::options::{FilterOptions, KINDS};

/// Runs `TM.PLAN [KIND kind] [ITEMS n] [RATE p] [MEMORY bytes]`.
pub fn plan(argv: Argv<'_>, _: &Env<'_>) -> Reply {
    let given = FilterOptions::of_plan(&argv[1..]).and_then(|options| {
        let input = options.plan_input()?.ok_or_else(|| error(tm::PLAN_TWO))?;
        Ok((options.kind, input))
    });
    let (kind, input) = match given {
        Ok(given) => given,
        Err(reply) => return reply,
    };
    let plans: Vec<Plan> = match kind {
        Some(kind) => match input.plan(kind) {
            Ok(plan) => vec![plan],
            Err(reason) => return tm::because(reason),
        },
        None => KINDS.into_iter().filter_map(|kind| input.plan(kind).ok()).collect(),
    };
    if plans.is_empty() {
        // Return the error of a classic filter, which takes the least memory.
        return input.plan(Kind::Classic).map_or_else(tm::because, |_| Reply::Array(Vec::new()));
    }
    let default = input.default_kind();
    Reply::Array(plans.iter().map(|plan| row(plan, default)).collect())
}

fn row(plan: &Plan, default: Kind) -> Reply {
    let kind = plan.kind();
    let why = if kind == default { plan.why() } else { kind.summary().to_owned() };
    let fields = [
        ("kind", Reply::bulk(kind.name())),
        ("items", Reply::Integer(i64::try_from(plan.items()).unwrap_or(i64::MAX))),
        ("rate", Reply::Double(plan.rate())),
        ("bytes", Reply::Integer(plan.bytes() as i64)),
        ("bits_per_item", Reply::Double(plan.bits_per_item())),
        ("probes", Reply::Integer(i64::from(plan.probes()))),
        ("cache_lines", Reply::Integer(i64::from(plan.cache_lines()))),
        ("why", Reply::bulk(why)),
    ];
    Reply::Map(fields.map(|(name, value)| (Reply::simple(name), value)).into())
}

/// The rate of a kind of filter for increasing numbers of items.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanCurve {
    /// The name of the kind.
    pub kind: &'static str,
    /// True if the kind is the default kind.
    pub is_usual: bool,
    /// Points from zero to 1.5 times the planned items. Empty if the kind keeps the planned rate at
    /// any number of items.
    pub points: Vec<RatePoint>,
}

/// Returns the curves of all kinds in the reply of `TM.PLAN`, each with about `points` points.
///
/// # Examples
///
/// ```
/// let curves = tamis_commands::plan_curves(1000, 0.01, 4);
/// let curve = &curves[0];
/// assert_eq!((curve.kind, curve.is_usual, curve.points[0]), ("split-block", true, (0, 0.0)));
/// assert!(curve.points.len() == 4 && curve.points[3].1 > 0.01);
/// ```
#[must_use]
pub fn plan_curves(items: u64, rate: f64, points: u64) -> Vec<PlanCurve> {
    let usual = PlanInput::ItemsAndRate { items, rate }.default_kind();
    let plans = KINDS.into_iter().filter_map(|kind| Plan::for_kind(kind, items, rate).ok());
    plans
        .map(|plan| PlanCurve {
            kind: plan.kind().name(),
            is_usual: plan.kind() == usual,
            points: plan_curve(&plan, points),
        })
        .collect()
}
