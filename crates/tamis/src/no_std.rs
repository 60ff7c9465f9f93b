//! The prelude of builds without the standard library. Each file that needs the prelude imports all
//! names of the prelude with `*`.

pub(crate) use alloc::borrow::ToOwned;
pub(crate) use alloc::boxed::Box;
pub(crate) use alloc::string::String;
pub(crate) use alloc::vec::Vec;
pub(crate) use alloc::{format, vec};

macro_rules! float {
    ($($name:ident($($arg:ident: $type:ty)?) = $function:expr;)*) => {
        /// The methods of `f64` that are missing in `core`.
        pub(crate) trait Float {
            $(fn $name(self $(, $arg: $type)?) -> Self;)*
        }

        impl Float for f64 {
            $(fn $name(self $(, $arg: $type)?) -> f64 {
                #[cfg(feature = "libm")]
                let function = $function;
                // The build fails with the message in `lib.rs`, and with no other message.
                #[cfg(not(feature = "libm"))]
                let function = |x: f64 $(, _: $type)?| x;
                function(self $(, $arg)?)
            })*
        }
    };
}

float! {
    ceil() = libm::ceil;
    exp() = libm::exp;
    exp2() = libm::exp2;
    exp_m1() = libm::expm1;
    floor() = libm::floor;
    ln() = libm::log;
    ln_1p() = libm::log1p;
    log2() = libm::log2;
    log10() = libm::log10;
    powf(n: f64) = libm::pow;
    powi(n: i32) = |x, n| libm::pow(x, f64::from(n));
    round() = libm::round;
    sqrt() = libm::sqrt;
}
