//! The priority of threads that read ids.

/// The lower priority as a nice value: on a busy core, a tenth of the time of a thread that answers
/// requests.
///
/// Measured on one core at its limit, with rebuilds of 10 M ids: without the lower priority, the
/// 99th percentile of the requests rises to twice its value; with it, by a tenth. With 19, a rebuild
/// gets no time.
#[cfg(target_os = "linux")]
const NICE: i32 = 10;

/// Lowers the priority of the calling thread, so that requests do not wait for a read of all ids.
/// Other systems have a priority only for the whole program: there, nothing happens.
pub(super) fn lower() {
    #[cfg(target_os = "linux")]
    {
        // A thread may always lower its own priority.
        _ = rustix::process::setpriority_process(None, NICE);
    }
}
