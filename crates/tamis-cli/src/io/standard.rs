//! Detects standard streams that were closed before the program started, for example by `tamis
//! dedup list >&-`.
//!
//! Before `main`, the standard library opens /dev/null in place of each closed stream. A result
//! written to /dev/null would be lost, and the exit status would report success.

use crate::exit::Failure;

/// Rejects standard output if it was closed.
///
/// # Errors
///
/// A message if standard output was closed.
pub fn check_output() -> Result<(), Failure> {
    check(1, "standard output")
}

/// Rejects standard input if it was closed.
///
/// # Errors
///
/// A message if standard input was closed.
pub fn check_input() -> Result<(), Failure> {
    check(0, "standard input")
}

fn check(descriptor: usize, name: &str) -> Result<(), Failure> {
    if at_start::was_closed(descriptor) {
        return Err(Failure::new(format!("{name}: is closed")));
    }
    Ok(())
}

#[cfg(any(target_os = "linux", target_vendor = "apple"))]
mod at_start {
    use std::sync::atomic::{AtomicBool, Ordering};

    static WERE_CLOSED: [AtomicBool; 3] = [const { AtomicBool::new(false) }; 3];

    // SAFETY: the system calls the functions in this section once, before `main` and on the only
    // thread. `look` uses nothing that is initialized later.
    #[allow(unsafe_code)]
    #[used]
    #[cfg_attr(target_os = "linux", unsafe(link_section = ".init_array"))]
    #[cfg_attr(target_vendor = "apple", unsafe(link_section = "__DATA,__mod_init_func"))]
    static LOOK: extern "C" fn() = look;

    extern "C" fn look() {
        for (descriptor, was_closed) in (0..).zip(&WERE_CLOSED) {
            // SAFETY: `fcntl` reads the flags of a descriptor, and any number is a valid argument.
            #[allow(unsafe_code)]
            let flags = unsafe { libc::fcntl(descriptor, libc::F_GETFD) };
            // Relaxed ordering is enough, because no other thread exists yet.
            was_closed.store(flags == -1, Ordering::Relaxed);
        }
    }

    pub fn was_closed(descriptor: usize) -> bool {
        WERE_CLOSED[descriptor].load(Ordering::Relaxed)
    }
}

#[cfg(not(any(target_os = "linux", target_vendor = "apple")))]
mod at_start {
    pub fn was_closed(_: usize) -> bool {
        false
    }
}
