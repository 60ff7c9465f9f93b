//! Creates filters of any kind.

use tamis::{AnyFilter, Hasher, Plan, PlanError, Span, Window};

/// Creates an empty filter. A window requires a span.
pub(crate) fn new_filter(
    plan: &Plan,
    hasher: Hasher,
    window: Option<Span>,
    refreshes: bool,
    now_millis: u64,
) -> Result<AnyFilter, PlanError> {
    let Some(span) = window else { return AnyFilter::from_plan(plan, hasher) };
    let window = Window::from_plan(plan, hasher, span)?;
    let mut window = if refreshes { window.refreshing() } else { window };
    window.advance(now_millis);
    Ok(AnyFilter::Window(window))
}
