//! The instruction sets that have separate kernels, and the highest level that this CPU supports.

#[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
use std::sync::atomic::{AtomicU8, Ordering};

// `available` returns a `Vec`, which comes from `no_std`.
#[cfg(all(target_arch = "x86_64", not(any(feature = "std", test, miri, loom))))]
use crate::no_std::*;

/// An instruction set with separate kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Level {
    Scalar = 1,
    #[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
    Avx2 = 2,
    #[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
    Avx512 = 3,
}

/// The [`Level`] of this CPU, or zero before the first call of [`level`]. `Relaxed` is sufficient,
/// because every thread computes the same value.
#[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
static LEVEL: AtomicU8 = AtomicU8::new(0);

/// Returns the highest level that this CPU supports.
#[inline]
pub(crate) fn level() -> Level {
    #[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
    match LEVEL.load(Ordering::Relaxed) {
        3 => Level::Avx512,
        2 => Level::Avx2,
        1 => Level::Scalar,
        _ => detect(),
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri), not(loom))))]
    Level::Scalar
}

#[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
#[cold]
#[inline(never)]
fn detect() -> Level {
    let best = *available().last().expect("scalar is always available");
    LEVEL.store(best as u8, Ordering::Relaxed);
    best
}

/// Tests whether the CPU has a feature. Without the standard library, the macro tests whether the
/// program is compiled for CPUs with this feature.
#[cfg(all(target_arch = "x86_64", any(feature = "std", test), not(miri), not(loom)))]
macro_rules! has {
    ($feature:tt) => {
        is_x86_feature_detected!($feature)
    };
}
#[cfg(all(target_arch = "x86_64", not(any(feature = "std", test)), not(miri), not(loom)))]
macro_rules! has {
    ($feature:tt) => {
        cfg!(target_feature = $feature)
    };
}

/// Returns all levels that this CPU supports, scalar first.
#[cfg(any(test, all(target_arch = "x86_64", not(miri), not(loom))))]
pub(crate) fn available() -> Vec<Level> {
    #[allow(unused_mut)]
    let mut levels = vec![Level::Scalar];
    #[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
    {
        // Each level uses the kernels and features of the lower level, so each level also requires
        // the lower level. Every feature is checked, because a hypervisor may hide any single
        // feature.
        if has!("avx2") && has!("bmi1") && has!("bmi2") && has!("popcnt") {
            levels.push(Level::Avx2);
        }
        if levels.contains(&Level::Avx2)
            && has!("avx512f")
            && has!("avx512dq")
            && has!("avx512bw")
            && has!("avx512vl")
            && has!("avx512vbmi")
            && has!("avx512bitalg")
        {
            levels.push(Level::Avx512);
        }
    }
    levels
}

/// Runs a loop that is compiled for the features of this CPU. The rest of the crate is compiled for
/// any x86-64 CPU. Code that is inlined into `run` may use the shifts of BMI2 and the vectors of
/// AVX2 or AVX-512.
#[inline(always)]
pub(crate) fn run_wide<R>(run: impl FnOnce() -> R) -> R {
    #[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
    {
        #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
        fn by_avx2<R>(run: impl FnOnce() -> R) -> R {
            run()
        }
        #[target_feature(enable = "avx2,bmi1,bmi2,popcnt,avx512f,avx512dq,avx512bw,avx512vl")]
        fn by_avx512<R>(run: impl FnOnce() -> R) -> R {
            run()
        }
        match level() {
            // SAFETY: the level was detected with the features of `by_avx512`.
            Level::Avx512 => return unsafe { by_avx512(run) },
            // SAFETY: the level was detected with the features of `by_avx2`.
            Level::Avx2 => return unsafe { by_avx2(run) },
            Level::Scalar => {}
        }
    }
    run()
}
